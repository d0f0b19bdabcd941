import { and, avg, eq, inArray, type SQL, sql } from "drizzle-orm";
import type { LatestChange } from "../comparisons/changes.ts";
import type { Context, OrgId } from "../context.ts";
import { exposures, frictionPoints, recommendations } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { runs, sessionEvents } from "../db/tables/runs.ts";
import { pageKey } from "../net/page-key.ts";
import { round } from "../stats/repeats.ts";
import type { ChangeCause } from "./schema.ts";

/** The minimum change for a cause. It applies to the share of runs that hit a friction point or read a page. */
const minShare = 0.5;
/**
 * The points of each friction point are what fixing it alone would gain. Several together cost more, but hardly more than this many times as much.
 */
const maxJointFactor = 3;
/** A comparison may leave out dimensions, so that the others weigh more. They weigh at most this many times as much. */
const maxWeightFactor = 2;

/** The causes of a change, in points of its delta. `causes`: the cause that explains most comes first. */
type ChangeCauses = {
  causes: ChangeCause[];
  agentPoints: number;
  networkPoints: number;
  unexplained: number;
};

/** Splits the points of a change by cause: friction that appeared or disappeared, other mistakes of the agent, and the network. */
export function findCauses(ctx: Context, org: OrgId, agent: string, change: LatestChange): ChangeCauses {
  const ofChange = whereReports(org, agent, change);
  const frictionCauses = findFrictionCauses(ctx, ofChange, change);
  const measuredPoints = explainedPointsOf(ctx, ofChange, change);
  // Without measured points, fixes may explain the whole change, and each friction point explains no more than it costs alone.
  const pointsOf = measuredPoints ?? { fixes: change.delta, agent: 0, network: 0 };
  const maxFactor = measuredPoints === null ? 1 : maxJointFactor;
  // Friction without a fix is a mistake of the agent, or a fault of the network.
  const docsCauses = frictionCauses.filter(({ hasFix }) => hasFix);
  const mistakes = frictionCauses.filter(({ hasFix }) => !hasFix);
  const mistakePoints = pointsOf.agent + pointsOf.network;
  const docsFactor = jointFactorOf(docsCauses, pointsOf.fixes, maxFactor);
  const mistakeFactor = jointFactorOf(mistakes, mistakePoints, maxFactor);
  const causes = frictionCauses.map(({ hasFix, ...cause }) => ({
    ...cause,
    points: cause.points === null ? null : round(cause.points * (hasFix ? docsFactor : mistakeFactor), 1),
  }));
  // The points of mistakes that aren't friction. Without measured points, they are unknown.
  const otherMistakePoints = measuredPoints === null ? 0 : mistakePoints - sumOf(mistakes) * mistakeFactor;
  // The agent explains at most its own points. The network explains the rest.
  const agentPoints = shareUpTo(otherMistakePoints, pointsOf.agent);
  return {
    causes,
    agentPoints: round(agentPoints, 1),
    networkPoints: round(otherMistakePoints - agentPoints, 1),
    unexplained: round(change.delta - sumOf(causes) - otherMistakePoints, 1),
  };
}

/** Limits `total` to the size of `max`; 0 if they have different signs. */
function shareUpTo(total: number, max: number): number {
  const hasSameSign = total * max > 0;
  return hasSameSign ? Math.sign(total) * Math.min(Math.abs(total), Math.abs(max)) : 0;
}

/** `hasFix`: whether a recommended fix would remove the friction. */
type FrictionCause = ChangeCause & { hasFix: boolean };

const sumOf = (causes: ChangeCause[]) => causes.reduce((sum, { points }) => sum + (points ?? 0), 0);

/**
 * The factor for the points of causes that makes them explain together as much as reports say. It is 1 if their sum has another sign than `total`.
 */
function jointFactorOf(causes: FrictionCause[], total: number, maxFactor: number): number {
  const sum = sumOf(causes);
  return sum * total > 0 ? Math.min(maxFactor, total / sum) : 1;
}

const idsOf = ({ evaluations }: LatestChange["before"]) => evaluations.map(({ evalRequestId }) => evalRequestId);

/** The published reports of an agent on both sides of a change. */
const whereReports = (org: OrgId, agent: string, { before, after }: LatestChange) =>
  and(
    eq(runs.orgId, org),
    inArray(runs.evalRequestId, [...idsOf(before), ...idsOf(after)]),
    eq(runs.agent, agent),
    eq(reports.status, "published"),
  );

/** Who is responsible for lost points: the docs (`fixes` would correct them), the agent, or the network. Each is a field of a report's `lost`. */
type LossPart = "fixes" | "agent" | "network";

/**
 * How many points of the change the docs (`fixes`), the agent and the network explain. For each of them, it is the difference between both sides in
 * the mean points that reports lost. It is scaled by how much larger `delta` is than the change of their scores. null: a side has no report with lost
 * points.
 */
function explainedPointsOf(ctx: Context, ofChange: SQL | undefined, { before, after, delta }: LatestChange) {
  const meansOf = (side: LatestChange["before"]) => {
    const meanOf = (part: LossPart): SQL<number | null> =>
      avg(sql`json_extract(${reports.lost}, ${`$.${part}`})`).mapWith(Number);
    return ctx.db
      .select({
        score: avg(reports.score).mapWith(Number),
        fixes: meanOf("fixes"),
        agent: meanOf("agent"),
        network: meanOf("network"),
      })
      .from(runs)
      .innerJoin(reports, eq(reports.runId, runs.id))
      .where(and(ofChange, inArray(runs.evalRequestId, idsOf(side))))
      .get();
  };
  const [meansBefore, meansAfter] = [meansOf(before), meansOf(after)];
  const scoreDelta = (meansAfter?.score ?? 0) - (meansBefore?.score ?? 0);
  const hasSameSign = scoreDelta * delta > 0;
  const factor = hasSameSign ? Math.min(maxWeightFactor, Math.max(1, delta / scoreDelta)) : 1;
  const changeOf = (part: LossPart): number | null => {
    const [lostBefore, lostAfter] = [meansBefore?.[part] ?? null, meansAfter?.[part] ?? null];
    return lostBefore === null || lostAfter === null ? null : round((lostBefore - lostAfter) * factor, 1);
  };
  const [fixes, agent, network] = [changeOf("fixes"), changeOf("agent"), changeOf("network")];
  return fixes === null || agent === null || network === null ? null : { fixes, agent, network };
}

/**
 * The friction that runs on only one side of a change hit. The cause that explains most comes first. `points`: the points that the friction costs
 * alone, multiplied by the change in the share of runs that hit it; null: unknown.
 */
function findFrictionCauses(ctx: Context, ofChange: SQL | undefined, change: LatestChange): FrictionCause[] {
  const before = new Set(idsOf(change.before));
  const rows = ctx.db
    .select({
      evalRequestId: runs.evalRequestId,
      reportId: reports.id,
      slug: reports.slug,
      runId: runs.id,
      attempt: runs.attempt,
      point: frictionPoints,
    })
    .from(runs)
    .innerJoin(reports, eq(reports.runId, runs.id))
    .leftJoin(frictionPoints, eq(frictionPoints.reportId, reports.id))
    .where(ofChange)
    .all();
  const countReports = (side: typeof rows) => new Set(side.map(({ reportId }) => reportId)).size;
  const [rowsBefore, rowsAfter] = splitByChange(rows, before);
  // A report without friction counts only as a run that did not hit it.
  const rowsWithFriction = rows.flatMap(({ point, ...row }) => (point === null ? [] : [{ ...row, point }]));
  const sightings = [...Map.groupBy(rowsWithFriction, ({ point }) => point.fingerprint).values()].flatMap((hits) => {
    const newest = hits.reduce((a, b) => (a.reportId > b.reportId ? a : b));
    const [hitsBefore, hitsAfter] = splitByChange(hits, before);
    const shares = {
      before: { met: countReports(hitsBefore), of: countReports(rowsBefore) },
      after: { met: countReports(hitsAfter), of: countReports(rowsAfter) },
    };
    const shareChange = shares.after.met / shares.after.of - shares.before.met / shares.before.of;
    // NaN if a side has no reports.
    if (Number.isNaN(shareChange) || Math.abs(shareChange) < minShare) return [];
    const { fingerprint, title, lostPoints, preconditions, events } = newest.point;
    const points = lostPoints === null ? null : round(-shareChange * lostPoints, 1);
    const fix = fixOf(ctx, newest.reportId, newest.point);
    return [
      {
        cause: { fingerprint, title, points, ...shares, slug: newest.slug, ...fix },
        isAboutGoal: preconditions.includes("goal"),
        page: newest.point.url,
        session: { runId: newest.runId, attempt: newest.attempt, events },
      },
    ];
  });
  const sorted = sightings.sort((a, b) => Math.abs(b.cause.points ?? 0) - Math.abs(a.cause.points ?? 0));
  const ofGoal = sorted.filter(({ isAboutGoal }) => isAboutGoal);
  const others = sorted.filter(({ isAboutGoal }) => !isAboutGoal);
  // If the page with the answer appeared or disappeared, that page is the cause. The unanswered goal is only its effect.
  const isFromPage = ofGoal.length > 0 && others.length > 0 && hasPageOfOneSide(ctx, ofChange, before, others);
  return (isFromPage ? [...others, ...ofGoal] : sorted).map(({ cause }) => cause);
}

/** A friction point with its page and the session that shows it. */
type Sighting = { page: string | null; session: { runId: string; attempt: number; events: number[] } };

/** Whether friction is about a page that most runs on one side of a change read, and few on the other side. */
function hasPageOfOneSide(
  ctx: Context,
  ofChange: SQL | undefined,
  before: Set<string>,
  sightings: Sighting[],
): boolean {
  const pages = pagesOfOneSide(ctx, ofChange, before);
  if (pages.size === 0) return false;
  return sightings.some(({ page, session }) => {
    const urls = [...(page === null ? [] : [page]), ...requestedIn(ctx, session)];
    return urls.some((url) => pages.has(pageKey(url)));
  });
}

/** Splits the rows of evaluations into those before a change, whose IDs are in `before`, and those after it. */
const splitByChange = <Row extends { evalRequestId: string }>(rows: Row[], before: Set<string>): [Row[], Row[]] => [
  rows.filter(({ evalRequestId }) => before.has(evalRequestId)),
  rows.filter(({ evalRequestId }) => !before.has(evalRequestId)),
];

/** The page keys of pages that most runs on one side read, and few on the other side. */
function pagesOfOneSide(ctx: Context, ofChange: SQL | undefined, before: Set<string>): Set<string> {
  const rows = ctx.db
    .select({ evalRequestId: runs.evalRequestId, visits: exposures.visits })
    .from(runs)
    .innerJoin(reports, eq(reports.runId, runs.id))
    .innerJoin(exposures, eq(exposures.reportId, reports.id))
    .where(ofChange)
    .all();
  const readShares = (side: typeof rows) => {
    const shares = new Map<string, number>();
    for (const { visits } of side)
      for (const { page, reads } of visits) if (reads > 0) shares.set(page, (shares.get(page) ?? 0) + 1 / side.length);
    return shares;
  };
  const [rowsBefore, rowsAfter] = splitByChange(rows, before);
  const [sharesBefore, sharesAfter] = [readShares(rowsBefore), readShares(rowsAfter)];
  const shareChangeOf = (page: string) => (sharesAfter.get(page) ?? 0) - (sharesBefore.get(page) ?? 0);
  const pages = [...sharesBefore.keys(), ...sharesAfter.keys()];
  return new Set(pages.filter((page) => Math.abs(shareChangeOf(page)) >= minShare));
}

/** The URLs that some events of a session requested. */
function requestedIn(ctx: Context, { runId, attempt, events }: Sighting["session"]): string[] {
  return ctx.db
    .select({ url: sql<string>`json_extract(${sessionEvents.data}, '$.url')` })
    .from(sessionEvents)
    .where(
      and(
        eq(sessionEvents.runId, runId),
        eq(sessionEvents.attempt, attempt),
        inArray(sessionEvents.seq, events),
        eq(sessionEvents.type, "http"),
      ),
    )
    .all()
    .map(({ url }) => url);
}

/** Where the recommended fix of a friction point changes its page, and how many points the fix gains. */
function fixOf(ctx: Context, reportId: string, { id, url }: { id: string; url: string | null }) {
  const fix = ctx.db
    .select({
      evidence: recommendations.evidence,
      // The same value that reports show.
      gain: sql<number | null>`coalesce(${recommendations.lostPoints}, ${recommendations.expectedGain})`,
    })
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
    hasFix: fix !== undefined,
    expectedGain: fix?.gain ?? null,
  };
}
