import { and, asc, eq, isNull } from "drizzle-orm";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { attempts, jobs, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { conflict, notFound } from "../errors.ts";
import type { Lease, Queue } from "../jobs/queue.ts";
import type { Attempt } from "./schema.ts";

type Parts = {
  queue: Queue;
  commit: Commit;
  costOf: (lease: Lease) => number | null;
  /** Called once the end of runs is on the disk. */
  onEnded: () => void;
};

export type Endings = ReturnType<typeof createEndings>;

/** Runs that are ended from outside, and the history of how a run was tried. */
export function createEndings({ db, now }: Pick<Deps, "db" | "now">, { queue, commit, costOf, onEnded }: Parts) {
  function end(t: Tx, runId: string, status: "failed" | "superseded", reason: string): void {
    queue.cancel(t, "run", runId, reason, costOf);
    t.update(runs)
      .set({ status, failureReason: reason, completedAt: now(), reservedUsd: null })
      .where(eq(runs.id, runId))
      .run();
  }

  function getRow(t: Pick<Tx, "select">, org: OrgId, id: string) {
    const own = and(eq(runs.orgId, org), eq(runs.id, id.toLowerCase()));
    const row = t
      .select({ id: runs.id, status: runs.status, completedAt: runs.completedAt })
      .from(runs)
      .where(own)
      .get();
    if (!row) throw notFound(`no run has the id ${id}`);
    return row;
  }

  return {
    onEnded,

    /** Ends an unfinished run as failed; `by` says who wants it. A session in progress stops within a second. Throws not_found, conflict for a run that has ended. */
    async cancelRun(org: OrgId, id: string, by: string): Promise<void> {
      await commit((t) => {
        const run = getRow(t, org, id);
        if (run.completedAt !== null) throw conflict(`the run has ended already: it is ${run.status}`);
        end(t, run.id, "failed", `cancelled: by ${by}`);
      });
      onEnded();
    },

    /** Ends the unfinished runs of a prompt whose urlMap has the same keys, for the run of `successor` makes them moot. Answers with their number. */
    supersede(t: Tx, org: OrgId, promptId: string, urlMap: Record<string, string>, successor: string): number {
      const keysOf = (map: Record<string, string>) => JSON.stringify(Object.keys(map).sort());
      const unfinished = and(eq(runs.orgId, org), eq(runs.promptId, promptId), isNull(runs.completedAt));
      const rows = t.select({ id: runs.id, urlMap: runs.urlMap }).from(runs).where(unfinished).all();
      const same = rows.filter((row) => keysOf(row.urlMap) === keysOf(urlMap));
      for (const { id } of same) end(t, id, "superseded", `superseded: by run ${successor}`);
      return same.length;
    },

    /** Each time that a run was begun, oldest first: when, how it ended, what it cost. Throws not_found. */
    listAttempts(org: OrgId, id: string): Attempt[] {
      const run = getRow(db, org, id);
      return db
        .select({
          attempt: attempts.attempt,
          begunAt: attempts.begunAt,
          endedAt: attempts.endedAt,
          ended: attempts.ended,
          reason: attempts.reason,
          costUsd: attempts.costUsd,
        })
        .from(attempts)
        .innerJoin(jobs, eq(jobs.id, attempts.jobId))
        .where(and(eq(jobs.kind, "run"), eq(jobs.subject, run.id)))
        .orderBy(asc(attempts.attempt))
        .all()
        .map(({ begunAt, endedAt, ...rest }) => ({
          ...rest,
          begunAt: new Date(begunAt).toISOString(),
          endedAt: endedAt === null ? null : new Date(endedAt).toISOString(),
        }));
    },
  };
}
