import { and, eq, isNull, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import { isTemporary } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { endedAt } from "../db/rows.ts";
import { type Arm, experimentRuns, experiments } from "../db/tables/experiments.ts";
import { runs } from "../db/tables/runs.ts";
import { createPoll } from "../poll.ts";
import { readSessionInBatches } from "../reports/session-events.ts";
import { addRepeat } from "./requests.ts";
import { analyzeRuns, costOf, type ExperimentRow, ofExperiment, progressOf } from "./results.ts";
import { treatmentOf } from "./treatments.ts";

/** Interval for checks of experiments whose runs have ended. */
const pollMs = 500;

/** Checks again and again whether experiments can advance. */
export function createExperimentLoop(ctx: Context) {
  const poll = createPoll({
    check: () => advanceExperiments(ctx).then(() => pollMs),
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not check experiments");
    },
    retryMs: pollMs,
  });
  return { start: poll.start, stop: poll.stop };
}

/** Advances every running experiment: notes which treatments its ended runs met, and requests its next repeat or ends it. */
export async function advanceExperiments(ctx: Context): Promise<void> {
  const running = ctx.db
    .select()
    .from(experiments)
    .where(eq(experiments.status, sql.raw("'running'")))
    .all();
  for (const row of running) {
    try {
      await noteTreatments(ctx, row);
      const status = await ctx.commit((tx) => advance(ctx, tx, row));
      if (status === "waiting") continue;
      ctx.log.info({ experiment: row.id, status }, status === "extended" ? "experiment extended" : "experiment ended");
      if (status === "extended") ctx.signals.jobQueued.emit();
    } catch (error) {
      if (isTemporary(error)) throw error;
      ctx.log.error({ err: error, experiment: row.id }, "could not advance an experiment");
    }
  }
}

/** Notes for each run that has ended since what its session shows of the treatments. */
async function noteTreatments(ctx: Context, row: ExperimentRow): Promise<void> {
  const { orgId, arms } = row;
  const ended = ctx.db
    .select({ runId: runs.id, arm: experimentRuns.arm, attempt: runs.attempt })
    .from(experimentRuns)
    .innerJoin(runs, eq(runs.id, experimentRuns.runId))
    .where(and(ofExperiment(row), isNull(experimentRuns.treatment), sql`${runs.completedAt} is not null`))
    .all();
  for (const { runId, arm, attempt } of ended) {
    const events = await readSessionInBatches(ctx, { orgId, runId, attempt });
    const own = arms.find(({ name }) => name === arm) as Arm;
    const treatment = treatmentOf(
      events,
      own,
      arms.filter((each) => each !== own),
    );
    await ctx.commit((tx) =>
      tx
        .update(experimentRuns)
        .set({ treatment })
        .where(and(ofExperiment(row), eq(experimentRuns.runId, runId)))
        .run(),
    );
  }
}

/** Advances an experiment if all of its requested runs have ended. */
function advance(ctx: Context, tx: Tx, row: ExperimentRow): "waiting" | "extended" | "completed" | "stopped" {
  const { ended, of } = progressOf(ctx, row);
  if (ended < of || hasUnnoted(tx, row)) return "waiting";
  const spentUsd = costOf(ctx, row);
  const done = countRepeats(tx, row);
  const isDone = done >= row.repeats || of === 0;
  const isOverBudget = row.budgetUsd !== null && (spentUsd * (done + 1)) / done > row.budgetUsd;
  if (!isDone && !isOverBudget) {
    addRepeat(ctx, tx, row, done);
    return "extended";
  }
  const status = isDone ? ("completed" as const) : ("stopped" as const);
  tx.update(experiments)
    .set({
      ...{ status, stopReason: isDone ? null : ("budget" as const), spentUsd, analysis: analyzeRuns(ctx, row) },
      completedAt: endedAt(ctx.now(), experiments.createdAt),
    })
    .where(and(eq(experiments.id, row.id), eq(experiments.status, "running")))
    .run();
  return status;
}

const hasUnnoted = (tx: Tx, row: ExperimentRow): boolean =>
  tx
    .select({ runId: experimentRuns.runId })
    .from(experimentRuns)
    .where(and(ofExperiment(row), isNull(experimentRuns.treatment)))
    .limit(1)
    .get() !== undefined;

/** The repeats that were requested. */
const countRepeats = (tx: Tx, row: ExperimentRow): number =>
  (tx
    .select({ last: sql<number | null>`max(${experimentRuns.block})` })
    .from(experimentRuns)
    .where(ofExperiment(row))
    .get()?.last ?? -1) + 1;
