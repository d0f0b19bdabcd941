import { and, desc, eq, isNull, or, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { createdWithin } from "../db/rows.ts";
import { reports } from "../db/tables/reports.ts";
import { isLiveRun, runs } from "../db/tables/runs.ts";
import { comparedScope } from "../reports/differences.ts";
import type { ScoreDay } from "../reports/score-days.ts";
import { toIso } from "../schema.ts";
import { summarizeRuns } from "../stats/repeats.ts";

/** Maximum number of runs to read per request, newest first. An evaluation has at most 50 runs, so this covers at least 40 evaluations. */
const maxRuns = 2000;

type PointsQuery = {
  promptId: string;
  /** A day of the series. It has the agent, version, context, model and methodology of the series. */
  series: ScoreDay;
  /** Start and end, epoch ms. */
  period: [start: number, end: number];
  maxPoints: number;
  /** Whether an evaluation without a report belongs to the series, by its time. */
  isWithinSeries: (at: number) => boolean;
};

/** One point per evaluation of a series, oldest first. Only published and failed runs on the live docs count. */
export function listEvaluationPoints(ctx: Context, org: OrgId, query: PointsQuery) {
  const rows = readRuns(ctx, org, query);
  const groups = [...Map.groupBy(rows, ({ evalRequestId }) => evalRequestId)];
  // If the list was truncated, some runs of the oldest evaluation may be missing.
  const isTruncated = rows.length > maxRuns;
  const evaluations = (isTruncated ? groups.slice(0, -1) : groups)
    .map(([id, evalRuns]) => [id, runsOfSeries(evalRuns, query)] as const)
    .filter(([, seriesRuns]) => seriesRuns.length > 0);
  const shownEvaluations = evaluations.slice(0, query.maxPoints);
  const [, lastShownRuns] = shownEvaluations.at(-1) ?? [];
  // The next page has earlier evaluations. It ends with the oldest run that is shown here or, if none is shown, with the oldest run that was read.
  const oldestRun = (lastShownRuns ?? rows).at(-1);
  const hasNextPage = isTruncated || shownEvaluations.length < evaluations.length;
  return {
    points: shownEvaluations
      .map(([evalRequestId, seriesRuns]) => ({
        from: toIso(seriesRuns.at(-1)?.at ?? query.period[0]),
        evalRequestId,
        prompts: 1,
        ...summarizeRuns(seriesRuns),
      }))
      .reverse(),
    nextUntil: oldestRun && hasNextPage ? toIso(oldestRun.at) : null,
  };
}

/**
 * The runs of an evaluation that belong to a series. A run without a report belongs to the series of the reports in the same evaluation. If there are
 * none, its time decides.
 */
function runsOfSeries(evalRuns: RunRow[], { series, isWithinSeries }: PointsQuery): RunRow[] {
  if (evalRuns.every(({ report }) => report === null))
    return evalRuns.every(({ at }) => isWithinSeries(at)) ? evalRuns : [];
  const seriesRuns = evalRuns.filter(
    ({ report, version, contextDigest }) =>
      report === null ||
      (report.hash === series.methodology.hash &&
        comparedScope({ scope: report.scope, judge: series.methodology.judge }) === series.scope &&
        version === series.version &&
        contextDigest === series.contextDigest),
  );
  return seriesRuns.some(({ report }) => report !== null) ? seriesRuns : [];
}

type RunRow = ReturnType<typeof readRuns>[number];

/** The runs of a prompt with the agent and model of a series, newest first. If there are more than the maximum, one more than the maximum is read. */
function readRuns({ db }: Context, org: OrgId, { promptId, series, period }: PointsQuery) {
  return db
    .select({
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
}
