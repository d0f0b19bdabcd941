import { and, asc, desc, eq, inArray, isNull, type SQL, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { plusUnless } from "../db/rows.ts";
import type { ReportStatus } from "../db/tables/reports.ts";
import { durationOf, evalRequests, type runStatuses, runs, type Trigger } from "../db/tables/runs.ts";
import type { RunRow } from "./run-row.ts";

type Status = (typeof runStatuses)[number];

/** Filters of runs in the API. */
export type ApiRunFilter = {
  promptId?: string;
  status?: Status;
  agent?: string;
  trigger?: Trigger;
  reportStatus?: ReportStatus;
};

/** The value of `model` that selects runs without a model. */
export const noModel = "none";

/** Filters of run lists. */
export type RunFilter = Omit<ApiRunFilter, "reportStatus"> & { model?: string };

/** If an agent or trigger has at most this many runs, its index is used. */
const maxRareRuns = 1000;

const isUnfinished = (status: Status | undefined): boolean => status === "pending" || status === "running";
const hasNoReport = (status: Status | undefined): boolean => status === "failed" || status === "superseded";

/**
 * A condition that matches the partial index of runs without a report. It must come after the condition of the single requested status. Otherwise
 * SQLite sorts.
 */
const withoutReport = sql`${runs.status} in ('failed', 'superseded')`;

/** The value of `durationOf`. */
const durationOfRow = ({ completedAt, startedAt }: RunRow): number =>
  startedAt !== null && completedAt !== null && completedAt > startedAt ? completedAt - startedAt : -1;

export type KeysetPage = { limit: number; isDescending: boolean };

// SQLite often chooses the wrong index for a list. So a plus stands before each column whose index it must not use (`plusUnless`).

/** The filter whose index SQLite should use to find the runs of a list. Without such a filter, it reads all runs in their order. */
function indexedFilterOf(ctx: Context, org: OrgId, { promptId, status, agent, trigger }: RunFilter) {
  if (isUnfinished(status) || hasNoReport(status)) return "status";
  if (agent !== undefined && isRareAgent(ctx, org, agent)) return "agent";
  if (trigger !== undefined) return "trigger";
  return promptId ? "prompt" : "agent";
}

/** The condition of a list. `byTrigger`: the runs are found by their requests. */
export function runConditions(ctx: Context, org: OrgId, filter: RunFilter) {
  const { promptId, status, agent, model, trigger } = filter;
  const indexed = indexedFilterOf(ctx, org, filter);
  const byTrigger = indexed === "trigger";
  const id = promptId?.toLowerCase();
  const where = and(
    byTrigger ? eq(evalRequests.orgId, org) : eq(runs.orgId, org),
    isUnfinished(status) ? isNull(runs.completedAt) : undefined,
    status && sql`${plusUnless(hasNoReport(status))}${runs.status} = ${status}`,
    hasNoReport(status) ? withoutReport : undefined,
    id && byTrigger ? eq(evalRequests.promptId, id) : undefined,
    id && !byTrigger ? sql`${plusUnless(indexed === "prompt")}${runs.promptId} = ${id}` : undefined,
    // The requests of a prompt are found by the prompt's index. Without a prompt, this hint makes SQLite use the index of triggers, even if its
    // statistics contain only one value.
    trigger &&
      (byTrigger && !promptId
        ? sql`unlikely(${evalRequests.trigger} = ${trigger})`
        : sql`+${evalRequests.trigger} = ${trigger}`),
    agent ? sql`${plusUnless(indexed === "agent")}${runs.agent} = ${agent}` : undefined,
    model ? usesModel(model) : undefined,
  );
  return { where, byTrigger };
}

const usesModel = (model: string): SQL => (model === noModel ? isNull(runs.model) : eq(runs.model, model));

/** The IDs of a page by duration, from the index of durations unless a filter matches few runs. */
export function runIdsByDuration(
  ctx: Context,
  org: OrgId,
  filter: RunFilter,
  { last, limit, isDescending }: KeysetPage & { last?: RunRow },
) {
  const { promptId, status, agent, model, trigger } = filter;
  const hasRareTrigger = trigger !== undefined && isRareTrigger(ctx, org, trigger);
  const duration = durationOf(runs);
  const comparison = isDescending ? sql.raw("<") : sql.raw(">");
  const where = and(
    eq(runs.orgId, org),
    isUnfinished(status) ? isNull(runs.completedAt) : undefined,
    status === undefined ? undefined : eq(runs.status, status),
    hasNoReport(status) ? withoutReport : undefined,
    promptId === undefined ? undefined : sql`+${runs.promptId} = ${promptId.toLowerCase()}`,
    agent === undefined ? undefined : sql`${plusUnless(isRareAgent(ctx, org, agent))}${runs.agent} = ${agent}`,
    model ? usesModel(model) : undefined,
    trigger && inTrigger(ctx, org, trigger, hasRareTrigger),
    last && sql`(${duration}, ${runs.id}) ${comparison} (${durationOfRow(last)}, ${last.id})`,
  );
  const order = isDescending ? [desc(duration), desc(runs.id)] : [asc(duration), asc(runs.id)];
  const rows = ctx.db.select({ id: runs.id }).from(runs).where(where);
  return rows
    .orderBy(...order)
    .limit(limit)
    .all()
    .map(({ id }) => id);
}

/** Whether an agent has so few runs that scanning them all is cheap. */
const isRareAgent = (ctx: Context, org: OrgId, agent: string): boolean =>
  ctx.db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.agent, agent)))
    .limit(1)
    .offset(maxRareRuns)
    .get() === undefined;

const isRareTrigger = (ctx: Context, org: OrgId, trigger: Trigger): boolean =>
  ctx.db
    .select({ id: evalRequests.id })
    .from(evalRequests)
    .where(and(eq(evalRequests.orgId, org), eq(evalRequests.trigger, trigger)))
    .limit(1)
    .offset(maxRareRuns)
    .get() === undefined;

/** The runs that this trigger requested. If there are few, this is a list of them. If there are many, each run is checked. */
function inTrigger(ctx: Context, org: OrgId, trigger: Trigger, hasRareTrigger: boolean): SQL {
  const matchesTrigger = and(eq(evalRequests.orgId, org), eq(evalRequests.trigger, trigger));
  const ids = ctx.db.select({ id: evalRequests.id }).from(evalRequests);
  if (hasRareTrigger) return inArray(runs.evalRequestId, ids.where(matchesTrigger));
  return sql`+${runs.evalRequestId} in ${ids.where(and(matchesTrigger, eq(evalRequests.id, runs.evalRequestId)))}`;
}
