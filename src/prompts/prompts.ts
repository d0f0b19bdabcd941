import { and, count, desc, eq, ne, sql } from "drizzle-orm";
import { gates, orgs, prompts, providers, reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { AppError, badRequest, notFound } from "../errors.ts";
import { minRuns } from "../grading/statspower.ts";
import { frequencyTrouble, nextSlot, nextSlots, type Schedule } from "../jobs/schedule.ts";
import type { Page, Paged } from "../paging.ts";
import { checkHttpUrl } from "../schema.ts";
import { checkLimits } from "./limits.ts";
import type { Prompt, PromptInput, PromptPatch, PromptSummary } from "./schema.ts";
import { templateVarsOf } from "./template.ts";

type PromptRow = typeof prompts.$inferSelect;

export const promptSummaryColumns = {
  id: prompts.id,
  title: prompts.title,
  text: prompts.text,
  endGoal: prompts.endGoal,
  status: prompts.status,
  templateVars: prompts.templateVars,
  createdAt: prompts.createdAt,
};

export function toPromptSummary(row: Pick<PromptRow, keyof PromptSummary>): PromptSummary {
  return {
    id: row.id,
    title: row.title,
    text: row.text,
    endGoal: row.endGoal,
    status: row.status,
    templateVars: row.templateVars,
    createdAt: new Date(row.createdAt).toISOString(),
  };
}

export type Prompts = ReturnType<typeof createPrompts>;

type Parts = {
  /** The agents that this service can send, the default first; a prompt that names another is refused. */
  agents: { id: string; hasModel: boolean }[];
  /** The model of prompts that name none. */
  agentModel: string | null;
  /** Throws an AppError where an organisation cannot call a model. */
  checkModel: (org: OrgId, model: string) => void;
  /** Called after a prompt's schedule was changed. */
  onScheduled: () => void;
};

export function createPrompts(
  { db, config, now, newId }: Pick<Deps, "db" | "config" | "now" | "newId">,
  { agents, agentModel, checkModel, onScheduled }: Parts,
) {
  const byId = db
    .select()
    .from(prompts)
    .where(and(eq(prompts.orgId, sql.placeholder("org")), eq(prompts.id, sql.placeholder("id"))))
    .prepare();

  /** The row itself, for other features. Throws not_found. */
  function getPromptRow(org: OrgId, id: string): PromptRow {
    const row = byId.get({ org, id: id.toLowerCase() });
    if (!row) throw notFound(`no prompt has the id ${id}`);
    return row;
  }

  /** The schedule of a prompt that has one and is active; null for all others. */
  function scheduleOf({ id, orgId, status, frequency }: PromptRow): Schedule | null {
    if (frequency === null || status !== "active") return null;
    const org = db.select({ timeZone: orgs.timeZone }).from(orgs).where(eq(orgs.id, orgId)).get();
    return { id, frequency, timeZone: org?.timeZone ?? "UTC" };
  }

  const gate = db
    .select({ id: gates.id })
    .from(gates)
    .where(and(eq(gates.orgId, sql.placeholder("org")), eq(gates.promptId, sql.placeholder("id"))))
    .limit(1)
    .prepare();

  /** What to know before relying on evaluations of so many runs, of a prompt that has something to be held against. */
  function warningsOf({ id, orgId, baselineRequestId }: PromptRow, runs: number): string[] {
    if (runs >= minRuns) return [];
    const held =
      baselineRequestId !== null ? "the pinned baseline" : gate.get({ org: orgId, id }) ? "what its gates run" : null;
    return held === null
      ? []
      : [`${runs} of ${minRuns} runs: fewer cannot tell a change from ${held} from chance; set runsPerEval to 5`];
  }

  function toPrompt(row: PromptRow): Prompt {
    const schedule = scheduleOf(row);
    return {
      ...toPromptSummary(row),
      frequency: row.frequency,
      runsPerEval: row.runsPerEval,
      targetProviderId: row.targetProviderId,
      additionalUrls: row.additionalUrls,
      templateDefaults: row.templateDefaults,
      declaredChecks: row.declaredChecks,
      agent: row.agent,
      model: row.model,
      limits: row.limits,
      reviewBeforePublishing: row.reviewBeforePublishing,
      isCanary: row.isCanary,
      baselineRequestId: row.baselineRequestId,
      warnings: warningsOf(row, row.runsPerEval ?? 1),
      nextRunsAt: schedule ? nextSlots(schedule, now(), 3).map((at) => new Date(at).toISOString()) : null,
    };
  }

  function check(org: OrgId, row: PromptRow): PromptRow {
    const targetProviderId = row.targetProviderId?.toLowerCase() ?? null;
    if (targetProviderId !== null) {
      const own = and(eq(providers.orgId, org), eq(providers.id, targetProviderId));
      if (!db.select({ id: providers.id }).from(providers).where(own).get())
        throw badRequest(`targetProviderId: no provider has the id ${targetProviderId}`);
    }
    const { additionalUrls, declaredChecks } = row;
    for (const [field, listed] of Object.entries({ additionalUrls, declaredChecks }))
      for (const [i, { url }] of (listed ?? []).entries()) checkHttpUrl(`${field}.${i}.url`, url);
    const trouble = row.frequency === null ? null : frequencyTrouble(row.frequency);
    if (trouble !== null) throw badRequest(`frequency: ${trouble}`);
    const lacking = (row.templateVars ?? []).filter((name) => !Object.hasOwn(row.templateDefaults ?? {}, name));
    if (row.frequency !== null && lacking.length > 0)
      throw badRequest(`frequency: a scheduled prompt needs templateDefaults for its variables: ${lacking.join(", ")}`);
    checkLimits(row.limits, config);
    const agent = agents.find(({ id }) => id === row.agent);
    const ids = agents.map(({ id }) => id).join(" or ");
    if (row.agent !== null && !agent)
      throw badRequest(`agent: ${JSON.stringify(row.agent)} is not available here; use ${ids}`);
    const takers = agents.filter(({ hasModel }) => hasModel).map(({ id }) => id);
    if (row.model !== null && takers.length === 0)
      throw badRequest("model: no agent that is available here uses a model; leave it null");
    if (row.model !== null && agent?.hasModel === false)
      throw badRequest(`model: the agent ${agent.id} uses none; leave it null, or use ${takers.join(" or ")}`);
    if (row.model !== null) named("model", () => checkModel(org, row.model as string));
    else if (agent?.hasModel) {
      if (agentModel === null)
        throw badRequest(`agent: ${agent.id} needs a model; name one in model, or set EVALD_AGENT_MODEL`);
      named("agent", () => checkModel(org, agentModel));
    }
    const baselineRequestId = row.baselineRequestId?.toLowerCase() ?? null;
    if (baselineRequestId !== null) checkBaseline(org, row.id, baselineRequestId);
    return { ...row, targetProviderId, baselineRequestId };
  }

  function checkBaseline(org: OrgId, promptId: string, evalRequestId: string): void {
    const own = and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId), eq(runs.promptId, promptId));
    const scored = db
      .select({ n: count(reports.score) })
      .from(runs)
      .leftJoin(reports, and(eq(reports.runId, runs.id), ne(reports.status, "archived")))
      .where(own)
      .get();
    if ((scored?.n ?? 0) < 2)
      throw badRequest(
        `baselineRequestId: the eval request ${evalRequestId} has ${scored?.n ?? 0} runs of this prompt with a score; a baseline needs 2, and 4 to tell a change from chance`,
      );
  }

  /** Its schedule begins now: a slot that was due before and not dealt with does not come any more. */
  function reschedule(row: PromptRow): PromptRow {
    const schedule = scheduleOf(row);
    return { ...row, nextSlotAt: schedule && nextSlot(schedule, now()) };
  }

  /** The agent of a new run and its model: one with a model wherever a model is named whose key is there. */
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

  return {
    getPromptRow,
    agentOf,
    hasPrompt: (org: OrgId, id: string): boolean => byId.get({ org, id }) !== undefined,
    getPrompt: (org: OrgId, id: string): Prompt => toPrompt(getPromptRow(org, id)),
    /** What to know before relying on an evaluation of so many runs. Throws not_found. */
    warningsOf: (org: OrgId, id: string, runs: number): string[] => warningsOf(getPromptRow(org, id), runs),

    /** Newest first. */
    listPrompts(
      org: OrgId,
      { limit, offset, includeArchived }: Page & { includeArchived: boolean },
    ): Paged<PromptSummary> {
      const where = includeArchived
        ? eq(prompts.orgId, org)
        : and(eq(prompts.orgId, org), ne(prompts.status, "archived"));
      const rows = db.select().from(prompts).where(where).orderBy(desc(prompts.id)).limit(limit).offset(offset).all();
      const total = db.select({ n: count() }).from(prompts).where(where).get()?.n ?? 0;
      return { items: rows.map(toPromptSummary), total };
    },

    /** Throws bad_request that names the field. `id`: one that was made before, for its presets to fall where they were shown; another is made if it is taken. */
    createPrompt(org: OrgId, input: PromptInput, id?: string): Prompt {
      const createdAt = now();
      const row = check(org, {
        id: id && !db.select({ id: prompts.id }).from(prompts).where(eq(prompts.id, id)).get() ? id : newId(createdAt),
        orgId: org,
        title: input.title ?? null,
        text: input.text,
        endGoal: input.endGoal ?? null,
        status: "active",
        frequency: input.frequency ?? null,
        runsPerEval: input.runsPerEval ?? null,
        targetProviderId: input.targetProviderId ?? null,
        additionalUrls: input.additionalUrls ?? null,
        templateVars: templateVarsOf(input.text, input.endGoal ?? null),
        templateDefaults: input.templateDefaults ?? null,
        declaredChecks: input.declaredChecks ?? null,
        agent: input.agent ?? null,
        model: input.model ?? null,
        limits: input.limits ?? null,
        reviewBeforePublishing: input.reviewBeforePublishing ?? false,
        isCanary: input.isCanary ?? false,
        baselineRequestId: input.baselineRequestId ?? null,
        createdAt,
        nextSlotAt: null,
      });
      db.insert(prompts).values(reschedule(row)).run();
      onScheduled();
      return toPrompt(row);
    },

    /** Fields that are not given stay as they are. Throws not_found, and bad_request that names the field. */
    updatePrompt(org: OrgId, id: string, patch: PromptPatch): Prompt {
      const before = getPromptRow(org, id);
      const changed = { ...before, ...patch };
      const row = check(org, { ...changed, templateVars: templateVarsOf(changed.text, changed.endGoal) });
      const isMoved = row.frequency !== before.frequency || row.status !== before.status;
      db.update(prompts)
        .set(isMoved ? reschedule(row) : row)
        .where(and(eq(prompts.orgId, org), eq(prompts.id, row.id)))
        .run();
      if (isMoved) onScheduled();
      return toPrompt(row);
    },
  };
}

/** Names the field in what is wrong with its value. */
function named(field: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw error instanceof AppError ? badRequest(`${field}: ${error.detail}`) : error;
  }
}
