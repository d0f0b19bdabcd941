import { isRuleBased } from "../agents/agent.ts";
import type { Context, OrgId } from "../context.ts";
import type { reports } from "../db/tables/reports.ts";
import type { Scope } from "../grading/grade.ts";
import { isSameVariant } from "../reports/baseline.ts";
import { comparedScope } from "../reports/differences.ts";
import { listPublished, type PublishedRun } from "../reports/run-rows.ts";
import { toIso } from "../schema.ts";
import { mean } from "../stats/estimates.ts";
import { minRuns } from "../stats/power.ts";
import { isClear, type LatestChange, newestChangeOf, type ScorePoint, toScorePoint } from "./changes.ts";

/** Maximum number of the newest published live reports of a prompt to read. */
const maxReportsRead = 60;
const maxPoints = 20;
/**
 * The latest results of a prompt, by its newest report: the evaluations with the same agent, model and methodology, oldest first, and the newest
 * change of the scores.
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
 * What to look at to see whether an evaluation is better than before. Usually this is its report and the report of the evaluation before it, by
 * slugs. If both have too few runs for a verdict and the evaluation came with or after the newest clear change, it is that change. null: the
 * evaluation is not among the points, or is the first of them.
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
  const hasVerdict = isRuleBased(agent) || Math.min(before.runs, after.runs) >= minRuns;
  const isAfterChange = change?.after.evaluations.some((each) => each.evalRequestId === evalRequestId);
  if (change && isAfterChange && isClear(change) && !hasVerdict) return { change };
  return { slugs: [before.slug, after.slug] };
}

/** null: the prompt has no published live report. */
export function findLatestResults(ctx: Context, org: OrgId, promptId: string): LatestResults | null {
  const published = listPublished(ctx, org, promptId, maxReportsRead, { batchSize: maxReportsRead });
  const [newest] = published;
  if (!newest) return null;
  // If the prompt has several agents, its first agent counts.
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
    change: newestChangeOf(ctx, org, promptId, latestRun, oldestFirst),
  };
}

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
