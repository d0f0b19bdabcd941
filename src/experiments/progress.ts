import { and, eq, isNull, sql } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { isTemporary } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { endedAt } from "../db/rows.ts";
import { experimentRuns, experiments } from "../db/tables/experiments.ts";
import { runs } from "../db/tables/runs.ts";
import { conflict } from "../errors.ts";
import { createPoll } from "../poll.ts";
import { readSessionInBatches } from "../reports/session-events.ts";
import { cancelRuns } from "../runs/endings.ts";
import { getExperiment, getExperimentRow } from "./experiments.ts";
import { addRepeat } from "./requests.ts";
import { analyzeRuns, costOf, type ExperimentRow, ofExperiment, progressOf } from "./results.ts";
import type { Experiment } from "./schema.ts";
import { noteDrift, repeatDue } from "./self-comparisons.ts";
import { treatmentOf } from "./treatments.ts";

/** Interval for checks of experiments whose runs have ended. */
const pollMs = 500;

/** Checks again and again whether experiments can advance. */
export function createExperimentLoop(ctx: Context) {
  return createPoll({
    async check() {
      await repeatDue(ctx);
      await advanceExperiments(ctx);
      return pollMs;
    },
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not check experiments");
    },
    retryMs: pollMs,
  });
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
      await advanceExperiment(ctx, row);
    } catch (error) {
      if (isTemporary(error)) throw error;
      ctx.log.error({ err: error, experiment: row.id }, "could not advance an experiment");
    }
  }
}

async function advanceExperiment(ctx: Context, row: ExperimentRow): Promise<void> {
  await noteTreatments(ctx, row);
  // Someone may have cancelled it in the meantime.
  const status = await ctx.commit((tx) => advance(ctx, tx, getExperimentRow(ctx, row.orgId as OrgId, row.id)));
  if (status === "waiting") return;
  ctx.log.info({ experiment: row.id, status }, status === "extended" ? "experiment extended" : "experiment ended");
  if (status === "extended") ctx.signals.jobQueued.emit();
}

/** Notes which treatments each newly ended run met, by its session. A treatment is what an arm changes. */
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
    const ownArm = arms.find(({ name }) => name === arm)!;
    const otherArms = arms.filter((each) => each !== ownArm);
    const treatment = treatmentOf(events, ownArm, otherArms);
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
  if (row.status !== "running" || ended < of || hasUnnoted(tx, row)) return "waiting";
  const spentUsd = costOf(ctx, row);
  const repeats = countRepeats(tx, row);
  // All of its runs may have been deleted.
  const isDone = repeats >= row.repeats || of === 0;
  // The next repeat probably costs as much as the ones before it.
  const isOverBudget = row.budgetUsd !== null && (spentUsd * (repeats + 1)) / repeats > row.budgetUsd;
  const budgetReason = !isDone && isOverBudget ? "budget" : null;
  const stopReason = row.stopReason === "cancelled" ? "cancelled" : budgetReason;
  if (!isDone && stopReason === null) {
    addRepeat(ctx, tx, row, repeats);
    return "extended";
  }
  const status = stopReason === null ? "completed" : "stopped";
  const completedAt = endedAt(ctx.now(), experiments.createdAt);
  tx.update(experiments)
    .set({ status, stopReason, spentUsd, analysis: analyzeRuns(ctx, row), completedAt })
    .where(and(eq(experiments.id, row.id), eq(experiments.status, "running")))
    .run();
  if (status === "completed") noteDrift(ctx, tx, row);
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

/**
 * Cancels the repetition and all unfinished runs of an experiment, which ends with the result of its other runs. `requester` is named in the failure
 * reason of the runs. Throws not_found, and conflict if the experiment has ended and is not repeated.
 */
export async function cancelExperiment(ctx: Context, org: OrgId, id: string, requester: string): Promise<Experiment> {
  const row = getExperimentRow(ctx, org, id);
  const isRunning = row.status === "running";
  const mayCancel = isRunning ? row.stopReason === null : row.everyWeeks !== null;
  if (!mayCancel) throw conflict("The experiment has already ended.");
  const unfinished = ctx.db
    .select({ id: runs.id })
    .from(experimentRuns)
    .innerJoin(runs, eq(runs.id, experimentRuns.runId))
    .where(and(ofExperiment(row), isNull(runs.completedAt)))
    .all();
  await ctx.commit((tx) => {
    const whereRunning = and(eq(experiments.id, row.id), eq(experiments.status, "running"));
    tx.update(experiments).set({ stopReason: "cancelled" }).where(whereRunning).run();
    tx.update(experiments).set({ everyWeeks: null }).where(eq(experiments.id, row.id)).run();
    recordAudit(ctx, org, "experiment.cancelled", { id: row.id, name: row.title });
  });
  const ids = unfinished.map((run) => run.id);
  await cancelRuns(ctx, org, ids, requester);
  // If this process ends before the next line, the loop advances the experiment after the restart.
  await advanceExperiment(ctx, getExperimentRow(ctx, org, row.id));
  return getExperiment(ctx, org, row.id);
}
