import type { Context, OrgId } from "../context.ts";
import type { Db } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import type { reports } from "../db/tables/reports.ts";
import type { Scope } from "../grading/grade.ts";
import { isAlike } from "../reports/baseline.ts";
import { listPublishedRuns, type PublishedRun } from "../reports/compared-runs.ts";
import { comparedScope } from "../reports/differences.ts";
import { toIso } from "../schema.ts";
import { changePoints } from "../stats/change-points.ts";
import { mean } from "../stats/estimates.ts";
import { minRuns } from "../stats/power.ts";
import { type Comparison, compareEvals } from "./compare.ts";

/** Maximum number of the newest published live reports of a prompt to read. */
const maxReportsRead = 60;
const maxPoints = 20;
/** Prompts whose change is cached. */
const maxCached = 2_000;

/** An evaluation of a prompt: the mean score of its runs. */
export type ScorePoint = { evalRequestId: string; slug: string; score: number; runs: number; at: string };

/**
 * The current state of a prompt: its newest report, the evaluations with the same agent, model and methodology, oldest
 * first, and the change since the previous one.
 */
export type Latest = {
  slug: string;
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
export type LatestChange = {
  verdict: NonNullable<Comparison["verdict"]>;
  delta: number;
  at: string;
  slugs: [before: string, after: string];
};

/** Slugs of reports of the comparable evaluation before an evaluation, and of itself; null if one of them is not among the points. */
export function findStep(latest: Latest | null, evalRequestId: string): [before: string, after: string] | null {
  const index = latest?.points.findIndex((point) => point.evalRequestId === evalRequestId) ?? -1;
  const [before, after] = index < 1 ? [] : (latest?.points.slice(index - 1, index + 1) ?? []);
  return before && after ? [before.slug, after.slug] : null;
}

type Point = ScorePoint & { scores: number[] };

/** The change of each prompt that was computed last, with the points that it was computed from, because comparing is slow. */
const changesOf = perConnection((_: Db) => new Map<string, { key: string; change: LatestChange | null }>());

/** The current state of a prompt; null if it has no published live report. */
export function findLatest(ctx: Context, org: OrgId, promptId: string): Latest | null {
  const runs = listPublishedRuns(ctx, org, promptId, { limit: maxReportsRead, pageRows: maxReportsRead });
  const [newest] = runs;
  if (!newest) return null;
  // Of several agents, the first one of the prompt.
  const isFirst = (run: PublishedRun) => run.evalRequestId === newest.evalRequestId && run.agentIndex === 0;
  const last = runs.find(isFirst) ?? newest;
  const scope = comparedScope({ scope: last.scope, judge: last.methodology.judge });
  const points = toPoints(runs.filter((run) => isAlike(run, { ...last, scope })));
  return {
    slug: last.slug,
    score: last.score,
    scope: last.scope,
    grade: last.grade,
    outcome: last.outcome,
    at: toIso(last.createdAt),
    points: points.slice(-maxPoints).map(({ scores: _, ...point }) => point),
    change: findChange(ctx, org, promptId, last, points),
  };
}

/** The evaluations of runs, oldest first. `runs`: newest first. */
function toPoints(runs: PublishedRun[]): Point[] {
  const evaluations = [...Map.groupBy(runs, ({ evalRequestId }) => evalRequestId)];
  const points = evaluations.flatMap(([evalRequestId, runs]): Point[] => {
    const scores = runs.flatMap(({ score }) => score ?? []).reverse();
    const [newest] = runs;
    if (!newest || scores.length === 0) return [];
    const at = toIso(newest.createdAt);
    return [{ evalRequestId, slug: newest.slug, score: mean(scores), scores, runs: scores.length, at }];
  });
  return points.reverse();
}

/** `points`: oldest first, at least the last two. */
function findChange(
  ctx: Context,
  org: OrgId,
  promptId: string,
  { agent, model }: PublishedRun,
  points: Point[],
): LatestChange | null {
  const key = JSON.stringify([points.map(({ evalRequestId, runs }) => [evalRequestId, runs]), agent, model]);
  const changes = changesOf(ctx.db);
  const cached = changes.get(promptId);
  if (cached?.key === key) return cached.change;
  const step = findLastStep(ctx, org, { agent, model }, points.at(-2), points.at(-1));
  const isClear = step?.verdict === "improved" || step?.verdict === "regressed";
  const change = isClear ? step : (findLevelChange(points) ?? step);
  if (changes.size >= maxCached) changes.clear();
  changes.set(promptId, { key, change });
  return change;
}

/** The change between the last two evaluations; null if one of them has too few runs. */
function findLastStep(
  ctx: Context,
  org: OrgId,
  { agent, model }: Pick<PublishedRun, "agent" | "model">,
  before: Point | undefined,
  after: Point | undefined,
): LatestChange | null {
  if (!before || !after || Math.min(before.runs, after.runs) < minRuns) return null;
  const base = { evalRequestIds: [before.evalRequestId] };
  const { verdict, evidence } = compareEvals(ctx, org, base, [after.evalRequestId], {
    // A run without a report names the model that was requested.
    matches: (run) => run.agent === agent && (run.report === null || run.model === model),
  });
  return verdict && { verdict, delta: evidence.delta?.value ?? 0, at: after.at, slugs: [before.slug, after.slug] };
}

/** The newest change of the level of the scores, between two evaluations. */
function findLevelChange(points: Point[]): LatestChange | null {
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
