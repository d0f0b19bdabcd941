import { asc, eq, sql } from "drizzle-orm";
import { type Context, perContext } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { endedAt } from "../db/rows.ts";
import { regrades, reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { listMethodologies, type Methodology } from "../grading/methodology.ts";
import { JobFailure, type JobHandler } from "../jobs/handler.ts";
import { enqueue, type Lease } from "../jobs/queue.ts";
import { costOfRegradeAttempt } from "./judge-budget.ts";
import {
  getRegradeRow,
  gradingMethodologyOfRegrade,
  type RegradeRow,
  regradeIdOf,
  regradeJobOf,
  reportsOfRegrade,
} from "./regrade-row.ts";
import { type RegradeResult, regradeReport, storeUnderLease } from "./report-regrade.ts";

/** The last processed report, and for each kind how many results there were since progress was last saved. */
type Progress = Record<RegradeResult, number> & { cursor: string };

const progressFrom = (cursor: string): Progress => ({ cursor, graded: 0, unchanged: 0, withoutEvents: 0, failed: 0 });

/** After this time, a job ends and queues another one, so that waiting runs get their turn. */
const batchMs = 5_000;
/** How often progress is saved. */
const saveMs = 250;
/** How long it works before it yields. */
const workMs = 10;
/** Number of reports to read at once. */
const pageRows = 50;

const methodologiesOf = perContext((ctx) => listMethodologies(ctx.config.methodology));

const whereRegradeOf = (lease: Lease) => eq(regrades.id, regradeIdOf(lease));

/** The job of a regrade processes one report after another and stores each immediately, so that a crash loses at most one. */
export const createRegradeJob = (ctx: Context): JobHandler => ({
  onStart(tx, lease) {
    tx.update(regrades).set({ status: "running" }).where(whereRegradeOf(lease)).run();
  },
  run: (lease, stop) => regradeBatch(ctx, lease, stop),
  onRequeue(tx, lease) {
    tx.update(regrades).set({ status: "pending" }).where(whereRegradeOf(lease)).run();
  },
  onFailure(tx, lease, { cause: failureCause, detail: failureDetail }) {
    tx.update(regrades)
      .set({ status: "failed", failureCause, failureDetail, completedAt: endedAt(ctx.now(), regrades.createdAt) })
      .where(whereRegradeOf(lease))
      .run();
  },
  costOf: (lease) => costOfRegradeAttempt(ctx, lease),
});

/** Regrades reports until none is left or the time of a batch is over. Returns what to store. Throws a JobFailure. */
async function regradeBatch(ctx: Context, lease: Lease, stop: AbortSignal): Promise<(tx: Tx) => void> {
  const regrade = getRegradeRow(ctx.db, regradeIdOf(lease));
  const methodology = methodologyOf(ctx, regrade);
  const startedAt = performance.now();
  let savedAt = startedAt;
  let yieldedAt = startedAt;
  let progress = progressFrom(regrade.cursor);
  for (;;) {
    const page = listNextReports(ctx, regrade, progress.cursor);
    for (const { report, run } of page) {
      const { result, write } = await regradeReport(ctx, { report, run, regrade, methodology, lease, stop });
      progress = { ...progress, cursor: report.id, [result]: progress[result] + 1 };
      // A judgment cost money, so it is saved at once.
      if (write || regrade.judge !== null || performance.now() - savedAt > saveMs) {
        const current = progress;
        await storeUnderLease(ctx, lease, (tx) => {
          write?.(tx);
          saveProgress(tx, lease, current);
        });
        progress = progressFrom(current.cursor);
        savedAt = performance.now();
      }
      // It yields for as long as it worked. Waiting for a judge doesn't count as work.
      if (performance.now() - yieldedAt > workMs) {
        await Bun.sleep(regrade.judge === null ? performance.now() - yieldedAt : 0);
        yieldedAt = performance.now();
      }
      stop.throwIfAborted();
      if (performance.now() - startedAt > batchMs) return (tx) => queueNextBatch(ctx, tx, lease, regrade, progress);
    }
    if (page.length < pageRows)
      return (tx) => {
        saveProgress(tx, lease, progress);
        tx.update(regrades)
          .set({ status: "completed", completedAt: endedAt(ctx.now(), regrades.createdAt) })
          .where(whereRegradeOf(lease))
          .run();
      };
  }
}

/** The methodology of a regrade. Throws a JobFailure if the methodology changed since the request. */
function methodologyOf(ctx: Context, { methodology: id, judge, hash }: RegradeRow): Methodology {
  const methodology = methodologiesOf(ctx).find((each) => each.id === id);
  if (methodology && gradingMethodologyOfRegrade(methodology, judge).hash === hash) return methodology;
  const problem = methodology
    ? "has changed since the regrade was requested; request it again"
    : "is unknown to the service; set EVALD_METHODOLOGY";
  throw new JobFailure({ cause: "infrastructure", detail: `methodology ${id} ${problem}` }, "never");
}

const listNextReports = ({ db }: Context, regrade: RegradeRow, afterId: string) =>
  db
    .select({ report: reports, run: runs })
    .from(reports)
    .innerJoin(runs, eq(runs.id, reports.runId))
    .where(reportsOfRegrade(regrade, afterId))
    .orderBy(asc(reports.id))
    .limit(pageRows)
    .all();

function saveProgress(tx: Tx, lease: Lease, { cursor, ...counts }: Progress): void {
  const sums = Object.entries(counts).map(([name, n]) => [name, sql`${regrades[name as RegradeResult]} + ${n}`]);
  tx.update(regrades)
    .set({ cursor, ...Object.fromEntries(sums) })
    .where(whereRegradeOf(lease))
    .run();
}

function queueNextBatch(ctx: Context, tx: Tx, lease: Lease, regrade: RegradeRow, progress: Progress): void {
  saveProgress(tx, lease, progress);
  const batch = regrade.batch + 1;
  tx.update(regrades).set({ batch, status: "pending" }).where(whereRegradeOf(lease)).run();
  enqueue(ctx, tx, regradeJobOf({ ...regrade, batch }));
}
