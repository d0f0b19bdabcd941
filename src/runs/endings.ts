import { and, asc, eq, inArray, isNull } from "drizzle-orm";
import type { EndCause } from "../agents/failure.ts";
import type { Context, OrgId } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { attempts, jobs } from "../db/tables/jobs.ts";
import { runs } from "../db/tables/runs.ts";
import { conflict } from "../errors.ts";
import { cancelJob, type Lease } from "../jobs/queue.ts";
import { hostsOf } from "../net/mapping.ts";
import { toIso } from "../schema.ts";
import type { RunAnnouncements } from "./announcements.ts";
import { getRunRow } from "./run-row.ts";
import type { Attempt } from "./schema.ts";

type Parts = {
  commit: Commit;
  costOf: (lease: Lease) => number | null;
  announceEnd: RunAnnouncements["announceEnd"];
};

export type Endings = ReturnType<typeof createEndings>;

/** Cancels and supersedes runs, and lists their attempts. */
export function createEndings({ db, now, signals }: Context, { commit, costOf, announceEnd }: Parts) {
  function end(
    tx: Tx,
    runId: string,
    status: "failed" | "superseded",
    failureCause: EndCause,
    failureDetail: string,
  ): void {
    const at = now();
    const reason = `${failureCause}: ${failureDetail}`;
    cancelJob(tx, { kind: "run", subject: runId, reason, at }, costOf);
    tx.update(runs)
      .set({ status, failureCause, failureDetail, completedAt: at, reservedUsd: null, waitingFor: null })
      .where(eq(runs.id, runId))
      .run();
    announceEnd(tx, runId, status === "failed" ? { cause: failureCause, detail: failureDetail } : null);
  }

  /** Stops what is still running of ended runs. Call it once their end is on disk. */
  function stopEnded(runIds: string[]): void {
    signals.jobCancelled.emit();
    signals.runsEnded.emit(runIds);
  }

  return {
    stopEnded,

    /** Cancels an unfinished run, which becomes failed; `by` names who cancelled it. A session in progress stops within a second. Throws not_found, or conflict for an ended run. */
    async cancelRun(org: OrgId, id: string, by: string): Promise<void> {
      const runId = await commit((tx) => {
        const run = getRunRow(tx, org, id);
        if (run.completedAt !== null) throw conflict(`The run has already ended with status ${run.status}.`);
        end(tx, run.id, "failed", "cancelled", `by ${by}`);
        return run.id;
      });
      stopEnded([runId]);
    },

    /** Supersedes the unfinished runs of a prompt whose urlMap replaces the same hosts, in favor of the run `successor`. Returns their IDs. */
    supersede(tx: Tx, org: OrgId, promptId: string, urlMap: Record<string, string>, successor: string): string[] {
      const hosts = hostsOf(urlMap);
      const unfinished = and(eq(runs.orgId, org), eq(runs.promptId, promptId), isNull(runs.completedAt));
      const rows = tx.select({ id: runs.id, urlMap: runs.urlMap }).from(runs).where(unfinished).all();
      const same = rows.filter((row) => hostsOf(row.urlMap) === hosts).map(({ id }) => id);
      for (const id of same) end(tx, id, "superseded", "superseded", `by run ${successor}`);
      return same;
    },

    /** The attempts of a run, oldest first. Throws not_found. */
    listAttempts(org: OrgId, id: string): Attempt[] {
      const run = getRunRow(db, org, id);
      const job = db
        .select({ id: jobs.id })
        .from(jobs)
        .where(and(eq(jobs.kind, "run"), eq(jobs.subject, run.id)));
      return db
        .select({
          attempt: attempts.attempt,
          startedAt: attempts.startedAt,
          completedAt: attempts.completedAt,
          outcome: attempts.outcome,
          reason: attempts.reason,
          costUsd: attempts.costUsd,
        })
        .from(attempts)
        .where(inArray(attempts.jobId, job))
        .orderBy(asc(attempts.attempt))
        .all()
        .map(({ startedAt, completedAt, ...rest }) => ({
          ...rest,
          startedAt: toIso(startedAt),
          completedAt: toIso(completedAt),
        }));
    },
  };
}
