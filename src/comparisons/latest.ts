import { isRuleBased } from "../agents/agent.ts";
import { type Context, type OrgId, perContext } from "../context.ts";
import type { reports } from "../db/tables/reports.ts";
import type { Scope } from "../grading/grade.ts";
import { isSameVariant } from "../reports/baseline.ts";
import { comparedScope } from "../reports/differences.ts";
import { listPublished, type PublishedRun } from "../reports/run-rows.ts";
import { toIso } from "../schema.ts";
import { changePoints } from "../stats/change-points.ts";
import { mean } from "../stats/estimates.ts";
import { minRuns, threshold } from "../stats/power.ts";
import { type Comparison, compareEvals } from "./compare.ts";

/** Maximum number of the newest published live reports of a prompt to read. */
const maxReportsRead = 60;
const maxPoints = 20;
/** Prompts of which the last change is remembered. */
const maxRememberedPrompts = 2_000;

/** An evaluation of a prompt: the mean score of its runs. */
type ScorePoint = { evalRequestId: string; slug: string; score: number; runs: number; at: string };

/**
 * The latest results of a prompt: those of its newest report, the evaluations with the same agent, model and methodology,
 * oldest first, and the change since the previous one.
 */
export type LatestResults = {
  slug: string;
  agent: string;
  model: string | null;
  score: number | null;
  scope: Scope;
  grade: string | null;
  outcome: (typeof reports.$inferSelect)["outcome"];
  at: string;
  points: ScorePoint[];
  /** null: not enough runs. */
  change: LatestChange | null;
};

/**
 * The newest change of a prompt's scores: of the last two evaluations, else the newest change of their level, as in trends; without either,
 * the verdict on the last two evaluations. It compares all runs of both windows. `at`: of the first report after it. `slugs`: the last report
 * before and the first after it. `low`, `high`: 95% interval of `delta`; null: exact.
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
/** Evaluations on one side of a change, oldest first. `mean`: of the dimensions that are compared, so that the means differ by `delta`. */
export type ChangeWindow = { mean: number; evaluations: ScorePoint[] };

/**
 * What an evaluation is compared with: its runs with those of the one before; if they are too few for a verdict and the evaluation came with
 * or after the newest clear change, both windows of that change. null: it is not among the points, or has none before it.
 */
export function findComparison(
  latest: LatestResults | null,
  evalRequestId: string,
): { slugs: [before: string, after: string] } | { change: LatestChange } | null {
  if (!latest) return null;
  const { change, agent, points } = latest;
  const index = points.findIndex((point) => point.evalRequestId === evalRequestId);
  const [before, after] = [points[index - 1], points[index]];
  if (!before || !after) return null;
  const isAfterChange = change?.after.evaluations.some((each) => each.evalRequestId === evalRequestId) ?? false;
  const hasVerdict = isRuleBased(agent) || Math.min(before.runs, after.runs) >= minRuns;
  return change && isAfterChange && !hasVerdict && isClear(change) ? { change } : { slugs: [before.slug, after.slug] };
}

/** With the score of each run, oldest first. */
type Point = ScorePoint & { scores: number[] };

/** The indices of the evaluations with which the level of the scores changed. */
function levelChangesOf(points: Point[]): number[] {
  const scores = points.flatMap((point, pointIndex) => point.scores.map((score) => ({ score, pointIndex })));
  // If runs of one evaluation are on both sides, it counts as after the change, unless it is the first one.
  return changePoints(scores.map(({ score }) => score)).map(({ index }) => Math.max(1, scores[index]?.pointIndex ?? 1));
}

/** The last change of each prompt, because comparing is slow. `basis`: the runs that it is computed from. */
const lastChanges = perContext(() => new Map<string, { basis: string; change: LatestChange | null }>());

/** null: the prompt has no published live report. */
export function findLatestResults(ctx: Context, org: OrgId, promptId: string): LatestResults | null {
  const published = listPublished(ctx, org, promptId, maxReportsRead, { batchSize: maxReportsRead });
  const [newest] = published;
  if (!newest) return null;
  // Of several agents, the first one of the prompt.
  const isFirst = (run: PublishedRun) => run.evalRequestId === newest.evalRequestId && run.agentIndex === 0;
  const latestRun = published.find(isFirst) ?? newest;
  const { slug, agent, model, score, scope, grade, outcome, createdAt, methodology } = latestRun;
  const variant = { ...latestRun, scope: comparedScope({ scope, judge: methodology.judge }) };
  const sameVariant = published.filter((run) => isSameVariant(run, variant));
  const points = [...Map.groupBy(sameVariant, ({ evalRequestId }) => evalRequestId)].flatMap(
    ([evalRequestId, evalRuns]) => {
      const scores = evalRuns.flatMap(({ score }) => score ?? []);
      const [newestOfEval] = evalRuns;
      if (!newestOfEval || scores.length === 0) return [];
      const fields = { evalRequestId, slug: newestOfEval.slug, runs: scores.length, at: toIso(newestOfEval.createdAt) };
      return { ...fields, score: mean(scores), scores: scores.reverse() };
    },
  );
  const oldestFirst = points.toReversed();
  return {
    slug,
    agent,
    model,
    score,
    scope,
    grade,
    outcome,
    at: toIso(createdAt),
    points: oldestFirst.slice(-maxPoints).map(toScorePoint),
    change: changeOf(ctx, org, promptId, latestRun, oldestFirst),
  };
}

type Compare = (before: Point[], after: Point[]) => LatestChange | null;

/** The latest results of a prompt whose newest change is significant; null: it is not, or there is none. */
export function findChangedResults(ctx: Context, org: OrgId, promptId: string) {
  const latest = findLatestResults(ctx, org, promptId);
  return latest?.change && isClear(latest.change) ? { ...latest, change: latest.change } : null;
}

/** The newest significant change of a prompt's scores, with the agent whose scores changed; null: none. */
export function findClearChange(ctx: Context, org: OrgId, promptId: string | undefined) {
  const latest = promptId === undefined ? null : findChangedResults(ctx, org, promptId.toLowerCase());
  return latest && { ...latest.change, agent: latest.agent, model: latest.model };
}

/** Makes a function that compares all runs of one agent in evaluations. */
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

const toScorePoint = ({ scores: _, ...point }: Point): ScorePoint => point;

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

/** The change of the last two evaluations. */
function lastEvaluationChange(points: Point[], compare: Compare): LatestChange | null {
  const [before, after] = points.slice(-2);
  if (!before || !after || Math.min(before.runs, after.runs) < minRuns) return null;
  return compare([before], [after]);
}

/** Compares the evaluations before and after the last of these changes, back to the change before it. `changes`: indices of points. */
function compareLastLevels(points: Point[], changes: number[], compare: Compare): LatestChange | null {
  const index = changes.at(-1);
  return index === undefined ? null : compare(points.slice(changes.at(-2) ?? 0, index), points.slice(index));
}

/** The newest change of an agent whose runs on the same docs don't differ, so that two evaluations of one run show it, with the evaluations around it. */
function lastExactChange(points: Point[], compare: Compare): LatestChange | null {
  const steps = points.flatMap((point, i) => {
    const previous = points[i - 1];
    // Comparing is slow. What it compares may differ by more than the scores, since it can leave out a dimension, hence half the threshold.
    if (!previous || Math.abs(point.score - previous.score) < threshold / 2) return [];
    return isClear(compare([previous], [point])) ? [i] : [];
  });
  return compareLastLevels(points, steps, compare);
}

/** `points`: oldest first. */
function changeOf(
  ctx: Context,
  org: OrgId,
  promptId: string,
  latestRun: PublishedRun,
  points: Point[],
): LatestChange | null {
  const basis = [
    ...points.map(({ evalRequestId, runs }) => `${evalRequestId} ${runs}`),
    latestRun.agent,
    latestRun.model,
  ].join(" ");
  const lastChange = lastChanges(ctx).get(promptId);
  if (lastChange?.basis === basis) return lastChange.change;
  const compare = createCompare(ctx, org, latestRun);
  const exact = isRuleBased(latestRun.agent) ? lastExactChange(points, compare) : null;
  const step = exact ?? lastEvaluationChange(points, compare);
  const change = isClear(step) ? step : (compareLastLevels(points, levelChangesOf(points), compare) ?? step);
  if (lastChanges(ctx).size >= maxRememberedPrompts) lastChanges(ctx).clear();
  lastChanges(ctx).set(promptId, { basis, change });
  return change;
}
