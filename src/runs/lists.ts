import { and, desc, eq, gte, isNull, lt, not, type SQL, sql } from "drizzle-orm";
import { evalRequests, reports, type runStatuses, runs, type Trigger } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest } from "../errors.ts";

type Status = (typeof runStatuses)[number];

export type RunFilter = { promptId?: string; status?: Status; agent?: string; trigger?: Trigger };

/** A run as a list shows it. */
export type RunLine = {
  runId: string;
  status: Status;
  failureReason: string | null;
  /** As the run was asked for: the prompt may be called otherwise by now. */
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
    outcome: (typeof reports.$inferSelect)["outcome"];
  } | null;
};

/** Runs as lists for people: a page costs the same however many runs there are, for it goes on where the last one ended. */
export function createRunLists({ db, now }: Pick<Deps, "db" | "now">) {
  const title = sql<string>`coalesce(json_extract(${runs.task}, '$.title'), substr(json_extract(${runs.task}, '$.text'), 1, 200))`;
  const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());

  function select(where: SQL | undefined, limit: number, isByTrigger = false): RunLine[] {
    const from = db
      .select({
        runId: runs.id,
        status: runs.status,
        failureReason: runs.failureReason,
        title,
        promptId: runs.promptId,
        agent: runs.agent,
        model: runs.model,
        trigger: evalRequests.trigger,
        createdAt: runs.createdAt,
        startedAt: runs.startedAt,
        completedAt: runs.completedAt,
        report: { slug: reports.slug, score: reports.score, grade: reports.grade, outcome: reports.outcome },
      })
      .from(runs)
      .innerJoin(evalRequests, eq(evalRequests.id, runs.evalRequestId))
      .leftJoin(reports, eq(reports.runId, runs.id));
    return (
      from
        .where(where)
        // The ids of requests follow time as those of runs do, and are what their index is ordered by.
        .orderBy(...(isByTrigger ? [desc(evalRequests.id)] : []), desc(runs.id))
        .limit(limit)
        .all()
        .map(({ createdAt, startedAt, completedAt, ...rest }) => ({
          ...rest,
          createdAt: new Date(createdAt).toISOString(),
          startedAt: iso(startedAt),
          completedAt: iso(completedAt),
        }))
    );
  }

  /** Of the conditions the one that leaves least leads; a plus keeps SQLite from the index of another. */
  function conditions(org: OrgId, { promptId, status, agent, trigger }: RunFilter) {
    const isRare = status !== undefined && status !== "completed";
    const leads = isRare ? "status" : promptId ? "prompt" : trigger ? "trigger" : agent ? "agent" : null;
    const ifLeads = (name: string, column: SQL | typeof runs.status, value: string) =>
      leads === name ? sql`${column} = ${value}` : sql`+${column} = ${value}`;
    const isOpen = status === "pending" || status === "running";
    const where = and(
      // Both, so that either may lead: they are the same.
      leads === "trigger" ? eq(evalRequests.orgId, org) : eq(runs.orgId, org),
      eq(runs.orgId, org),
      isOpen ? isNull(runs.completedAt) : undefined,
      // The index of those without a report is known by these words.
      isRare && !isOpen ? sql`${runs.status} in ('failed', 'superseded')` : undefined,
      status && (isRare && !isOpen ? eq(runs.status, status) : sql`+${runs.status} = ${status}`),
      promptId ? ifLeads("prompt", sql`${runs.promptId}`, promptId.toLowerCase()) : undefined,
      trigger ? ifLeads("trigger", sql`${evalRequests.trigger}`, trigger) : undefined,
      agent ? ifLeads("agent", sql`${runs.agent}`, agent) : undefined,
    );
    return { where, leads };
  }

  return {
    /** Newest first. `before`: the last run of the page before; `next` is that of this page, null if nothing follows. Throws bad_request. */
    listNewest(org: OrgId, filter: RunFilter, { limit, before }: { limit: number; before?: string }) {
      const { where, leads } = conditions(org, filter);
      let after: SQL | undefined;
      if (before !== undefined) {
        const own = and(eq(runs.orgId, org), eq(runs.id, before.toLowerCase()));
        const last = db.select({ id: runs.id, request: runs.evalRequestId }).from(runs).where(own).get();
        if (!last) throw badRequest(`before: no run has the id ${before}`);
        after =
          leads === "trigger"
            ? sql`(${evalRequests.id}, ${runs.id}) < (${last.request}, ${last.id})`
            : lt(runs.id, last.id);
      }
      const lines = select(and(where, after), limit + 1, leads === "trigger");
      const items = lines.slice(0, limit);
      return { items, next: lines.length > limit ? (items.at(-1)?.runId ?? null) : null };
    },

    /** What waits or runs now, newest first. */
    listUnfinished: (org: OrgId, limit: number): RunLine[] =>
      select(and(eq(runs.orgId, org), isNull(runs.completedAt)), limit),

    /** Runs of the last `withinMs` that failed for another reason than that somebody wanted it, newest first. */
    listBroken: (org: OrgId, { limit, withinMs }: { limit: number; withinMs: number }): RunLine[] =>
      select(
        and(
          eq(runs.orgId, org),
          sql`${runs.status} in ('failed', 'superseded')`,
          eq(runs.status, "failed"),
          not(sql`${runs.failureReason} like 'cancelled:%'`),
          gte(runs.createdAt, now() - withinMs),
        ),
        limit,
      ),
  };
}
