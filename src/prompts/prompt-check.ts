import { and, count, eq, ne } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import { checkLimits } from "../config/limits.ts";
import { type prompts, providers, reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { AppError, invalidField } from "../errors.ts";
import { frequencyProblem } from "../jobs/schedule.ts";
import { checkHttpUrl } from "../schema.ts";
import type { DeclaredCheck } from "./schema.ts";

export type PromptRow = typeof prompts.$inferSelect;

export type AgentParts = {
  /** The available agents, the default first; prompts with another agent are rejected. */
  agents: { id: string; hasModel: boolean }[];
  /** The default model. */
  agentModel: string | null;
  /** Throws an AppError if an organization can't call a model. */
  checkModel: (org: OrgId, model: string) => void;
};

/** Validation of a prompt, and the choice of the agent for its runs. */
export function createPromptCheck(
  { db, config }: Pick<Deps, "db" | "config">,
  { agents, agentModel, checkModel }: AgentParts,
) {
  /** Returns the row to store, with IDs in lower case. Throws bad_request that names the field. */
  function check(org: OrgId, row: PromptRow): PromptRow {
    const targetProviderId = row.targetProviderId?.toLowerCase() ?? null;
    if (targetProviderId !== null) {
      const own = and(eq(providers.orgId, org), eq(providers.id, targetProviderId));
      if (!db.select({ id: providers.id }).from(providers).where(own).get())
        throw invalidField("targetProviderId", `no provider has the ID ${targetProviderId}`);
    }
    for (const [i, { url }] of (row.additionalUrls ?? []).entries()) checkHttpUrl(`additionalUrls.${i}.url`, url);
    for (const [i, declared] of (row.declaredChecks ?? []).entries())
      checkDeclaredCheck(`declaredChecks.${i}`, declared);
    const trouble = row.frequency === null ? null : frequencyProblem(row.frequency);
    if (trouble !== null) throw invalidField("frequency", trouble);
    const missing = (row.templateVars ?? []).filter((name) => !Object.hasOwn(row.templateDefaults ?? {}, name));
    if (row.frequency !== null && missing.length > 0)
      throw invalidField(
        "frequency",
        `scheduled prompts need a default for each variable; templateDefaults lacks ${missing.join(", ")}`,
      );
    checkLimits(row.limits, config);
    const agent = agents.find(({ id }) => id === row.agent);
    const ids = agents.map(({ id }) => id).join(" or ");
    if (row.agent !== null && !agent)
      throw invalidField("agent", `${JSON.stringify(row.agent)} is not available on this server; use ${ids}`);
    const takers = agents.filter(({ hasModel }) => hasModel).map(({ id }) => id);
    if (row.model !== null && takers.length === 0)
      throw invalidField("model", "no available agent uses a model; leave it null");
    if (row.model !== null && agent?.hasModel === false)
      throw invalidField(
        "model",
        `the agent ${agent.id} does not use a model; leave it null, or use the agent ${takers.join(" or ")}`,
      );
    if (row.model !== null) named("model", () => checkModel(org, row.model as string));
    else if (agent?.hasModel) {
      if (agentModel === null)
        throw invalidField("agent", `${agent.id} needs a model; set model, or EVALD_AGENT_MODEL on the server`);
      named("agent", () => checkModel(org, agentModel));
    }
    const baselineRequestId = row.baselineRequestId?.toLowerCase() ?? null;
    if (baselineRequestId !== null) checkBaseline(org, row.id, baselineRequestId);
    return { ...row, targetProviderId, baselineRequestId };
  }

  function checkBaseline(org: OrgId, promptId: string, evalRequestId: string): void {
    const own = and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId), eq(runs.promptId, promptId));
    const scored = db
      .select({ n: count(reports.score), agent: runs.agent })
      .from(runs)
      .leftJoin(reports, and(eq(reports.runId, runs.id), ne(reports.status, "archived")))
      .where(own)
      .get();
    const least = isRuleBased(scored?.agent ?? "") ? 1 : 2;
    if ((scored?.n ?? 0) < least)
      throw invalidField(
        "baselineRequestId",
        `eval request ${evalRequestId} has ${scored?.n ?? 0} scored runs of this prompt; a baseline needs at least ${least}${least === 1 ? "" : ", and 4 for statistically meaningful comparisons"}`,
      );
  }

  /** The agent and model of a new run: an agent with a model if a model is set and has a key. */
  function agentOf(org: OrgId, row: Pick<PromptRow, "agent" | "model">): { agent: string; model: string | null } {
    const model = row.model ?? agentModel;
    const isCallable = () => {
      try {
        if (model !== null) checkModel(org, model);
        return model !== null;
      } catch (error) {
        if (error instanceof AppError) return false;
        throw error;
      }
    };
    const agent =
      agents.find(({ id }) => id === row.agent) ??
      agents.find(({ hasModel }) => hasModel && (row.model !== null || isCallable())) ??
      agents.find(({ hasModel }) => !hasModel);
    return { agent: row.agent ?? agent?.id ?? "explorer", model: agent?.hasModel ? model : null };
  }

  return { check, agentOf };
}

/** Attributes a failed check to a field. */
function named(field: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw error instanceof AppError
      ? new AppError(error.code, error.detail, { field, problem: error.detail.replace(/\.$/, "") })
      : error;
  }
}

/** Throws bad_request that names the field. */
function checkDeclaredCheck(field: string, { url, command, file, status, exitCode }: DeclaredCheck): void {
  if ([url, command, file].filter((each) => each !== undefined).length !== 1)
    throw invalidField(field, "set exactly one of url, command and file");
  if (url !== undefined) checkHttpUrl(`${field}.url`, url);
  if (status !== undefined && url === undefined)
    throw invalidField(`${field}.status`, "only checks with a url have a status");
  if (exitCode !== undefined && command === undefined)
    throw invalidField(`${field}.exitCode`, "only checks with a command have an exit code");
  if (file !== undefined && (file.startsWith("/") || file.split("/").includes("..") || file.includes("\0")))
    throw invalidField(`${field}.file`, "use a path relative to the workspace, without ..");
}
