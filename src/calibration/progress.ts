import { and, eq, lte, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { isTemporary } from "../db/fault.ts";
import { endedAt, hasPausedSchedules } from "../db/rows.ts";
import { calibrationRuns, calibrations } from "../db/tables/calibrations.ts";
import { runs } from "../db/tables/runs.ts";
import { AppError } from "../errors.ts";
import { createPoll } from "../poll.ts";
import { type CalibrationRow, costOf, figuresOf, measurerOf, ofCalibration, worseFigures } from "./figures.ts";
import { acceptCopies, prepareCopies, requestCalibration } from "./requests.ts";

/** Interval for checks of calibrations whose runs have ended. */
const pollMs = 500;
const dayMs = 24 * 3600_000;

/** Checks again and again whether calibrations can advance or are due. */
export function createCalibrationLoop(ctx: Context) {
  const poll = createPoll({
    check: async () => {
      await advanceCalibrations(ctx);
      await repeatCalibrations(ctx);
      return pollMs;
    },
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not check calibrations");
    },
    retryMs: pollMs,
  });
  return { start: poll.start, stop: poll.stop };
}

/** Advances every running calibration whose requested runs have ended. It requests the runs of the next site, or ends the calibration. */
export async function advanceCalibrations(ctx: Context): Promise<void> {
  const running = ctx.db
    .select()
    .from(calibrations)
    .where(eq(calibrations.status, sql.raw("'running'")))
    .all();
  for (const row of running) {
    try {
      await advance(ctx, row);
    } catch (error) {
      if (isTemporary(error)) throw error;
      ctx.log.error({ err: error, calibration: row.id }, "could not advance a calibration");
      // The reason isn't stored. Whoever requests the next calibration gets it as an error.
      if (error instanceof AppError) await end(ctx, row, "refused");
    }
  }
}

/** Begins the calibrations that are due. If one is refused, it is tried again when the next one would be due. */
export async function repeatCalibrations(ctx: Context): Promise<void> {
  const due = ctx.db.select().from(calibrations).where(lte(calibrations.nextAt, ctx.now())).all();
  for (const row of due) {
    const { source, promptId, agent, requestedModel, sites, budgetUsd, everyDays } = row;
    if (hasPausedSchedules(ctx.db, row.orgId)) continue;
    try {
      await requestCalibration(ctx, row.orgId as OrgId, {
        trigger: "schedule",
        promptId: source === "docs" ? promptId : undefined,
        agent,
        model: requestedModel ?? undefined,
        sites,
        budgetUsd: budgetUsd ?? undefined,
        everyDays: everyDays ?? undefined,
      });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      ctx.log.error({ err: error, calibration: row.id }, "could not repeat a calibration");
      const nextAt = ctx.now() + (row.everyDays ?? 1) * dayMs;
      await ctx.commit((tx) => tx.update(calibrations).set({ nextAt }).where(ofRow(row)).run());
    }
  }
}

const ofRow = ({ orgId, id }: CalibrationRow) => and(eq(calibrations.orgId, orgId), eq(calibrations.id, id));

async function advance(ctx: Context, row: CalibrationRow): Promise<void> {
  const { requested, unfinished, nextSite } = countRuns(ctx, row);
  if (unfinished > 0) return;
  // `requested` is 0 if all of its runs were deleted.
  if (nextSite >= row.sites || requested === 0) return await end(ctx, row, null);
  const usdWithNext = (costOf(ctx, row) / nextSite) * (nextSite + 1);
  if (row.budgetUsd !== null && usdWithNext > row.budgetUsd) return await end(ctx, row, "budget");
  const copies = await prepareCopies(ctx, row, nextSite);
  await ctx.commit((tx) => {
    const current = tx.select({ status: calibrations.status }).from(calibrations).where(ofRow(row)).get();
    // Somebody may have cancelled it in the meantime. Who requested it isn't stored: these runs count as scheduled.
    if (current?.status === "running") acceptCopies(ctx, tx, row, nextSite, copies, { trigger: "schedule" });
  });
  ctx.signals.jobQueued.emit();
}

/** `nextSite`: the number of the next site to request, from 0. */
function countRuns({ db }: Context, row: CalibrationRow) {
  const counts = db
    .select({
      requested: sql<number>`count(*)`,
      unfinished: sql<number>`sum(${runs.completedAt} is null)`,
      nextSite: sql<number>`coalesce(max(${calibrationRuns.site}), -1) + 1`,
    })
    .from(calibrationRuns)
    .innerJoin(runs, eq(runs.id, calibrationRuns.runId))
    .where(ofCalibration(row))
    .get();
  return { requested: counts?.requested ?? 0, unfinished: counts?.unfinished ?? 0, nextSite: counts?.nextSite ?? 0 };
}

/** Ends a calibration with the figures of its runs. It has none if no run met a planted defect. */
async function end(ctx: Context, row: CalibrationRow, stopReason: "budget" | "refused" | null): Promise<void> {
  const figures = figuresOf(ctx, row);
  const measurer = measurerOf(ctx, row);
  const model = measurer?.model ?? row.model;
  const result =
    figures.found.of > 0 && measurer !== null
      ? { methodology: measurer.methodology, figures, worse: worseFigures(ctx, row, model, figures) }
      : null;
  const reason = stopReason ?? (result === null ? "failed" : null);
  const status = reason === null ? "completed" : "stopped";
  const spentUsd = costOf(ctx, row);
  const completedAt = endedAt(ctx.now(), calibrations.createdAt);
  await ctx.commit((tx) =>
    tx
      .update(calibrations)
      .set({ status, stopReason: reason, model, ...result, spentUsd, completedAt })
      .where(and(ofRow(row), eq(calibrations.status, "running")))
      .run(),
  );
  ctx.log.info({ calibration: row.id, status }, "calibration ended");
}
