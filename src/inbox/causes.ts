import { and, eq, inArray, sql } from "drizzle-orm";
import type { LatestChange } from "../comparisons/latest.ts";
import type { Context, OrgId } from "../context.ts";
import { frictionPoints, recommendations } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { round } from "../stats/repeats.ts";
import type { ChangeCause } from "./schema.ts";

/** By how much the share of runs that hit a friction point must have moved for it to be a cause. */
const minShare = 0.5;

/**
 * The friction that runs on one side of a change hit and those on the other did not, the one that explains most of it first. What it
 * explains: its points, times the change of the share of runs that hit it.
 */
export function findCauses(ctx: Context, org: OrgId, agent: string, change: LatestChange): ChangeCause[] {
  const [before, after] = [change.before, change.after].map(
    ({ evaluations }) => new Set(evaluations.map(({ evalRequestId }) => evalRequestId)),
  ) as [Set<string>, Set<string>];
  const ids = [...before, ...after];
  const rows = ctx.db
    .select({ evalRequestId: runs.evalRequestId, reportId: reports.id, slug: reports.slug, point: frictionPoints })
    .from(runs)
    .innerJoin(reports, eq(reports.runId, runs.id))
    .leftJoin(frictionPoints, eq(frictionPoints.reportId, reports.id))
    .where(
      and(
        eq(runs.orgId, org),
        inArray(runs.evalRequestId, ids),
        eq(runs.agent, agent),
        eq(reports.status, "published"),
      ),
    )
    .all();
  const countReports = (some: typeof rows, isBefore: boolean) =>
    new Set(some.filter((row) => before.has(row.evalRequestId) === isBefore).map(({ reportId }) => reportId)).size;
  const shareOf = (some: typeof rows, isBefore: boolean) => ({
    met: countReports(some, isBefore),
    of: countReports(rows, isBefore),
  });
  return [...Map.groupBy(rows, ({ point }) => point?.fingerprint)]
    .flatMap(([, hits]) => {
      const newest = hits.reduce((a, b) => (a.reportId > b.reportId ? a : b));
      if (!newest.point) return [];
      const share = { before: shareOf(hits, true), after: shareOf(hits, false) };
      const moved = share.after.met / share.after.of - share.before.met / share.before.of;
      if (!(Math.abs(moved) >= minShare)) return [];
      const { fingerprint, title, url, lostPoints } = newest.point;
      const points = lostPoints === null ? null : round(-moved * lostPoints, 1);
      return [
        {
          ...{ fingerprint, title, url, points },
          ...share,
          slug: newest.slug,
          ...fixOf(ctx, newest.reportId, newest.point),
        },
      ];
    })
    .sort((a, b) => Math.abs(b.points ?? 0) - Math.abs(a.points ?? 0));
}

/** Where the recommended fix of a friction point changes its page, and what it gains. */
function fixOf(ctx: Context, reportId: string, { id, url }: { id: string; url: string | null }) {
  const fix = ctx.db
    .select({ evidence: recommendations.evidence, expectedGain: recommendations.expectedGain })
    .from(recommendations)
    .where(
      and(
        eq(recommendations.reportId, reportId),
        sql`exists (select 1 from json_each(${recommendations.frictionIds}) where value = ${id})`,
      ),
    )
    .get();
  return {
    url: fix?.evidence?.url ?? url,
    line: fix?.evidence?.line ?? null,
    expectedGain: fix?.expectedGain ?? null,
  };
}
