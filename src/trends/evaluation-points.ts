import { and, desc, eq, isNull, or, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { createdWithin } from "../db/rows.ts";
import { reports } from "../db/tables/reports.ts";
import { isLiveRun, runs } from "../db/tables/runs.ts";
import { comparedScope } from "../reports/differences.ts";
import type { ScoreDay } from "../reports/score-days.ts";
import { toIso } from "../schema.ts";
import { summarizeRuns } from "../stats/repeats.ts";

/** Maximum number of runs to read per request, newest first: an evaluation has at most 50. */
const maxRuns = 2000;

type PointsQuery = {
  promptId: string;
  /** A day of the series, which tells its agent, version, context, model and methodology. */
  series: ScoreDay;
  /** Start and end, epoch ms. */
  period: [start: number, end: number];
  maxPoints: number;
  /** Whether an evaluation without a report, from this time, belongs to the series. */
  isWithinSeries: (at: number) => boolean;
};

/** One point per evaluation of a series, oldest first. Only published and failed runs on the live docs count. */
export function listEvaluationPoints(
  { db }: Context,
  org: OrgId,
  { promptId, series, period, maxPoints, isWithinSeries }: PointsQuery,
) {
  const rows = db
    .select({
      id: runs.id,
      at: runs.createdAt,
      evalRequestId: runs.evalRequestId,
      failureCause: runs.failureCause,
      version: sql<string>`coalesce(${runs.agentVersion}, '')`,
      contextDigest: sql<string>`coalesce(${runs.contextDigest}, '')`,
      report: {
        outcome: reports.outcome,
        scope: reports.scope,
        score: reports.score,
        hash: sql<string>`json_extract(${reports.methodology}, '$.hash')`,
        seconds: sql<number | null>`json_extract(${reports.metrics}, '$.timeSeconds')`,
        costUsd: sql<number | null>`json_extract(${reports.metrics}, '$.costUsd')`,
      },
    })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .where(
      and(
        eq(runs.orgId, org),
        eq(runs.promptId, promptId),
        createdWithin(runs.id, period),
        eq(runs.agent, series.agent),
        sql`coalesce(${runs.model}, '') = ${series.model}`,
        isLiveRun,
        or(eq(reports.status, "published"), and(isNull(reports.status), eq(runs.status, "failed"))),
      ),
    )
    .orderBy(desc(runs.id))
    .limit(maxRuns + 1)
    .all()
    .map(({ report, ...run }) => ({ ...run, report: report?.outcome == null ? null : report }));
  const groups = [...Map.groupBy(rows, ({ evalRequestId }) => evalRequestId)];
  const isSameScope = (scope: ScoreDay["scope"]) =>
    comparedScope({ scope, judge: series.methodology.judge }) === series.scope;
  // If the list was truncated, some runs of the oldest evaluation may be missing.
  const isTruncated = rows.length > maxRuns;
  const evaluations = (isTruncated ? groups.slice(0, -1) : groups).flatMap(([id, evalRuns]): typeof groups => {
    const seriesRuns = evalRuns.filter(
      ({ report, version, contextDigest }) =>
        report === null ||
        (report.hash === series.methodology.hash &&
          isSameScope(report.scope) &&
          version === series.version &&
          contextDigest === series.contextDigest),
    );
    const isGraded = seriesRuns.some(({ report }) => report !== null);
    const hasOnlyUngradedRuns = evalRuns.every(({ report, at }) => report === null && isWithinSeries(at));
    return isGraded || hasOnlyUngradedRuns ? [[id, seriesRuns]] : [];
  });
  const shownEvaluations = evaluations.slice(0, maxPoints);
  const [, lastShownRuns] = shownEvaluations.at(-1) ?? [];
  // The next page begins before the last evaluation of this one, or before all runs that were read.
  const oldestRun = (lastShownRuns ?? rows).at(-1);
  return {
    points: shownEvaluations
      .map(([evalRequestId, evalRuns]) => ({
        from: toIso(evalRuns.at(-1)?.at ?? period[0]),
        evalRequestId,
        prompts: 1,
        ...summarizeRuns(evalRuns),
      }))
      .reverse(),
    nextUntil: oldestRun && (isTruncated || shownEvaluations.length < evaluations.length) ? toIso(oldestRun.at) : null,
  };
}
