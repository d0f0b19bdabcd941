import { type Context, type OrgId, perContext } from "../context.ts";
import type { reports } from "../db/tables/reports.ts";
import type { Scope } from "../grading/grade.ts";
import { isSameVariant } from "../reports/baseline.ts";
import { comparedScope } from "../reports/differences.ts";
import type { PublishedRun } from "../reports/run-rows.ts";
import { listPublished } from "../reports/run-rows.ts";
import { toIso } from "../schema.ts";
import { changePoints } from "../stats/change-points.ts";
import { minRuns } from "../stats/power.ts";
import type { Comparison } from "./compare.ts";
import { compareEvals } from "./compare.ts";

/** Maximum number of the newest published live reports of a prompt to read. */
const maxReportsRead = 60;
const maxPoints = 20;
const maxKept = 2_000;

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
 * The newest significant change of a prompt's scores: of the last two evaluations, else the newest change of their level,
 * as in trends; without either, the verdict on the last two evaluations. `at`: of the first report after it. `slugs`: a
 * report before and one after it, to compare.
 */
type LatestChange = {
  verdict: NonNullable<Comparison["verdict"]>;
  delta: number;
  at: string;
  slugs: [before: string, after: string];
};

/** Reports of the comparable evaluation before an evaluation, and of itself; null if one of them is not among the points. */
export function findReportsBeforeAndAfter(
  latest: LatestResults | null,
  evalRequestId: string,
): [before: string, after: string] | null {
  const index = latest?.points.findIndex((point) => point.evalRequestId === evalRequestId) ?? -1;
  const [before, after] = index < 1 ? [] : (latest?.points.slice(index - 1, index + 1) ?? []);
  return before && after ? [before.slug, after.slug] : null;
}

type Point = ScorePoint & { scores: number[] };

/** The newest change of the level of the scores, between two evaluations. */
function lastLevelChange(points: Point[]): LatestChange | null {
  const values = points.flatMap((point, i) => point.scores.map((score) => ({ score, i })));
  const last = changePoints(values.map(({ score }) => score)).at(-1);
  if (!last) return null;
  // If runs of one evaluation are on both sides, it counts as after the change.
  const index = Math.max(1, values[last.index]?.i ?? 1);
  const [before, after] = [points[index - 1], points[index]];
  const delta = last.to - last.from;
  const verdict = delta > 0 ? "improved" : "regressed";
  return before && after ? { verdict, delta, at: after.at, slugs: [before.slug, after.slug] } : null;
}

/** The last result of each prompt with what it is the result of, because comparing is slow. */
const lastChanges = perContext(() => new Map<string, { basis: string; change: LatestChange | null }>());

/** null: the prompt has no published live report. */
export function findLatestResults(ctx: Context, org: OrgId, promptId: string): LatestResults | null {
  const published = listPublished(ctx, org, promptId, maxReportsRead, { limit: maxReportsRead });
  const [newest] = published;
  if (!newest) return null;
  // Of several agents, the first one of the prompt.
  const isFirst = (run: PublishedRun) => run.evalRequestId === newest.evalRequestId && run.agentIndex === 0;
  const last = published.find(isFirst) ?? newest;
  const sameKind = published.filter((run) =>
    isSameVariant(run, { ...last, scope: comparedScope({ scope: last.scope, judge: last.methodology.judge }) }),
  );
  const points = [...Map.groupBy(sameKind, ({ evalRequestId }) => evalRequestId)].flatMap(([evalRequestId, all]) => {
    const scored = all.flatMap(({ score }) => score ?? []);
    const [newestOfEval] = all;
    if (!newestOfEval || scored.length === 0) return [];
    const score = scored.reduce((sum, each) => sum + each, 0) / scored.length;
    const { slug, createdAt } = newestOfEval;
    return { evalRequestId, slug, score, scores: scored.reverse(), runs: scored.length, at: toIso(createdAt) };
  });
  const all = points.toReversed();
  const { slug, agent, model, score, scope, grade, outcome, createdAt } = last;
  return {
    slug,
    agent,
    model,
    score,
    scope,
    grade,
    outcome,
    at: toIso(createdAt),
    points: all.slice(-maxPoints).map(({ scores: _, ...point }) => point),
    change: changeOf(ctx, org, promptId, last, all),
  };
}

/** The change between the last two evaluations. */
function lastEvaluationChange(
  ctx: Context,
  org: OrgId,
  { agent, model }: PublishedRun,
  before: ScorePoint | undefined,
  after: ScorePoint | undefined,
): LatestChange | null {
  if (!before || !after || Math.min(before.runs, after.runs) < minRuns) return null;
  const { verdict, evidence } = compareEvals(
    ctx,
    org,
    { evalRequestIds: [before.evalRequestId] },
    [after.evalRequestId],
    {
      // A run without a report names the model that was requested.
      keeps: (run) => run.agent === agent && (run.report === null || run.model === model),
    },
  );
  return verdict && { verdict, delta: evidence.delta?.value ?? 0, at: after.at, slugs: [before.slug, after.slug] };
}

/** `points`: oldest first, at least the last two. */
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
  const step = lastEvaluationChange(ctx, org, latestRun, points.at(-2), points.at(-1));
  const isClear = step?.verdict === "improved" || step?.verdict === "regressed";
  const change = isClear ? step : (lastLevelChange(points) ?? step);
  if (lastChanges(ctx).size >= maxKept) lastChanges(ctx).clear();
  lastChanges(ctx).set(promptId, { basis, change });
  return change;
}
