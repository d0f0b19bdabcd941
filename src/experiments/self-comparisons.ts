import { and, desc, eq, isNotNull, isNull, lt, ne, sql } from "drizzle-orm";
import { alpha } from "../comparisons/evidence.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { experiments } from "../db/tables/experiments.ts";
import { orgs } from "../db/tables/orgs.ts";
import { AppError } from "../errors.ts";
import { driftOf } from "../stats/aa-drift.ts";
import { findEqualArm } from "./design.ts";
import { requestExperiment } from "./requests.ts";
import { areRuleBased, type ExperimentRow, gateRuns, listEndedRuns, nullBlocksOf } from "./results.ts";

const weekMs = 7 * 24 * 3600_000;
/** How many earlier comparisons of the same prompts the newest one is compared with. */
const maxEarlier = 5;

/** Whether another experiment compares the base of the same prompts with itself. */
const ofSamePrompts = (row: ExperimentRow) =>
  and(
    eq(experiments.orgId, row.orgId),
    eq(experiments.promptIds, row.promptIds),
    eq(experiments.arms, row.arms),
    ne(experiments.id, row.id),
  );

/**
 * Stores within a transaction whether a completed comparison of the base with itself shows that something drifted. Earlier comparisons of the same
 * prompts no longer show a drift.
 */
export function noteDrift(ctx: Context, tx: Tx, row: ExperimentRow): void {
  if (findEqualArm(row.arms) < 0) return;
  tx.update(experiments)
    .set({ drift: null })
    .where(and(ofSamePrompts(row), isNotNull(experiments.drift)))
    .run();
  tx.update(experiments)
    .set({ drift: findDrift(ctx, row) })
    .where(eq(experiments.id, row.id))
    .run();
}

function findDrift(ctx: Context, row: ExperimentRow): ExperimentRow["drift"] {
  const blocks = nullBlocksOf(ctx, row);
  // Such agents always get the same score, and a block has one run of each arm.
  if (areRuleBased(listEndedRuns(ctx, row))) return blocks.some(({ a, b }) => a[0] !== b[0]) ? "explorer" : null;
  const earlier = ctx.db
    .select()
    .from(experiments)
    .where(and(ofSamePrompts(row), eq(experiments.status, "completed"), lt(experiments.id, row.id)))
    .orderBy(desc(experiments.id))
    .limit(maxEarlier)
    .all();
  return driftOf(
    blocks,
    earlier.flatMap((each) => nullBlocksOf(ctx, each)),
    { runs: gateRuns, level: alpha },
  );
}

/** Requests the comparisons of the base with itself that are due again. While an organization's schedules are paused, its comparisons wait. */
export async function repeatDue(ctx: Context): Promise<void> {
  const due = ctx.db
    .select({ row: experiments })
    .from(experiments)
    .innerJoin(orgs, eq(orgs.id, experiments.orgId))
    .where(
      and(
        isNotNull(experiments.everyWeeks),
        ne(experiments.status, "running"),
        isNull(orgs.schedulesPausedAt),
        sql`${experiments.createdAt} + ${experiments.everyWeeks} * ${weekMs} <= ${ctx.now()}`,
      ),
    )
    .all();
  for (const { row } of due) {
    const { orgId, title, promptIds, arms, repeats, budgetUsd, templateArgs, everyWeeks } = row;
    const request = { title, promptIds, arms, repeats };
    // From here on, the new experiment has the repetition. This is stored before the new experiment is requested, so that it is never repeated twice
    // if the process ends in between.
    await ctx.commit((tx) => tx.update(experiments).set({ everyWeeks: null }).where(eq(experiments.id, row.id)).run());
    try {
      await requestExperiment(ctx, orgId as OrgId, {
        ...request,
        trigger: "schedule",
        budgetUsd: budgetUsd ?? undefined,
        templateArgs: templateArgs ?? undefined,
        everyWeeks: everyWeeks ?? undefined,
      });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      ctx.log.warn({ err: error, experiment: row.id }, "could not repeat a comparison of the base with itself");
    }
  }
}
