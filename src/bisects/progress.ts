import { and, eq, isNull, max, sql } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { isTemporary } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { endedAt } from "../db/rows.ts";
import { bisectRuns, bisects, type SkippedBuild } from "../db/tables/bisects.ts";
import { runs } from "../db/tables/runs.ts";
import { conflict } from "../errors.ts";
import { createPoll } from "../poll.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { cancelRuns } from "../runs/endings.ts";
import { acceptEval, addRuns } from "../runs/requests.ts";
import { type BisectionStep, nextStepOf, posteriorOf, suspectsOf } from "../stats/bisection.ts";
import { getBisect, getBisectRow } from "./bisects.ts";
import { findBuildProblem, urlMapOf } from "./builds.ts";
import type { Bisect } from "./schema.ts";
import {
  type BisectRow,
  type BuildRun,
  costOf,
  designOf,
  listEndedRuns,
  ofBisect,
  progressOf,
  scoresOf,
} from "./scores.ts";

/** Interval for checks of bisects whose runs have ended. */
const pollMs = 500;
/** A build is skipped after this many runs if none of them has a score. */
const maxLost = 2;

/** Checks again and again whether bisects can advance. */
export function createBisectLoop(ctx: Context) {
  const poll = createPoll({
    check: () => advanceBisects(ctx).then(() => pollMs),
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not check bisects");
    },
    retryMs: pollMs,
  });
  return { start: poll.start, stop: poll.stop };
}

/** Advances every running bisect whose runs have ended: requests the next ones, or ends it. */
export async function advanceBisects(ctx: Context): Promise<void> {
  const running = ctx.db
    .select({ id: bisects.id, orgId: bisects.orgId })
    .from(bisects)
    .where(eq(bisects.status, sql.raw("'running'")))
    .all();
  for (const { id, orgId } of running) {
    try {
      // Each build that doesn't answer is skipped, and another one is chosen.
      while (await advance(ctx, getBisectRow(ctx, orgId as OrgId, id)));
    } catch (error) {
      if (isTemporary(error) || ctx.stopping.aborted) throw error;
      ctx.log.error({ err: error, bisect: id }, "bisect failed");
      const row = getBisectRow(ctx, orgId as OrgId, id);
      const result = suspectsSoFar(row, listEndedRuns(ctx, row));
      await ctx.commit((tx) => endBisect(ctx, tx, row, { status: "stopped", stopReason: "refused", result }));
    }
  }
}

type End = Pick<BisectRow, "status" | "stopReason" | "result">;
type RunStep = Extract<BisectionStep, { kind: "run" }>;

/** Advances a bisect if all of its runs have ended. Resolves to whether to call it again immediately, because a build was skipped. */
async function advance(ctx: Context, row: BisectRow): Promise<boolean> {
  const { ended, of } = progressOf(ctx, row);
  if (row.status !== "running" || ended < of) return false;
  const endedRuns = listEndedRuns(ctx, row);
  const next = endOrRuns(ctx, row, endedRuns);
  if ("status" in next) {
    await ctx.commit((tx) => endBisect(ctx, tx, row, next));
    return false;
  }
  const { builds } = next;
  const skipped = findLostBuild(builds, endedRuns) ?? (await findMissingBuild(ctx, row, builds, endedRuns));
  if (skipped !== null) return await skipBuild(ctx, row, skipped);
  // The good and the bad build first get one run each. That shows what a run costs, and a deterministic agent needs no more.
  const runsPerBuild = endedRuns.length === 0 ? 1 : next.runs;
  const isExtended = await ctx.commit((tx) => {
    // Someone may have cancelled it in the meantime.
    const current = tx.select({ stopReason: bisects.stopReason }).from(bisects).where(eq(bisects.id, row.id)).get();
    if (current?.stopReason !== null) return false;
    const newest = tx
      .select({ step: max(bisectRuns.step) })
      .from(bisectRuns)
      .where(ofBisect(row))
      .get();
    addRunsOf(ctx, tx, row, { builds, runsPerBuild, step: (newest?.step ?? -1) + 1 });
    return true;
  });
  if (isExtended) ctx.signals.jobQueued.emit();
  return false;
}

/** The end of a search, or the runs with which it goes on. */
function endOrRuns(ctx: Context, row: BisectRow, ended: BuildRun[]): End | RunStep {
  const step = nextStepOf(designOf(row, ended), scoresOf(ended));
  const stop = (stopReason: BisectRow["stopReason"], result = suspectsSoFar(row, ended)): End => ({
    status: "stopped",
    stopReason,
    result,
  });
  if (row.stopReason === "cancelled") return stop("cancelled");
  if (step.kind === "same") return stop("no_difference", null);
  if (step.kind !== "run") {
    const result = { builds: step.builds, probability: step.probability };
    return step.kind === "found" ? { status: "found", stopReason: null, result } : stop("undecided", result);
  }
  if (row.budgetUsd === null || ended.length === 0) return step;
  const spentUsd = costOf(ctx, row);
  const nextUsd = (spentUsd / ended.length) * step.runs * step.builds.length;
  return spentUsd + nextUsd > row.budgetUsd ? stop("budget") : step;
}

/** What the ended runs show so far; null: the good and the bad build were not both run. */
function suspectsSoFar(row: BisectRow, ended: BuildRun[]): BisectRow["result"] {
  const [design, scores] = [designOf(row, ended), scoresOf(ended)];
  const isRun = (build: number) => scores.some((each) => each.build === build);
  return isRun(0) && isRun(design.last) ? suspectsOf(design, posteriorOf(design, scores)) : null;
}

/** The first of `builds` that has enough runs, none of them with a score. */
function findLostBuild(builds: number[], ended: BuildRun[]): SkippedBuild | null {
  const isLost = (build: number) => {
    const ownRuns = ended.filter((run) => run.build === build);
    return ownRuns.length >= maxLost && ownRuns.every(({ score }) => score === null);
  };
  const build = builds.find(isLost);
  return build === undefined ? null : { build, reason: "runs_failed", status: null };
}

/** The first of `builds` that has no runs yet and does not answer. */
async function findMissingBuild(
  ctx: Context,
  row: BisectRow,
  builds: number[],
  ended: BuildRun[],
): Promise<SkippedBuild | null> {
  const { urlTemplate, commits } = row;
  const prompt = getPromptRow(ctx, row.orgId as OrgId, row.promptId);
  for (const build of builds.filter((each) => !ended.some((run) => run.build === each))) {
    const urlMap = urlMapOf(ctx, row.orgId as OrgId, prompt, { urlTemplate, commit: commits[build] ?? "" });
    const problem = await findBuildProblem(ctx, row.orgId as OrgId, prompt, urlMap);
    if (problem !== null) return { build, ...problem };
  }
  return null;
}

/** Leaves a build out. Resolves to whether the search can go on. It can't without the good or the bad build. */
async function skipBuild(ctx: Context, row: BisectRow, skipped: SkippedBuild): Promise<boolean> {
  const isEnd = skipped.build === 0 || skipped.build === row.commits.length - 1;
  await ctx.commit((tx) => {
    tx.update(bisects)
      .set({ skipped: [...row.skipped, skipped] })
      .where(eq(bisects.id, row.id))
      .run();
    if (isEnd) endBisect(ctx, tx, row, { status: "stopped", stopReason: "not_measured", result: null });
  });
  ctx.log.info({ bisect: row.id, ...skipped }, "bisect skipped a build");
  return !isEnd;
}

function endBisect(ctx: Context, tx: Tx, row: BisectRow, end: End): void {
  tx.update(bisects)
    .set({ ...end, spentUsd: costOf(ctx, row), completedAt: endedAt(ctx.now(), bisects.createdAt) })
    .where(and(eq(bisects.id, row.id), eq(bisects.status, "running")))
    .run();
  ctx.log.info({ bisect: row.id, status: end.status }, "bisect ended");
}

/** The runs that a step requests for each of its builds. */
type RequestedRuns = { builds: number[]; runsPerBuild: number; step: number };

/**
 * Requests runs of builds within a transaction; emit `jobQueued` afterwards. Runs of a build form one evaluation, and runs of several builds
 * alternate. Throws what `acceptEval` throws.
 */
function addRunsOf(ctx: Context, tx: Tx, row: BisectRow, { builds, runsPerBuild, step }: RequestedRuns) {
  const org = row.orgId as OrgId;
  for (let i = 0; i < runsPerBuild; i++)
    for (const build of builds) {
      const earlier = tx
        .select({ evalRequestId: runs.evalRequestId, model: bisectRuns.model })
        .from(bisectRuns)
        .innerJoin(runs, eq(runs.id, bisectRuns.runId))
        .where(and(ofBisect(row), eq(bisectRuns.build, build)))
        .get();
      const runIds = earlier
        ? addRuns(ctx, tx, org, earlier.evalRequestId, earlier.model)
        : acceptBuild(ctx, tx, row, build);
      for (const runId of runIds) {
        const run = tx.select({ model: runs.model }).from(runs).where(eq(runs.id, runId)).get();
        tx.insert(bisectRuns)
          .values({ orgId: org, bisectId: row.id, runId, build, step, model: run?.model ?? null })
          .run();
      }
    }
}

/** Requests the evaluation of a build with its first run. */
function acceptBuild(ctx: Context, tx: Tx, row: BisectRow, build: number): string[] {
  const { promptId, urlTemplate, commits, agent, model } = row;
  const org = row.orgId as OrgId;
  const prompt = getPromptRow(ctx, org, promptId);
  const urlMap = urlMapOf(ctx, org, prompt, { urlTemplate, commit: commits[build] ?? "" });
  return acceptEval(ctx, tx, org, promptId, {
    trigger: row.trigger,
    requester: { personId: row.personId ?? undefined, keyId: row.keyId ?? undefined },
    urlMap,
    runs: 1,
    agent: agent ?? undefined,
    model: model ?? undefined,
    templateArgs: row.templateArgs ?? undefined,
  }).runIds;
}

/**
 * Cancels all unfinished runs of a bisect. It then ends with the result of its other runs. `requester` is named in the failure reason of the runs.
 * Throws not_found, and conflict if the bisect has ended.
 */
export async function cancelBisect(ctx: Context, org: OrgId, id: string, requester: string): Promise<Bisect> {
  const row = getBisectRow(ctx, org, id);
  if (row.status !== "running" || row.stopReason !== null) throw conflict("The bisect has already ended.");
  const unfinished = ctx.db
    .select({ id: runs.id })
    .from(bisectRuns)
    .innerJoin(runs, eq(runs.id, bisectRuns.runId))
    .where(and(ofBisect(row), isNull(runs.completedAt)))
    .all();
  await ctx.commit((tx) => {
    const isRunning = and(eq(bisects.id, row.id), eq(bisects.status, "running"));
    tx.update(bisects).set({ stopReason: "cancelled" }).where(isRunning).run();
    recordAudit(ctx, org, "bisect.cancelled", { id: row.id });
  });
  const ids = unfinished.map((run) => run.id);
  await cancelRuns(ctx, org, ids, requester);
  // If this process ends before the next line, the loop advances the bisect after the restart.
  await advance(ctx, getBisectRow(ctx, org, row.id));
  return getBisect(ctx, org, row.id);
}
