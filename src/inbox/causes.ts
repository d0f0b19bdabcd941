import { and, avg, eq, inArray, type SQL, sql } from "drizzle-orm";
import type { LatestChange } from "../comparisons/latest.ts";
import type { Context, OrgId } from "../context.ts";
import { exposures, frictionPoints, recommendations } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { runs, sessionEvents } from "../db/tables/runs.ts";
import { pageKey } from "../net/page-key.ts";
import { round } from "../stats/repeats.ts";
import type { ChangeCause } from "./schema.ts";

/** By how much the share of runs that hit a friction point, or read a page, must have moved for it to be a cause. */
const minShare = 0.5;
/** Each friction point costs what a fix of it alone would gain. Together they cost more, but hardly this many times as much. */
const maxJointFactor = 3;
/** A comparison leaves out dimensions, so that what is left weighs more: at most this many times as much. */
const maxWeightFactor = 2;

/** What explains a change, in points of its delta. `causes`: the one that explains most first. */
type ChangeCauses = {
  causes: ChangeCause[];
  agentPoints: number;
  networkPoints: number;
  unexplained: number;
};

/** The points of a change by what explains them: friction that came or went, the agent's other mistakes, the network. */
export function findCauses(ctx: Context, org: OrgId, agent: string, change: LatestChange): ChangeCauses {
  const ofChange = whereReports(org, agent, change);
  const frictionCauses = findFrictionCauses(ctx, ofChange, change);
  const known = lostPointsOf(ctx, ofChange, change);
  const lost = known ?? { fixes: change.delta, agent: 0, network: 0 };
  // Friction without a fix is a mistake of the agent, or of the network.
  const [ofDocs, ofOthers] = [true, false].map((hasFix) =>
    frictionCauses.filter((cause) => cause.hasFix === hasFix),
  ) as [FoundCause[], FoundCause[]];
  const maxFactor = known === null ? 1 : maxJointFactor;
  const docsFactor = jointFactorOf(ofDocs, lost.fixes, maxFactor);
  const othersFactor = jointFactorOf(ofOthers, lost.agent + lost.network, maxFactor);
  const causes = frictionCauses.map(({ hasFix, ...cause }) => ({
    ...cause,
    points: cause.points === null ? null : round(cause.points * (hasFix ? docsFactor : othersFactor), 1),
  }));
  const rest = lost.agent + lost.network - sumOf(ofOthers) * othersFactor;
  const agentPoints = rest * lost.agent > 0 ? Math.sign(rest) * Math.min(Math.abs(rest), Math.abs(lost.agent)) : 0;
  const explained = sumOf(causes) + rest;
  return {
    causes,
    agentPoints: round(agentPoints, 1),
    networkPoints: round(rest - agentPoints, 1),
    unexplained: round(change.delta - explained, 1),
  };
}

const sumOf = (causes: ChangeCause[]) => causes.reduce((sum, { points }) => sum + (points ?? 0), 0);

/** What to multiply the points of causes with, so that together they explain as much as reports say; 1 if they point the other way. */
function jointFactorOf(causes: FoundCause[], total: number, maxFactor: number): number {
  const sum = sumOf(causes);
  return sum * total > 0 ? Math.min(maxFactor, total / sum) : 1;
}

const idsOf = ({ evaluations }: LatestChange["before"]) => evaluations.map(({ evalRequestId }) => evalRequestId);

/** The published reports of both sides of a change, of an agent. */
const whereReports = (org: OrgId, agent: string, { before, after }: LatestChange) =>
  and(
    eq(runs.orgId, org),
    inArray(runs.evalRequestId, [...idsOf(before), ...idsOf(after)]),
    eq(runs.agent, agent),
    eq(reports.status, "published"),
  );

/** The points of the change that each owner of causes explains, from the means of both sides; null: no report has them. */
function lostPointsOf(ctx: Context, ofChange: SQL | undefined, { before, after, delta }: LatestChange) {
  const meansOf = (side: LatestChange["before"]) => {
    const meanOf = (owner: string): SQL<number | null> =>
      avg(sql`json_extract(${reports.lost}, ${`$.${owner}`})`).mapWith(Number);
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
  const [lostBefore, lostAfter] = [meansOf(before), meansOf(after)];
  const fellBy = (lostAfter?.score ?? 0) - (lostBefore?.score ?? 0);
  const factor = fellBy * delta > 0 ? Math.min(maxWeightFactor, Math.max(1, delta / fellBy)) : 1;
  const changeOf = (owner: "fixes" | "agent" | "network") => {
    const [from, to] = [lostBefore?.[owner] ?? null, lostAfter?.[owner] ?? null];
    return from === null || to === null ? null : round((from - to) * factor, 1);
  };
  const [fixes, agent, network] = [changeOf("fixes"), changeOf("agent"), changeOf("network")];
  return fixes === null || agent === null || network === null ? null : { fixes, agent, network };
}

/** `hasFix`: whether a recommended fix would remove it. */
type FoundCause = ChangeCause & { hasFix: boolean };

/**
 * The friction that runs on one side of a change hit and those on the other did not, the one that explains most first. Points: what it costs
 * alone, times the change of the share of runs that hit it.
 */
function findFrictionCauses(ctx: Context, ofChange: SQL | undefined, change: LatestChange): FoundCause[] {
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
  const countReports = (some: typeof rows, isBefore: boolean) =>
    new Set(some.filter((row) => before.has(row.evalRequestId) === isBefore).map(({ reportId }) => reportId)).size;
  const shareOf = (some: typeof rows, isBefore: boolean) => ({
    met: countReports(some, isBefore),
    of: countReports(rows, isBefore),
  });
  const frictionCauses = [...Map.groupBy(rows, ({ point }) => point?.fingerprint)].flatMap(([, hits]) => {
    const newest = hits.reduce((a, b) => (a.reportId > b.reportId ? a : b));
    if (!newest.point) return [];
    const share = { before: shareOf(hits, true), after: shareOf(hits, false) };
    const moved = share.after.met / share.after.of - share.before.met / share.before.of;
    if (!(Math.abs(moved) >= minShare)) return [];
    const { fingerprint, title, lostPoints, preconditions, events } = newest.point;
    const points = lostPoints === null ? null : round(-moved * lostPoints, 1);
    const fix = fixOf(ctx, newest.reportId, newest.point);
    return [
      {
        cause: { fingerprint, title, points, ...share, slug: newest.slug, ...fix },
        isAboutGoal: preconditions.includes("goal"),
        page: newest.point.url,
        session: { runId: newest.runId, attempt: newest.attempt, events },
      },
    ];
  });
  // That no page answers the goal follows from a page that agents could read on one side only, and names another page.
  const others = frictionCauses.filter(({ isAboutGoal }) => !isAboutGoal);
  const moved =
    others.length > 0 && others.length < frictionCauses.length
      ? pagesOfOneSide(ctx, ofChange, before)
      : new Set<string>();
  const isExplained =
    moved.size > 0 &&
    others.some(({ page, session }) =>
      [...(page === null ? [] : [page]), ...requestedIn(ctx, session)].some((url) => moved.has(pageKey(url))),
    );
  type FoundFriction = (typeof frictionCauses)[number];
  const rankOf = ({ isAboutGoal }: FoundFriction) => (isAboutGoal && isExplained ? 1 : 0);
  const pointsOf = ({ cause }: FoundFriction) => Math.abs(cause.points ?? 0);
  return frictionCauses.sort((a, b) => rankOf(a) - rankOf(b) || pointsOf(b) - pointsOf(a)).map(({ cause }) => cause);
}

/** The pages, by page key, that most runs on one side read and few on the other. */
function pagesOfOneSide(ctx: Context, ofChange: SQL | undefined, before: Set<string>): Set<string> {
  const rows = ctx.db
    .select({ evalRequestId: runs.evalRequestId, visits: exposures.visits })
    .from(runs)
    .innerJoin(reports, eq(reports.runId, runs.id))
    .innerJoin(exposures, eq(exposures.reportId, reports.id))
    .where(ofChange)
    .all();
  const [earlier, later] = [true, false].map((isBefore) =>
    rows.filter(({ evalRequestId }) => before.has(evalRequestId) === isBefore),
  ) as [typeof rows, typeof rows];
  const readShares = (side: typeof rows) => {
    const shares = new Map<string, number>();
    for (const { visits } of side)
      for (const { page, reads } of visits) if (reads > 0) shares.set(page, (shares.get(page) ?? 0) + 1 / side.length);
    return shares;
  };
  const [sharesBefore, sharesAfter] = [readShares(earlier), readShares(later)];
  const pages = new Set([...sharesBefore.keys(), ...sharesAfter.keys()]);
  return new Set(
    [...pages].filter((page) => Math.abs((sharesAfter.get(page) ?? 0) - (sharesBefore.get(page) ?? 0)) >= minShare),
  );
}

/** The URLs that some events of a session requested. */
function requestedIn(
  ctx: Context,
  { runId, attempt, events }: { runId: string; attempt: number; events: number[] },
): string[] {
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

/** Where the recommended fix of a friction point changes its page, and what it gains. */
function fixOf(ctx: Context, reportId: string, { id, url }: { id: string; url: string | null }) {
  const fix = ctx.db
    .select({
      evidence: recommendations.evidence,
      // As reports show it.
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
