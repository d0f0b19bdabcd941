import { and, avg, count, desc, eq, isNull, sql } from "drizzle-orm";
import { priceOf } from "../agents/gateway/prices.ts";
import type { Context, OrgId } from "../context.ts";
import { gradings, reports } from "../db/tables/reports.ts";
import { runs, sessionEvents } from "../db/tables/runs.ts";
import { getModel } from "../models/models.ts";
import { splitVariance } from "../reports/judge-variance.ts";
import { type RegradeRow, reportsOfRegrade } from "./regrade-row.ts";
import type { Regrade } from "./schema.ts";

/** How many of the newest gradings the variance is computed from. */
const maxSampled = 10_000;

/** The effect of a regrade, which isn't done. Sessions that can't be judged count as regraded. */
export function planRegrade({ db }: Context, row: RegradeRow): RegradeRow {
  const firstEvent = and(
    eq(sessionEvents.runId, reports.runId),
    eq(sessionEvents.attempt, reports.attempt),
    eq(sessionEvents.seq, 0),
  );
  const countReports = (where: ReturnType<typeof and>) =>
    db.select({ n: count() }).from(reports).leftJoin(sessionEvents, firstEvent).where(where).get()?.n ?? 0;
  const withoutEvents = countReports(and(reportsOfRegrade(row), isNull(sessionEvents.seq)));
  const whereUnchanged = sql`json_extract(${reports.methodology}, '$.hash') = ${row.hash}`;
  // With several repeats, a report may have the requested grading but lack further repeats.
  const unchanged =
    row.repeats > 1
      ? 0
      : countReports(and(reportsOfRegrade(row), whereUnchanged, sql`${sessionEvents.seq} is not null`));
  return { ...row, withoutEvents, unchanged, graded: row.total - withoutEvents - unchanged };
}

/** The cost of judging this many sessions, by the tokens of earlier judgments; null if unknown. */
export function estimateRegrade(
  ctx: Context,
  org: OrgId,
  { judge, repeats, total }: RegradeRow,
  processed: number,
): number | null {
  if (judge === null || processed >= total) return 0;
  const tokens = (name: string) => avg(sql`json_extract(${reports.judge}, ${`$.${name}`})`).mapWith(Number);
  const averages = ctx.db
    .select({ input: tokens("inputTokens"), output: tokens("outputTokens"), n: count() })
    .from(reports)
    .where(and(eq(reports.orgId, org), sql`${reports.judge} is not null`))
    .get();
  if (!averages?.n) return null;
  const usage = { input: averages.input ?? 0, output: averages.output ?? 0, cached: 0, cacheWritten: 0 };
  try {
    const price = priceOf({ ...usage, cacheWrittenForHour: 0, reasoning: 0 }, null, getModel(ctx, org, judge));
    return price === null ? null : Number((price * repeats * (total - processed)).toFixed(4));
  } catch {
    // The key was removed in the meantime.
    return null;
  }
}

/** How much the judge of a regrade varies, and how much runs of one evaluation differ. */
export function judgeVarianceOf(ctx: Context, row: RegradeRow): Regrade["variance"] {
  const isRepeated = row.judge !== null && row.repeats > 1;
  const rows = isRepeated ? listNewestScores(ctx, row) : [];
  const rowsByReport = Map.groupBy(rows, ({ reportId }) => reportId);
  return splitVariance(
    [...rowsByReport.values()].map((group) => ({
      evalRequestId: group[0]?.evalRequestId ?? "",
      scores: group.flatMap(({ score }) => score ?? []),
    })),
  );
}

/** The scores of the newest gradings of a regrade. */
const listNewestScores = ({ db }: Context, row: RegradeRow) =>
  db
    .select({
      reportId: gradings.reportId,
      evalRequestId: runs.evalRequestId,
      score: sql<number | null>`json_extract(${gradings.grade}, '$.score')`,
    })
    .from(gradings)
    .innerJoin(reports, eq(reports.id, gradings.reportId))
    .innerJoin(runs, eq(runs.id, reports.runId))
    .where(and(eq(gradings.orgId, row.orgId), eq(gradings.hash, row.hash), reportsOfRegrade(row)))
    .orderBy(desc(gradings.reportId))
    .limit(maxSampled)
    .all();
