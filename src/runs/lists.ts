import { and, desc, eq, gte, isNull, lt, ne, type SQL, sql } from "drizzle-orm";
import type { StoredFailure } from "../agents/failure.ts";
import { evalRequests, type ReportStatus, reports, type runStatuses, runs, type Trigger } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { invalidField } from "../errors.ts";
import type { Scope } from "../grading/grade.ts";
import { toIso } from "../schema.ts";
import { findRunRow } from "./run-row.ts";

/** Maximum runs of an agent for which the agent index is used. */
const few = 1000;

/** A condition that matches the partial index of runs without a report. It must follow the single requested status, or SQLite sorts. */
const withoutReport = sql`${runs.status} in ('failed', 'superseded')`;

type Status = (typeof runStatuses)[number];

/** Filters of run lists. */
export type RunFilter = {
  promptId?: string;
  status?: Status;
  agent?: string;
  trigger?: Trigger;
  reportStatus?: ReportStatus;
};

/** Only the API lists filter by report status. */
export type LineFilter = Omit<RunFilter, "reportStatus">;

/** A run as a list shows it. */
export type RunLine = StoredFailure & {
  runId: string;
  status: Status;
  /** Title when the run was requested; the prompt may have been renamed since. */
  title: string;
  promptId: string;
  agent: string;
  model: string | null;
  trigger: Trigger;
  createdAt: string;
  startedAt: string | null;
  completedAt: string | null;
  report: {
    slug: string;
    score: number | null;
    grade: string | null;
    scope: Scope;
    outcome: (typeof reports.$inferSelect)["outcome"];
  } | null;
};

/** Lists runs with keyset pagination, so the cost of a page does not depend on the number of runs. */
export function createRunLines({ db, now }: Pick<Deps, "db" | "now">) {
  const title = sql<string>`coalesce(json_extract(${runs.task}, '$.title'), substr(json_extract(${runs.task}, '$.text'), 1, 200))`;

  const columns = {
    runId: runs.id,
    status: runs.status,
    failureCause: runs.failureCause,
    failureDetail: runs.failureDetail,
    title,
    promptId: runs.promptId,
    agent: runs.agent,
    model: runs.model,
    trigger: evalRequests.trigger,
    createdAt: runs.createdAt,
    startedAt: runs.startedAt,
    completedAt: runs.completedAt,
    report: {
      slug: reports.slug,
      score: reports.score,
      scope: reports.scope,
      grade: reports.grade,
      outcome: reports.outcome,
    },
  };

  /** `byTrigger`: start with requests, then join runs; a cross join keeps SQLite from reordering them. */
  function select(where: SQL | undefined, limit: number, byTrigger = false): RunLine[] {
    const own = and(eq(runs.orgId, evalRequests.orgId), eq(runs.evalRequestId, evalRequests.id), where);
    const rows = byTrigger
      ? db
          .select(columns)
          .from(evalRequests)
          .crossJoin(runs)
          .leftJoin(reports, eq(reports.runId, runs.id))
          .where(own)
          // The IDs of requests are in time order, like those of runs.
          .orderBy(desc(evalRequests.id), desc(runs.id))
      : db
          .select(columns)
          .from(runs)
          .crossJoin(evalRequests)
          .leftJoin(reports, eq(reports.runId, runs.id))
          .where(own)
          .orderBy(desc(runs.id));
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

  /** Whether an agent has so few runs that scanning them all is cheap. */
  const isRare = (org: OrgId, agent: string): boolean =>
    db
      .select({ id: runs.id })
      .from(runs)
      .where(and(eq(runs.orgId, org), eq(runs.agent, agent)))
      .limit(1)
      .offset(few)
      .get() === undefined;

  /** The most selective condition leads; a plus keeps SQLite from using another one's index. */
  function conditions(org: OrgId, { promptId, status, agent, trigger }: LineFilter) {
    const isOpen = status === "pending" || status === "running";
    const isWithout = status === "failed" || status === "superseded";
    const isFew = agent !== undefined && isRare(org, agent);
    const byTrigger = trigger !== undefined && !isOpen && !isWithout && !isFew;
    const leads =
      isOpen || isWithout ? "status" : isFew ? "agent" : byTrigger ? "trigger" : promptId ? "prompt" : "agent";
    const where = and(
      byTrigger ? eq(evalRequests.orgId, org) : eq(runs.orgId, org),
      isOpen ? isNull(runs.completedAt) : undefined,
      status && (isWithout ? eq(runs.status, status) : sql`+${runs.status} = ${status}`),
      isWithout ? withoutReport : undefined,
      promptId && byTrigger ? eq(evalRequests.promptId, promptId.toLowerCase()) : undefined,
      promptId && !byTrigger
        ? sql`${leads === "prompt" ? sql`` : sql`+`}${runs.promptId} = ${promptId.toLowerCase()}`
        : undefined,
      // With a literal, SQLite uses the index of triggers even if its statistics contain only one value.
      trigger &&
        (byTrigger && !promptId
          ? sql`unlikely(${evalRequests.trigger} = ${trigger})`
          : sql`+${evalRequests.trigger} = ${trigger}`),
      agent ? sql`${leads === "agent" ? sql`` : sql`+`}${runs.agent} = ${agent}` : undefined,
    );
    return { where, byTrigger };
  }

  return {
    /**
     * Newest first. `before`: the last run of the previous page; `next`: the last one of this page, null if it is the
     * last page. Throws bad_request.
     */
    listNewest(org: OrgId, filter: LineFilter, { limit, before }: { limit: number; before?: string }) {
      const { where, byTrigger } = conditions(org, filter);
      let after: SQL | undefined;
      if (before !== undefined) {
        const last = findRunRow(db, org, before);
        if (!last) throw invalidField("before", `no run has the ID ${before}`);
        // The first part is a lower bound that the index of requests can use.
        after = byTrigger
          ? sql`${evalRequests.id} <= ${last.evalRequestId} and (${evalRequests.id}, ${runs.id}) < (${last.evalRequestId}, ${last.id})`
          : lt(runs.id, last.id);
      }
      const lines = select(and(where, after), limit + 1, byTrigger);
      const items = lines.slice(0, limit);
      return { items, next: lines.length > limit ? (items.at(-1)?.runId ?? null) : null };
    },

    /** Pending and running runs, newest first. */
    listUnfinished: (org: OrgId, limit: number): RunLine[] =>
      select(and(eq(runs.orgId, org), isNull(runs.completedAt)), limit),

    /** Runs that failed within the last `withinMs`, without cancelled ones, newest first. */
    listBroken: (org: OrgId, { limit, withinMs }: { limit: number; withinMs: number }): RunLine[] =>
      select(
        and(
          eq(runs.orgId, org),
          eq(runs.status, "failed"),
          withoutReport,
          ne(runs.failureCause, "cancelled"),
          gte(runs.createdAt, now() - withinMs),
        ),
        limit,
      ),
  };
}
