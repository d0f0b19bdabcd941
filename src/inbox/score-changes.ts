import { and, eq, inArray, isNotNull, ne, sql } from "drizzle-orm";
import { findLatest, type Latest } from "../comparisons/latest.ts";
import type { Context, OrgId } from "../context.ts";
import { frictionPoints, recommendations } from "../db/tables/friction.ts";
import { prompts } from "../db/tables/prompts.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { scoreChanges } from "../db/tables/trends.ts";
import { createPoll } from "../poll.ts";
import { titleOf } from "../reports/labels.ts";
import type { ChangeCause, ScoreChange } from "./schema.ts";

/** A change counts as recent for this long. */
const recentMs = 30 * 24 * 3600_000;
/** Evaluations on each side of a change in which its cause is looked for. */
const maxEvaluations = 5;
/** Prompts to search when a list is requested. The rest follows in the background. */
const maxRefreshed = 10;
/** Pauses of the search in the background, with and without more to do. */
const betweenMs = 20;
const pollMs = 2_000;

type Unmarked<T> = T extends unknown ? Omit<T, "snoozedUntil" | "assignee" | "markedBy" | "markedAt"> : never;
type Found = Unmarked<ScoreChange>;
type StoredChange = Omit<Found, "prompt"> & { promptId: string };

/** The significant changes of scores of the last 30 days, of all prompts that are not archived. */
export function listScoreChanges(ctx: Context, org: OrgId): Found[] {
  refreshScoreChanges(ctx, maxRefreshed, org);
  return ctx.db
    .select({ change: scoreChanges.change, title: prompts.title, text: sql<string>`substr(${prompts.text}, 1, 300)` })
    .from(scoreChanges)
    .innerJoin(prompts, eq(prompts.id, scoreChanges.promptId))
    .where(and(eq(scoreChanges.orgId, org), isNotNull(scoreChanges.change), ne(prompts.status, "archived")))
    .all()
    .flatMap(({ change, ...prompt }) => {
      const { promptId, ...found } = change as StoredChange;
      if (Date.parse(found.since) < ctx.now() - recentMs) return [];
      return [{ ...found, prompt: { id: promptId, title: titleOf(prompt) } }];
    });
}

/** Computes the changes of up to `max` prompts whose results have changed. Returns the number of prompts. */
export function refreshScoreChanges(ctx: Context, max: number, org?: OrgId): number {
  const stale = ctx.db
    .select({ orgId: scoreChanges.orgId, promptId: scoreChanges.promptId })
    .from(scoreChanges)
    .where(and(sql`${scoreChanges.isStale} = 1`, org === undefined ? undefined : eq(scoreChanges.orgId, org)))
    .limit(max)
    .all();
  for (const { orgId, promptId } of stale)
    ctx.db
      .update(scoreChanges)
      .set({ isStale: false, change: findScoreChange(ctx, orgId as OrgId, promptId) })
      .where(and(eq(scoreChanges.orgId, orgId), eq(scoreChanges.promptId, promptId)))
      .run();
  return stale.length;
}

/** Keeps the changes up to date. */
export function createScoreChangeLoop(ctx: Context) {
  return createPoll({
    // One at a time, because a search takes tens of milliseconds.
    check: () => Promise.resolve(refreshScoreChanges(ctx, 1) > 0 ? betweenMs : pollMs),
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not look for changed scores");
    },
    retryMs: pollMs,
  });
}

function findScoreChange(ctx: Context, org: OrgId, promptId: string): StoredChange | null {
  const latest = findLatest(ctx, org, promptId);
  const change = latest?.change;
  if (!latest || !change || (change.verdict !== "regressed" && change.verdict !== "improved")) return null;
  const isWorse = change.verdict === "regressed";
  const [before, after] = change.slugs;
  const { agent, model } = latest;
  return {
    kind: isWorse ? "score_fell" : "score_rose",
    id: `score-${promptId}-${latest.points.find(({ slug }) => slug === after)?.evalRequestId ?? after}`,
    since: change.at,
    promptId,
    ...{ agent, model, before, after },
    delta: Math.round(change.delta * 10) / 10,
    scores: latest.points.map(({ score }) => Math.round(score * 10) / 10),
    cause: causeOf(ctx, org, latest, after, isWorse),
  };
}

/** The friction that explains a change best: by its points, times the share of runs that hit it on one side but not on the other. */
function causeOf(ctx: Context, org: OrgId, latest: Latest, after: string, isWorse: boolean): ChangeCause | null {
  const index = latest.points.findIndex(({ slug }) => slug === after);
  if (index < 1) return null;
  const idsOf = (points: Latest["points"]) => points.map(({ evalRequestId }) => evalRequestId);
  const before = new Set(idsOf(latest.points.slice(Math.max(0, index - maxEvaluations), index)));
  const all = [...before, ...idsOf(latest.points.slice(index, index + maxEvaluations))];
  const rows = ctx.db
    .select({ evalRequestId: runs.evalRequestId, reportId: reports.id, slug: reports.slug, point: frictionPoints })
    .from(runs)
    .innerJoin(reports, eq(reports.runId, runs.id))
    .leftJoin(frictionPoints, eq(frictionPoints.reportId, reports.id))
    .where(
      and(
        eq(runs.orgId, org),
        inArray(runs.evalRequestId, all),
        eq(runs.agent, latest.agent),
        eq(reports.status, "published"),
      ),
    )
    .all();
  const countReports = (side: typeof rows) => new Set(side.map(({ reportId }) => reportId)).size;
  const [rowsBefore = [], rowsAfter = []] = [true, false].map((isBefore) =>
    rows.filter(({ evalRequestId }) => before.has(evalRequestId) === isBefore),
  );
  const of = { before: countReports(rowsBefore), after: countReports(rowsAfter) };
  const changed = [...Map.groupBy(rows, ({ point }) => point?.fingerprint)].flatMap(([fingerprint, hits]) => {
    const newest = hits.toSorted((a, b) => (a.reportId < b.reportId ? 1 : -1))[0];
    if (fingerprint === undefined || !newest?.point) return [];
    const sides = {
      before: { met: countReports(hits.filter((hit) => before.has(hit.evalRequestId))), of: of.before },
      after: { met: countReports(hits.filter((hit) => !before.has(hit.evalRequestId))), of: of.after },
    };
    const gained = sides.after.met / sides.after.of - sides.before.met / sides.before.of;
    const share = isWorse ? gained : -gained;
    return share < 0.5
      ? []
      : [{ ...sides, newest, point: newest.point, weight: share * (newest.point.lostPoints ?? 0) }];
  });
  const [best] = changed.sort((a, b) => b.weight - a.weight);
  if (!best) return null;
  const { fingerprint, title, url } = best.point;
  const fix = ctx.db
    .select({ evidence: recommendations.evidence, expectedGain: recommendations.expectedGain })
    .from(recommendations)
    .where(
      and(
        eq(recommendations.reportId, best.newest.reportId),
        sql`exists (select 1 from json_each(${recommendations.frictionIds}) where value = ${best.point.id})`,
      ),
    )
    .get();
  return {
    ...{ fingerprint, title, url: fix?.evidence?.url ?? url, line: fix?.evidence?.line ?? null },
    ...{ before: best.before, after: best.after, expectedGain: fix?.expectedGain ?? null, slug: best.newest.slug },
  };
}
