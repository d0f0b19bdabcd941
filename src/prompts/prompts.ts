import { and, eq, sql } from "drizzle-orm";
import { type AgentChoice, listAgentChoices } from "../agents/choice.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { nextTime, nextTimes, type Schedule } from "../cron.ts";
import { includingDeleted } from "../db/hidden-rows.ts";
import { transaction } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { hasPausedSchedules, timeZoneOf } from "../db/rows.ts";
import { type PromptAgent, type PromptBasis, prompts, type SuiteReference } from "../db/tables/prompts.ts";
import { invalidField, notFound } from "../errors.ts";
import { newUrlSecret, toIso } from "../schema.ts";
import type { AgentInfo } from "./agent-schema.ts";
import { toFrequency } from "./frequency.ts";
import { checkPromptRow, type PromptRow } from "./prompt-check.ts";
import type { Prompt, PromptInput, PromptPatch } from "./schema.ts";
import { parseTemplateVars } from "./template.ts";
import { warningsOfPrompt } from "./warnings.ts";

const toOptionLists = (options: AgentChoice["options"]): AgentInfo["options"] =>
  Object.fromEntries(Object.entries(options).map(([name, values]) => [name, values && [...values]]));

const toAgentInfo = ({ version, ...agent }: AgentChoice): AgentInfo => ({
  ...agent,
  version: agent.objection === null ? version : null,
  providers: agent.providers ? [...agent.providers] : null,
  lacks: [...agent.lacks],
  options: toOptionLists(agent.options),
});

const promptById = statement((db) =>
  db
    .select()
    .from(prompts)
    .where(and(eq(prompts.orgId, sql.placeholder("org")), eq(prompts.id, sql.placeholder("id")))),
);

/** The row itself, for other features. Throws not_found. */
export function getPromptRow(ctx: Context, org: OrgId, id: string): PromptRow {
  const row = promptById(ctx.db).get({ org, id: id.toLowerCase() });
  if (!row) throw notFound(`No prompt has the ID ${id}.`);
  return row;
}

/** Every agent that this server knows, whether it can be used or not. */
export const listAgents = (ctx: Context): AgentInfo[] => listAgentChoices(ctx.agents).map(toAgentInfo);

/** Whether the organization has a prompt with this ID. */
export const hasPrompt = (ctx: Context, org: OrgId, id: string): boolean =>
  promptById(ctx.db).get({ org, id }) !== undefined;

/** Throws not_found. */
export const getPrompt = (ctx: Context, org: OrgId, id: string): Prompt => toPrompt(ctx, getPromptRow(ctx, org, id));

/** Warnings about an evaluation with this many runs. Throws not_found. */
export const getPromptWarnings = (ctx: Context, org: OrgId, id: string, runs: number): string[] =>
  warningsOfPrompt(ctx, getPromptRow(ctx, org, id), runs);

/**
 * Where a new prompt comes from. `id`: an ID reserved for it, so that presets keep the times that were shown. If that ID is taken, the prompt gets
 * another one. `basis`: the docs that it was proposed from. `suite`: the slot that it fills.
 */
type PromptOrigin = { id?: string | undefined; basis?: PromptBasis; suite?: SuiteReference };

/** The row of a prompt that is not stored yet, unchecked. */
export function toPromptRow(
  ctx: Context,
  org: OrgId,
  input: PromptInput,
  { id, basis, suite }: PromptOrigin = {},
): PromptRow {
  const createdAt = ctx.now();
  const isTaken = (each: string) =>
    includingDeleted(ctx.db).select({ id: prompts.id }).from(prompts).where(eq(prompts.id, each)).get() !== undefined;
  return {
    id: id && !isTaken(id) ? id : ctx.newId(createdAt),
    orgId: org,
    title: input.title ?? null,
    text: input.text,
    endGoal: input.endGoal ?? null,
    wordings: input.wordings ?? null,
    basis: basis ?? null,
    basisChange: null,
    suite: suite ?? null,
    status: input.status ?? "active",
    frequency: toFrequency(input.frequency ?? null),
    runsPerEval: input.runsPerEval ?? null,
    ...catchUpAfterChange(input, { catchUp: "automatic", catchUpHours: null }),
    overlap: input.overlap ?? "skip",
    targetProviderId: input.targetProviderId ?? null,
    additionalUrls: input.additionalUrls ?? null,
    templateVars: parseTemplateVars(input.text, input.endGoal ?? null),
    templateDefaults: input.templateDefaults ?? null,
    declaredChecks: input.declaredChecks ?? null,
    workspace: input.workspace ?? null,
    ...agentsAfterChange(input, { agent: null, model: null, agents: null }),
    limits: input.limits ?? null,
    reviewBeforePublishing: input.reviewBeforePublishing ?? false,
    isCanary: input.isCanary ?? false,
    tags: input.tags ?? [],
    successBar: input.successBar ?? null,
    supersedesByDefault: input.supersedesByDefault ?? false,
    isOnResultsPage: input.isOnResultsPage ?? false,
    workerLabels: input.workerLabels ?? [],
    badgeToken: input.hasPublicBadge ? newUrlSecret() : null,
    baselineRequestId: input.baselineRequestId ?? null,
    createdAt,
    nextEvaluationAt: null,
  };
}

/** Throws bad_request, which names the field. */
export function createPrompt(ctx: Context, org: OrgId, input: PromptInput, origin: PromptOrigin = {}): Prompt {
  const row = checkPromptRow(ctx, org, toPromptRow(ctx, org, input, origin));
  transaction(ctx.db, (tx) => {
    tx.insert(prompts).values(reschedule(ctx, row)).run();
    recordAudit(ctx, org, "prompt.created", { id: row.id, name: nameOfPrompt(row) });
  });
  ctx.signals.scheduleChanged.emit();
  return toPrompt(ctx, row);
}

/** What lists and the audit log call a prompt: its title, or else the beginning of its text. */
export const nameOfPrompt = ({ title, text }: PromptRow): string => title ?? text.slice(0, 80).toWellFormed();

/** Omitted fields keep their values. Throws not_found, and bad_request, which names the field. */
export function updatePrompt(ctx: Context, org: OrgId, id: string, patch: PromptPatch): Prompt {
  const before = getPromptRow(ctx, org, id);
  const { hasPublicBadge = before.badgeToken !== null, ...fields } = patch;
  const changed = {
    ...before,
    ...fields,
    badgeToken: hasPublicBadge ? (before.badgeToken ?? newUrlSecret()) : null,
    ...(patch.frequency !== undefined && { frequency: toFrequency(patch.frequency) }),
    ...catchUpAfterChange(patch, before),
    ...agentsAfterChange(patch, before),
  };
  const hasSameTexts = changed.text === before.text && changed.endGoal === before.endGoal;
  const templateVars = hasSameTexts ? before.templateVars : parseTemplateVars(changed.text, changed.endGoal);
  const changedFields = Object.entries(patch).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const row = checkPromptRow(ctx, org, { ...changed, templateVars }, changedFields);
  const changesSchedule = row.frequency !== before.frequency || row.status !== before.status;
  transaction(ctx.db, (tx) => {
    tx.update(prompts)
      .set(changesSchedule ? reschedule(ctx, row) : row)
      .where(and(eq(prompts.orgId, org), eq(prompts.id, row.id)))
      .run();
    const changes = changesOf(before, row, { secrets: ["badgeToken", "templateDefaults"], ignored: ["templateVars"] });
    recordAudit(ctx, org, "prompt.updated", { id: row.id, name: nameOfPrompt(row) }, changes);
  });
  if (changesSchedule) ctx.signals.scheduleChanged.emit();
  return toPrompt(ctx, row);
}

type CatchUp = Pick<PromptRow, "catchUp" | "catchUpHours">;

/** The catch-up policy of a prompt after a change. Only the policy `window` keeps its hours. Throws bad_request. */
function catchUpAfterChange(patch: Partial<CatchUp>, current: CatchUp): CatchUp {
  const { catchUp = current.catchUp } = patch;
  const { catchUpHours = catchUp === "window" ? current.catchUpHours : null } = patch;
  if (catchUp === "window" && catchUpHours === null)
    throw invalidField("catchUpHours", "the catch-up policy window needs the hours within which an evaluation runs");
  if (catchUp !== "window" && catchUpHours !== null)
    throw invalidField("catchUpHours", "only the catch-up policy window has hours; set catchUp to window");
  return { catchUp, catchUpHours };
}

type AgentFields = { agent: string | null; model: string | null; agents: PromptAgent[] | null };

/**
 * The agents of a prompt after a change. `agents` is kept only for several agents, or for one with options. `agent` and `model` belong to the first
 * agent. A new `agent` or `model` without `agents` replaces the list. Throws bad_request, which names the field.
 */
function agentsAfterChange({ agents, agent, model }: Partial<PromptInput>, current: AgentFields): AgentFields {
  const list = agents?.map((each): PromptAgent => {
    const { options = {} } = each;
    const hasOptions = Object.keys(options).length > 0;
    return { agent: each.agent, model: each.model ?? null, ...(hasOptions && { options }) };
  });
  const [first] = list ?? [];
  if (!list || !first) {
    const isUnchanged = agents === undefined && agent === undefined && model === undefined;
    return {
      agent: agent === undefined ? current.agent : agent,
      model: model === undefined ? current.model : model,
      agents: isUnchanged ? current.agents : null,
    };
  }
  if (agent !== undefined && agent !== first.agent)
    throw invalidField("agents", `the first entry is ${first.agent}, but agent is ${agent}; omit agent`);
  if (model !== undefined && model !== first.model)
    throw invalidField("agents", `the first entry has the model ${first.model}, but model is ${model}; omit model`);
  return { agent: first.agent, model: first.model, agents: list.length > 1 || first.options ? list : null };
}

/** The schedule of an active prompt. null: the prompt has none or isn't active, or the schedules of its organization are paused. */
export function scheduleOf(
  ctx: Context,
  { id, orgId, status, frequency }: Pick<PromptRow, "id" | "orgId" | "status" | "frequency">,
): Schedule | null {
  if (frequency === null || status !== "active" || hasPausedSchedules(ctx.db, orgId)) return null;
  return { id, frequency, timeZone: timeZoneOf(ctx.db, orgId) };
}

/** Whether the end goal of a prompt is still the proposed one, if that repeats words of the docs. */
const repeatsDocs = ({ basis, endGoal }: PromptRow): boolean =>
  basis !== null && basis.ownGoal !== null && basis.ownGoal === endGoal;

function toPrompt(ctx: Context, row: PromptRow): Prompt {
  const { orgId: _org, nextEvaluationAt: _next, badgeToken, basis, basisChange, ...fields } = row;
  const schedule = scheduleOf(ctx, row);
  return {
    ...fields,
    basis: basis && {
      url: basis.url,
      line: basis.line,
      quote: basis.quote,
      digest: basis.digest,
      repeatsDocs: repeatsDocs(row),
      changedAt: toIso(basisChange?.at ?? null),
      changedInRunId: basisChange?.runId ?? null,
    },
    createdAt: toIso(row.createdAt),
    hasPublicBadge: badgeToken !== null,
    badgeUrl: badgeToken === null ? null : `${ctx.baseUrl()}/badges/${badgeToken}.svg`,
    warnings: warningsOfPrompt(ctx, row, row.runsPerEval ?? 1),
    nextRunsAt: schedule ? nextTimes(schedule, ctx.now(), 3).map((at) => toIso(at)) : null,
  };
}

/** Restarts the schedule from now; evaluations that were due before are dropped. */
function reschedule(ctx: Context, row: PromptRow): PromptRow {
  const schedule = scheduleOf(ctx, row);
  return { ...row, nextEvaluationAt: schedule && nextTime(schedule, ctx.now()) };
}
