import { and, count, eq, ne } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import { type AgentChoice, listAgentChoices } from "../agents/choice.ts";
import { findUnsupportedOption } from "../agents/coding/agent-options.ts";
import type { AgentOptions } from "../agents/task.ts";
import { hasArchive } from "../archives/archives.ts";
import { checkLimits } from "../config/limits.ts";
import { parseModelId } from "../config/model-settings.ts";
import type { Context, OrgId } from "../context.ts";
import { frequencyProblem } from "../cron.ts";
import { type PromptAgent, type prompts, providers } from "../db/tables/prompts.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { AppError, invalidField } from "../errors.ts";
import { checkLogin } from "../models/logins.ts";
import { getModel, getModelOfLogin } from "../models/models.ts";
import { checkHttpUrl } from "../schema.ts";
import { findSecretHosts } from "../secrets/secrets.ts";
import { checkDeclaredCheck } from "./declared-check.ts";
import { checkReachable, defaultStartUrls } from "./start-urls.ts";
import { templateVarsOf } from "./template.ts";
import { checkVariables, checkWorkspace, checkWorkspaceParts } from "./workspace-check.ts";

export type PromptRow = typeof prompts.$inferSelect;

/** Throws bad_request for an invalid frequency. */
export function checkFrequency(frequency: string | null): void {
  const problem = frequency === null ? null : frequencyProblem(frequency);
  if (problem !== null) throw invalidField("frequency", problem);
}

/** A change of these fields can leave a schedule without what its runs need. The likeliest mistake comes first. */
const scheduleFields = [
  "frequency",
  "additionalUrls",
  "targetProviderId",
  "templateDefaults",
  "text",
  "endGoal",
  "status",
];

/**
 * Refuses a schedule whose runs could only fail. A request that changes none of the schedule's fields is not refused, because the prompt may have
 * lost its provider before. `changedFields`: the fields of the request. Throws bad_request, which names one of them.
 */
export function checkSchedule(
  row: PromptRow,
  provider: Parameters<typeof defaultStartUrls>[1],
  changedFields: readonly string[] = scheduleFields,
): void {
  const field = scheduleFields.find((each) => changedFields.includes(each));
  if (row.frequency === null || field === undefined) return;
  checkFrequency(row.frequency);
  const missing = (row.templateVars ?? []).filter((name) => !Object.hasOwn(row.templateDefaults ?? {}, name));
  if (missing.length > 0)
    throw invalidField(
      field,
      `scheduled prompts need a default for each variable; templateDefaults lacks ${missing.join(", ")}`,
    );
  if (row.status === "active" && defaultStartUrls(row, provider).length === 0)
    throw invalidField(
      field,
      "scheduled prompts need a start URL; set additionalUrls or a targetProviderId whose provider has a docsUrl, or name a URL in text",
    );
}

/** Fields that contain start URLs. If the operator no longer allows an address, a change of other fields must not fail because of it. */
const startFields = ["additionalUrls", "targetProviderId", "text", "templateDefaults"];

type SelectedAgents = [PromptAgent, ...PromptAgent[]];
type AgentSelection = { agent: string | null; model: string | null; options?: AgentOptions };

/**
 * Returns the row to store, with IDs in lower case. `changedFields`: the fields that are changed; default: all, as for a new prompt. Throws
 * bad_request, which names the field.
 */
export function checkPromptRow(ctx: Context, org: OrgId, row: PromptRow, changedFields?: readonly string[]): PromptRow {
  const isChanged = (field: string) => changedFields === undefined || changedFields.includes(field);
  const targetProviderId = row.targetProviderId?.toLowerCase() ?? null;
  const { docsUrl, productUrl } = providers;
  const where = and(eq(providers.orgId, org), eq(providers.id, targetProviderId ?? ""));
  const provider = ctx.db.select({ docsUrl, productUrl }).from(providers).where(where).get() ?? null;
  if (targetProviderId !== null && provider === null)
    throw invalidField("targetProviderId", `no provider has the ID ${targetProviderId}`);
  for (const [i, { url }] of (row.additionalUrls ?? []).entries()) checkHttpUrl(`additionalUrls.${i}.url`, url);
  // The secrets of stored checks may have been deleted or restricted since. So secrets are only looked up for new checks.
  const hostsOf = (name: string) => (isChanged("declaredChecks") ? findSecretHosts(ctx, org, name) : null);
  for (const [i, declaredCheck] of (row.declaredChecks ?? []).entries())
    checkDeclaredCheck(`declaredChecks.${i}`, declaredCheck, hostsOf);
  for (const [i, wording] of (row.wordings ?? []).entries()) {
    const unknownNames = templateVarsOf(wording)?.filter((name) => !row.templateVars?.includes(name)) ?? [];
    if (unknownNames.length > 0)
      throw invalidField(`wordings.${i}`, `text and endGoal have no variable named ${unknownNames.join(", ")}`);
  }
  if (row.workspace !== null) checkWorkspace(row.workspace, (id) => hasArchive(ctx, org, id));
  if (row.templateVars?.includes("__proto__"))
    throw invalidField(
      templateVarsOf(row.text)?.includes("__proto__") ? "text" : "endGoal",
      "a template variable cannot be named __proto__; rename it",
    );
  checkSchedule(row, provider, changedFields);
  if (startFields.some(isChanged)) checkReachable(ctx, row, provider);
  checkLimits(row.limits, ctx.config);
  if (row.agents === null) checkAgent(ctx, org, row);
  else checkAgents(ctx, org, row.agents);
  for (const { agent } of row.agents ?? [row]) checkWorkspaceParts(listAgentChoices(ctx.agents), agent, row.workspace);
  const baselineRequestId = row.baselineRequestId?.toLowerCase() ?? null;
  if (baselineRequestId !== null) checkBaseline(ctx, org, row.id, baselineRequestId);
  return { ...row, targetProviderId, baselineRequestId };
}

/**
 * The agent and model of a new run. Default: an agent with a model, if a model is set and has a key. An agent that this server no longer has is kept.
 */
export function agentOfPrompt(ctx: Context, org: OrgId, row: AgentSelection): PromptAgent {
  const agents = listAgentChoices(ctx.agents);
  const model = row.model ?? ctx.config.agentModel;
  const hasModelToUse = () => row.model !== null || (model !== null && isCallableModel(ctx, org, model));
  const agent = agents.find(({ id }) => id === row.agent) ?? defaultAgent(agents, hasModelToUse);
  return {
    agent: row.agent ?? agent?.id ?? "explorer",
    model: agent?.hasModel ? model : null,
    ...(row.options && { options: row.options }),
  };
}

/** The first available agent with a model if a model can be used, else the first agent without a model. */
function defaultAgent(agents: AgentChoice[], hasModelToUse: () => boolean): AgentChoice | undefined {
  const available = agents.filter(({ objection }) => objection === null);
  const modelAgent = available.find(({ hasModel }) => hasModel);
  return modelAgent && hasModelToUse() ? modelAgent : available.find(({ hasModel }) => !hasModel);
}

/** Whether a model is known and has a key. */
export function isCallableModel(ctx: Context, org: OrgId, model: string): boolean {
  try {
    getModel(ctx, org, model);
    return true;
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}

/** The agents and models of a prompt, whether or not they can run it. */
export function agentsOfPrompt(ctx: Context, org: OrgId, row: PromptRow): SelectedAgents {
  const [first = row, ...others] = row.agents ?? [];
  return [agentOfPrompt(ctx, org, first), ...others.map((each) => agentOfPrompt(ctx, org, each))];
}

/**
 * The agents and models of a new evaluation: the agent that the request names, else all agents of the prompt. Throws bad_request, which names the
 * field.
 */
export function agentsForRun(ctx: Context, org: OrgId, row: PromptRow, selection: Partial<AgentSelection> = {}) {
  const selected = selectAgents(ctx, org, row, selection);
  for (const { agent } of selected) checkWorkspaceParts(listAgentChoices(ctx.agents), agent, row.workspace);
  return selected;
}

/** Throws bad_request, which names the field. */
function checkAgent(ctx: Context, org: OrgId, { agent: id, model, options }: AgentSelection): void {
  const agents = listAgentChoices(ctx.agents);
  const agent = agents.find((each) => each.id === id);
  const availableAgents = agents.filter(({ objection }) => objection === null);
  if (id !== null && !agent) {
    const ids = availableAgents.map((each) => each.id).join(" or ");
    throw invalidField("agent", `${JSON.stringify(id)} is not available on this server; use ${ids}`);
  }
  if (agent && agent.objection !== null)
    throw invalidField("agent", `${agent.id} is not available on this server: ${agent.objection}`);
  const modelAgentIds = availableAgents.filter(({ hasModel }) => hasModel).map((each) => each.id);
  if (model !== null && modelAgentIds.length === 0)
    throw invalidField("model", "no available agent uses a model; leave it null");
  if (model !== null && agent?.hasModel === false)
    throw invalidField(
      "model",
      `the agent ${agent.id} does not use a model; leave it null, or use the agent ${modelAgentIds.join(" or ")}`,
    );
  const checkModel = (name: string) => (options?.login ? getModelOfLogin(ctx, name) : getModel(ctx, org, name));
  if (model !== null) attributeTo("model", () => checkModel(model));
  else if (agent?.hasModel) {
    const { agentModel } = ctx.config;
    if (agentModel === null)
      throw invalidField("agent", `${agent.id} needs a model; set model, or EVALD_AGENT_MODEL on the server`);
    attributeTo("agent", () => checkModel(agentModel));
  }
  const effectiveModel = model ?? ctx.config.agentModel;
  const provider = parseModelId(effectiveModel ?? "")?.provider;
  if (agent?.providers && provider && !agent.providers.includes(provider))
    throw invalidField(
      "model",
      `the agent ${agent.id} cannot use ${effectiveModel}; use a model of ${agent.providers.join(" or ")}`,
    );
}

function checkAgents(ctx: Context, org: OrgId, agents: NonNullable<PromptRow["agents"]>): void {
  const choices = new Set<string>();
  for (const [i, choice] of agents.entries()) {
    prefixField(`agents.${i}`, () => {
      checkAgent(ctx, org, choice);
      checkOptions(ctx, org, choice);
    });
    const { agent, model } = agentOfPrompt(ctx, org, choice);
    if (choices.has(`${agent} ${model}`))
      throw invalidField(`agents.${i}`, `${[agent, model].filter(Boolean).join(" with ")} is listed twice`);
    choices.add(`${agent} ${model}`);
  }
}

/** Throws bad_request, which names the option, if an agent doesn't have it. */
function checkOptions(ctx: Context, org: OrgId, { agent: id, options }: PromptAgent): void {
  const agent = listAgentChoices(ctx.agents).find((each) => each.id === id);
  if (options === undefined || !agent) return;
  const unsupported = findUnsupportedOption(agent.options, options);
  if (unsupported) {
    const { name, values } = unsupported;
    const remedy = values.length > 0 ? `use ${values.join(" or ")}` : "leave it out";
    throw invalidField(
      `options.${name}`,
      `the agent ${id} does not support it${values.length > 0 ? " with this value" : ""}; ${remedy}`,
    );
  }
  checkVariables("options.env", options.env);
  if (options.login) checkLogin(ctx, org, agent.id);
}

function selectAgents(ctx: Context, org: OrgId, row: PromptRow, selection: Partial<AgentSelection>): SelectedAgents {
  if (!selection.agent && !selection.model) return agentsOfPrompt(ctx, org, row);
  const agent = selection.agent ?? row.agent;
  const isOtherAgent = selection.agent != null && selection.agent !== row.agent;
  const agentChoice = listAgentChoices(ctx.agents).find(({ id }) => id === agent);
  // The prompt's model was chosen for its own agent.
  const takesModel = !isOtherAgent || canUse(agentChoice, row.model);
  const { options } = row.agents?.[0] ?? {};
  const choice = {
    agent,
    model: selection.model ?? (takesModel ? row.model : null),
    ...(options && !isOtherAgent && { options }),
  };
  checkAgent(ctx, org, choice);
  return [agentOfPrompt(ctx, org, choice)];
}

/** Whether an agent can use a model. */
function canUse(agent: AgentChoice | undefined, model: string | null): boolean {
  if (!agent?.hasModel) return false;
  const provider = parseModelId(model ?? "")?.provider;
  return agent.providers === null || (provider !== undefined && agent.providers.includes(provider));
}

/** Throws bad_request. */
function checkBaseline({ db }: Context, org: OrgId, promptId: string, evalRequestId: string): void {
  const where = and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId), eq(runs.promptId, promptId));
  const row = db
    .select({ scoredRuns: count(reports.score), agent: runs.agent, editsDigest: runs.editsDigest })
    .from(runs)
    .leftJoin(reports, and(eq(reports.runId, runs.id), ne(reports.status, "archived")))
    .where(where)
    .get();
  if (row?.editsDigest)
    throw invalidField("baselineRequestId", `evaluation ${evalRequestId} ran with edits of the docs; pin one without`);
  const scoredRuns = row?.scoredRuns ?? 0;
  const [minRuns, advice] = isRuleBased(row?.agent ?? "")
    ? [1, ""]
    : [2, ", and 4 for statistically meaningful comparisons"];
  if (scoredRuns < minRuns)
    throw invalidField(
      "baselineRequestId",
      `evaluation ${evalRequestId} has ${scoredRuns} scored runs of this prompt; a baseline needs at least ${minRuns}${advice}`,
    );
}

/** Runs a check of an object. If the error names a field, the field gets the path of the object as a prefix. */
function prefixField(field: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof AppError) || error.problem === undefined) throw error;
    const name = `${field}.${error.field}`;
    throw new AppError(error.code, `Invalid ${name}: ${error.problem}.`, { field: name, problem: error.problem });
  }
}

/** Runs a check. Adds the name of the field to an error that it throws. */
function attributeTo(field: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw error instanceof AppError
      ? new AppError(error.code, error.detail, { field, problem: error.detail.replace(/\.$/, "") })
      : error;
  }
}
