import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { madeWithin } from "../db/rows.ts";
import { regrades, reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { rubricHash } from "../grading/judge/rubric.ts";
import { listMethodologies, type Methodology, stampOf } from "../grading/methodology.ts";
import { JobFailure, type JobHandler } from "../jobs/handler.ts";
import { enqueue, type Lease } from "../jobs/queue.ts";
import type { Grader } from "../reports/grader.ts";
import type { RunAnnouncements } from "../runs/announcements.ts";
import type { Judging } from "../runs/judging.ts";

import { createJudgeBudget } from "./judge-budget.ts";
import { getRegradeRow, type RegradeRow as Row } from "./regrade-row.ts";
import { createReportRegrade, type RegradeResult } from "./report-regrade.ts";

type Parts = {
  grader: Grader;
  judging: Judging;
  commit: Commit;
  announceSpending: RunAnnouncements["announceSpending"];
};
/** The last processed report, and the number of results of each kind since the last save. */
type Progress = Record<RegradeResult, number> & { cursor: string };

const from = (cursor: string): Progress => ({ cursor, graded: 0, unchanged: 0, withoutEvents: 0, failed: 0 });

const kind = "regrade";
/** After this time, a job ends and queues another one, so that waiting runs get their turn. */
const batchMs = 5_000;
/** How often progress is saved, and how long it works without yielding. */
const storeMs = 250;
const restMs = 10;
/** Number of reports to read at once. */
const pageRows = 50;

/** The job of a regrade: its next batch. */
export const jobOf = ({ id, orgId, batch }: Pick<Row, "id" | "orgId" | "batch">) => ({
  pool: "runs" as const,
  kind,
  subject: `${id}/${batch}`,
  orgId,
  host: "",
  maxAttempts: 3,
});

/** The methodology stamp of a regrade, for judged sessions or, without a judge, for those that no model judged. */
export const targetOf = (methodology: Methodology, judge: string | null) =>
  stampOf(methodology, judge === null ? null : { model: judge, rubric: rubricHash });

/** The reports of a regrade, after a given report. Sorted by ID, which is time order and the order of the index. */
export const meant = ({ orgId, promptId, since, until }: Row, after = "") =>
  and(
    eq(reports.orgId, orgId),
    promptId === null ? undefined : eq(reports.promptId, promptId),
    madeWithin(reports.id, [since, until]),
    gt(reports.id, after),
  );

/** The job of a regrade processes one report after another and stores each at once, so that a crash loses at most one. */
export function createRegradeJob(ctx: Context, { grader, judging, commit, announceSpending }: Parts): JobHandler {
  const { db, config, now } = ctx;
  const budget = createJudgeBudget(ctx, { commit, announceSpending });
  const { regrade, store } = createReportRegrade(ctx, { grader, judging, commit, budget });
  const methodologies = listMethodologies(config.methodology);
  const idOf = ({ subject }: Pick<Lease, "subject">) => subject.split("/")[0] as string;
  const getRow = (lease: Lease): Row => getRegradeRow(db, idOf(lease));
  const own = (lease: Lease) => eq(regrades.id, idOf(lease));
  const listNext = (row: Row, after: string) =>
    db
      .select({ report: reports, run: runs })
      .from(reports)
      .innerJoin(runs, eq(runs.id, reports.runId))
      .where(meant(row, after))
      .orderBy(asc(reports.id))
      .limit(pageRows)
      .all();

  /** Throws a JobFailure if the request no longer applies. */
  function methodologyOf({ methodology: id, judge, hash }: Row): Methodology {
    const found = methodologies.find((each) => each.id === id);
    if (found && targetOf(found, judge).hash === hash) return found;
    const why = found
      ? "has changed since the regrade was requested; request it again"
      : "is unknown to the service; set EVALD_METHODOLOGY";
    throw new JobFailure({ cause: "infrastructure", detail: `methodology ${id} ${why}` }, "never");
  }

  /** Saves the progress of a regrade. */
  function advance(tx: Tx, lease: Lease, { cursor, ...counts }: Progress): void {
    const added = Object.entries(counts).map(([name, n]) => [name, sql`${regrades[name as RegradeResult]} + ${n}`]);
    tx.update(regrades)
      .set({ cursor, ...Object.fromEntries(added) })
      .where(own(lease))
      .run();
  }

  return {
    started(tx, lease) {
      tx.update(regrades).set({ status: "running" }).where(own(lease)).run();
    },

    async run(lease, stop) {
      const row = getRow(lease);
      const methodology = methodologyOf(row);
      const began = performance.now();
      let [storedAt, restedAt] = [began, began];
      let progress = from(row.cursor);
      for (;;) {
        const page = listNext(row, progress.cursor);
        for (const next of page) {
          const { result, write } = await regrade(next, row, methodology, lease, stop);
          progress = { ...progress, cursor: next.report.id, [result]: progress[result] + 1 };
          if (write || row.judge !== null || performance.now() - storedAt > storeMs) {
            const reached = progress;
            await store(lease, (tx) => {
              write?.(tx);
              advance(tx, lease, reached);
            });
            progress = from(reached.cursor);
            storedAt = performance.now();
          }
          // Yields for as long as it worked.
          if (performance.now() - restedAt > restMs) {
            await Bun.sleep(row.judge === null ? performance.now() - restedAt : 0);
            restedAt = performance.now();
          }
          stop.throwIfAborted();
          if (performance.now() - began > batchMs)
            return (tx) => {
              advance(tx, lease, progress);
              const batch = row.batch + 1;
              tx.update(regrades).set({ batch, status: "pending" }).where(own(lease)).run();
              enqueue(ctx, tx, jobOf({ ...row, batch }));
            };
        }
        if (page.length < pageRows)
          return (tx) => {
            advance(tx, lease, progress);
            tx.update(regrades).set({ status: "completed", completedAt: now() }).where(own(lease)).run();
          };
      }
    },

    returned(tx, lease) {
      tx.update(regrades).set({ status: "pending" }).where(own(lease)).run();
    },

    failed(tx, lease, { cause: failureCause, detail: failureDetail }) {
      tx.update(regrades)
        .set({ status: "failed", failureCause, failureDetail, completedAt: now() })
        .where(own(lease))
        .run();
    },

    costOf: (lease) => budget.spentBy(lease) ?? (getRow(lease).judge === null ? 0 : null),
  };
}
