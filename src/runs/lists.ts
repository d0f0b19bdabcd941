import { and, asc, desc, eq, gt, gte, inArray, isNull, lt, type SQL, sql } from "drizzle-orm";
import type { StoredFailure } from "../agents/failure.ts";
import type { Context, OrgId } from "../context.ts";
import { reports } from "../db/tables/reports.ts";
import { evalRequests, type runStatuses, runs, type Trigger, type WaitingFor } from "../db/tables/runs.ts";
import { invalidField } from "../errors.ts";
import type { Scope } from "../grading/grade.ts";
import { isDescending, type Sort } from "../http/sorting.ts";
import { scoreColumns } from "../reports/run-rows.ts";
import { toIso } from "../schema.ts";
import { type KeysetPage, type RunFilter, runConditions, runIdsByDuration } from "./run-conditions.ts";
import { findRunRow, type RunRow } from "./run-row.ts";

type Status = (typeof runStatuses)[number];

/** What a run read in place of the unchanged live docs. */
export type DocsVariant = "preview" | "edited" | null;

/** A run as a list shows it. */
export type RunListItem = StoredFailure & {
  runId: string;
  status: Status;
  /** The title when the run was requested. The prompt may have been renamed since. */
  title: string;
  promptId: string;
  agent: string;
  /** null: it has not started. */
  agentVersion: string | null;
  model: string | null;
  trigger: Trigger;
  evalRequestId: string;
  /** Number of runs of its evaluation. */
  runsOfEval: number;
  docsVariant: DocsVariant;
  createdAt: string;
  startedAt: string | null;
  completedAt: string | null;
  waitingFor: WaitingFor | null;
  report: {
    slug: string;
    score: number | null;
    grade: string | null;
    scope: Scope;
    outcome: (typeof reports.$inferSelect)["outcome"];
  } | null;
};

export const runSortColumns = ["created", "duration"] as const;
export type RunSort = Sort<(typeof runSortColumns)[number]>;

const title = sql<string>`coalesce(json_extract(${runs.task}, '$.title'), substr(json_extract(${runs.task}, '$.text'), 1, 200))`;

const docsVariant = sql<DocsVariant>`case when json_extract(${runs.task}, '$.edits') is not null then 'edited' when ${runs.urlMap} <> '{}' then 'preview' end`;

const columns = {
  runId: runs.id,
  status: runs.status,
  failureCause: runs.failureCause,
  failureCode: runs.failureCode,
  failureSubject: runs.failureSubject,
  failureDetail: runs.failureDetail,
  title,
  promptId: runs.promptId,
  agent: runs.agent,
  agentVersion: runs.agentVersion,
  model: runs.model,
  trigger: evalRequests.trigger,
  evalRequestId: runs.evalRequestId,
  runsOfEval: sql<number>`(select count(*) from runs of_eval where of_eval.org_id = ${runs.orgId} and of_eval.eval_request_id = ${runs.evalRequestId})`,
  docsVariant,
  createdAt: runs.createdAt,
  startedAt: runs.startedAt,
  completedAt: runs.completedAt,
  waitingFor: runs.waitingFor,
  report: scoreColumns,
};

/**
 * Newest first unless sorted. `before`: the last run of the previous page. `next`: the last run of this page; null if there are no more pages. Throws
 * bad_request.
 */
export function listRunPage(
  ctx: Context,
  org: OrgId,
  { sort = "-created", ...filter }: RunFilter & { sort?: RunSort },
  { limit, before }: { limit: number; before?: string },
) {
  const last = before === undefined ? undefined : findRunRow(ctx, org, before);
  if (before !== undefined && !last) throw invalidField("before", `no run has the ID ${before}`);
  const page = { limit: limit + 1, isDescending: isDescending(sort) };
  const list = sort === "duration" || sort === "-duration" ? listByDuration : listByTime;
  const rows = list(ctx, org, filter, page, last);
  const items = rows.slice(0, limit);
  return { items, next: rows.length > limit ? (items.at(-1)?.runId ?? null) : null };
}

/** The newest runs whose ID starts with the text. */
export function listRunsByPrefix(ctx: Context, org: OrgId, text: string, limit: number): RunListItem[] {
  const from = text.toLowerCase();
  // Letters after f are greater than the rest of every ID.
  return select(ctx, and(eq(runs.orgId, org), gte(runs.id, from), lt(runs.id, `${from}g`)), { limit });
}

/** Pending and running runs, newest first. */
export const listUnfinishedRuns = (ctx: Context, org: OrgId, limit: number): RunListItem[] =>
  select(ctx, and(eq(runs.orgId, org), isNull(runs.completedAt)), { limit });

/** Selects runs with their requests. SQLite keeps the order of a cross join. With `byTrigger` it reads the requests first, otherwise the runs. */
function select(
  ctx: Context,
  where: SQL | undefined,
  { limit, byTrigger = false, isDescending = true }: { limit: number; byTrigger?: boolean; isDescending?: boolean },
): RunListItem[] {
  const order = isDescending ? desc : asc;
  const joinCondition = and(eq(runs.orgId, evalRequests.orgId), eq(runs.evalRequestId, evalRequests.id), where);
  const rows = byTrigger
    ? ctx.db
        .select(columns)
        .from(evalRequests)
        .crossJoin(runs)
        .leftJoin(reports, eq(reports.runId, runs.id))
        .where(joinCondition)
        // The IDs of requests are in time order, and so are the IDs of runs.
        .orderBy(order(evalRequests.id), order(runs.id))
    : ctx.db
        .select(columns)
        .from(runs)
        .crossJoin(evalRequests)
        .leftJoin(reports, eq(reports.runId, runs.id))
        .where(joinCondition)
        .orderBy(order(runs.id));
  return rows
    .limit(limit)
    .all()
    .map(({ createdAt, startedAt, completedAt, ...rest }) => ({
      ...rest,
      createdAt: toIso(createdAt),
      startedAt: toIso(startedAt),
      completedAt: toIso(completedAt),
    }));
}

function listByDuration(ctx: Context, org: OrgId, filter: RunFilter, page: KeysetPage, last?: RunRow): RunListItem[] {
  const ids = runIdsByDuration(ctx, org, filter, { ...page, last });
  const rows = select(ctx, and(eq(runs.orgId, org), inArray(runs.id, ids)), { limit: ids.length });
  const rowsById = new Map(rows.map((row) => [row.runId, row]));
  return ids.flatMap((id) => rowsById.get(id) ?? []);
}

function listByTime(
  ctx: Context,
  org: OrgId,
  filter: RunFilter,
  { limit, isDescending }: KeysetPage,
  last?: RunRow,
): RunListItem[] {
  const { where, byTrigger } = runConditions(ctx, org, filter);
  if (!last) return select(ctx, where, { limit, byTrigger, isDescending });
  if (!byTrigger)
    return select(ctx, and(where, isDescending ? lt(runs.id, last.id) : gt(runs.id, last.id)), { limit, isDescending });
  const comparison = isDescending ? sql.raw("<") : sql.raw(">");
  // The first part is a bound that the index of requests can use.
  const whereAfterLast = sql`${evalRequests.id} ${comparison}= ${last.evalRequestId} and (${evalRequests.id}, ${runs.id}) ${comparison} (${last.evalRequestId}, ${last.id})`;
  return select(ctx, and(where, whereAfterLast), { limit, byTrigger, isDescending });
}

/** By the IDs of runs, what each read in place of the live docs. */
export function docsVariantsOf({ db }: Context, org: OrgId, runIds: string[]): Map<string, DocsVariant> {
  const where = and(eq(runs.orgId, org), inArray(runs.id, runIds));
  const rows = db.select({ id: runs.id, docsVariant }).from(runs).where(where).all();
  return new Map(rows.map((row) => [row.id, row.docsVariant]));
}

/** What a run read in place of the live docs. */
export function docsVariantOf({ urlMap, edits }: { urlMap: Record<string, string>; edits?: unknown }): DocsVariant {
  if (edits !== undefined) return "edited";
  return Object.keys(urlMap).length > 0 ? "preview" : null;
}
