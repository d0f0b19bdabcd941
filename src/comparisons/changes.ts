import { isRuleBased } from "../agents/agent.ts";
import { type Context, type OrgId, perContext } from "../context.ts";
import type { PublishedRun } from "../reports/run-rows.ts";
import { changePoints } from "../stats/change-points.ts";
import { minRuns, threshold } from "../stats/power.ts";
import { type Comparison, compareEvals } from "./compare.ts";

/** How many prompts are remembered with their last change. */
const maxRememberedPrompts = 2_000;

/** An evaluation of a prompt: the mean score of its runs. */
export type ScorePoint = { evalRequestId: string; slug: string; score: number; runs: number; at: string };

/** An evaluation with the score of each run, oldest first. */
export type Point = ScorePoint & { scores: number[] };

/**
 * The newest change of a prompt's scores. If the last two evaluations differ clearly, it is their difference; else it is the newest change of the
 * level of scores, as in trends. Without either, it is the verdict on the last two evaluations. It compares all runs of both windows.
 * `at`: the time of the first report after the change. `slugs`: the last report before the change and the first one after it. `low`, `high`: 95%
 * interval of `delta`; null: it is exact.
 */
export type LatestChange = {
  verdict: NonNullable<Comparison["verdict"]>;
  delta: number;
  low: number | null;
  high: number | null;
  at: string;
  slugs: [before: string, after: string];
  before: ChangeWindow;
  after: ChangeWindow;
};
/**
 * Evaluations on one side of a change, oldest first. `mean`: the mean of the compared dimensions, so that the means of both sides differ by `delta`.
 */
export type ChangeWindow = { mean: number; evaluations: ScorePoint[] };

/** The change between two windows of evaluations, oldest first; null: a window is empty, or there is no verdict. */
export function toChange(
  { verdict, evidence: { score, delta } }: Comparison,
  before: ScorePoint[],
  after: ScorePoint[],
): LatestChange | null {
  const [last, first] = [before.at(-1), after[0]];
  if (!last || !first || verdict === null) return null;
  return {
    verdict,
    delta: delta?.value ?? 0,
    low: delta?.low ?? null,
    high: delta?.high ?? null,
    at: first.at,
    slugs: [last.slug, first.slug],
    before: { mean: score?.before ?? 0, evaluations: before },
    after: { mean: score?.after ?? 0, evaluations: after },
  };
}

/** Whether a change is significant and large enough to be listed. */
export const isClear = (change: LatestChange | null): boolean =>
  change?.verdict === "improved" || change?.verdict === "regressed";

/** An evaluation without the scores of its runs. */
export const toScorePoint = ({ scores: _, ...point }: Point): ScorePoint => point;

/** Remembers the last change of each prompt, because comparing is slow. `basis`: the runs that it is computed from. */
const lastChanges = perContext(() => new Map<string, { basis: string; change: LatestChange | null }>());

/** The newest change of a prompt's scores; null: not enough runs. `points`: oldest first. */
export function newestChangeOf(
  ctx: Context,
  org: OrgId,
  promptId: string,
  latestRun: PublishedRun,
  points: Point[],
): LatestChange | null {
  const { agent, model } = latestRun;
  const basis = [...points.map(({ evalRequestId, runs }) => `${evalRequestId} ${runs}`), agent, model].join(" ");
  const remembered = lastChanges(ctx).get(promptId);
  if (remembered?.basis === basis) return remembered.change;
  const change = findNewestChange(points, isRuleBased(agent), createCompare(ctx, org, latestRun));
  if (lastChanges(ctx).size >= maxRememberedPrompts) lastChanges(ctx).clear();
  lastChanges(ctx).set(promptId, { basis, change });
  return change;
}

/** `isExact`: runs of the agent on the same docs don't differ. */
function findNewestChange(points: Point[], isExact: boolean, compare: Compare): LatestChange | null {
  const exactChange = isExact ? lastExactChange(points, compare) : null;
  const latestChange = exactChange ?? lastEvaluationChange(points, compare);
  if (isClear(latestChange)) return latestChange;
  return compareLastLevels(points, levelChangesOf(points), compare) ?? latestChange;
}

/** Compares the runs of some evaluations with the runs of later ones. */
type Compare = (before: Point[], after: Point[]) => LatestChange | null;

/** Returns a function that compares evaluations by their runs with the agent and model of one run. */
const createCompare =
  (ctx: Context, org: OrgId, { agent, model }: PublishedRun): Compare =>
  (before, after) => {
    const ids = (points: Point[]) => points.map(({ evalRequestId }) => evalRequestId);
    const comparison = compareEvals(ctx, org, { evalRequestIds: ids(before) }, ids(after), {
      // A run without a report names the model that was requested.
      keeps: (run) => run.agent === agent && (run.report === null || run.model === model),
    });
    return toChange(comparison, before.map(toScorePoint), after.map(toScorePoint));
  };

/** The change of the last two evaluations. */
function lastEvaluationChange(points: Point[], compare: Compare): LatestChange | null {
  const [before, after] = points.slice(-2);
  if (!before || !after || Math.min(before.runs, after.runs) < minRuns) return null;
  return compare([before], [after]);
}

/**
 * Compares the evaluations after the last change with the evaluations before it, back to the previous change. `changes`: for each change, the index
 * of the first point after it.
 */
function compareLastLevels(points: Point[], changes: number[], compare: Compare): LatestChange | null {
  const last = changes.at(-1);
  if (last === undefined) return null;
  const beforeLast = changes.at(-2) ?? 0;
  return compare(points.slice(beforeLast, last), points.slice(last));
}

/** The newest change of an agent whose runs on the same docs don't differ. For such an agent, two evaluations with one run each show a change. */
function lastExactChange(points: Point[], compare: Compare): LatestChange | null {
  const changes = points.flatMap((point, i) => {
    const previous = points[i - 1];
    // Comparing is slow, so it is left out for nearly equal scores. The limit is half the threshold, because a comparison can leave out a dimension
    // and then find a larger difference than the scores have.
    if (!previous || Math.abs(point.score - previous.score) < threshold / 2) return [];
    return isClear(compare([previous], [point])) ? [i] : [];
  });
  return compareLastLevels(points, changes, compare);
}

/** The indices of the first points after each change of the level of the scores. */
function levelChangesOf(points: Point[]): number[] {
  const scores = points.flatMap((point, pointIndex) => point.scores.map((score) => ({ score, pointIndex })));
  // If an evaluation has runs on both sides of a change, it counts as after the change, unless it is the first evaluation.
  return changePoints(scores.map(({ score }) => score)).map(({ index }) => Math.max(1, scores[index]?.pointIndex ?? 1));
}
