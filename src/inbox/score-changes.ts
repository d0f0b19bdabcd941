import { and, eq, inArray, ne, sql } from "drizzle-orm";
import { findLatest, type Latest } from "../comparisons/latest.ts";
import type { Context, OrgId } from "../context.ts";
import { cachedResult } from "../db/cache.ts";
import { frictionPoints, recommendations } from "../db/tables/friction.ts";
import { prompts } from "../db/tables/prompts.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { titleOf } from "../reports/labels.ts";
import type { ChangeCause, ScoreChange } from "./schema.ts";

/** A change counts as recent for this long. */
const recentMs = 30 * 24 * 3600_000;
/** Evaluations on each side of a change in which its cause is looked for. */
const maxEvaluations = 5;

type Unmarked<T> = T extends unknown ? Omit<T, "snoozedUntil" | "assignee" | "markedBy" | "markedAt"> : never;
type Found = Unmarked<ScoreChange>;

/** The significant changes of scores of the last 30 days, of all prompts that are not archived. */
export const listScoreChanges = (ctx: Context, org: OrgId): Found[] =>
  cachedResult(ctx.db, ["score changes", org], () =>
    ctx.db
      .select({ id: prompts.id, title: prompts.title, text: sql<string>`substr(${prompts.text}, 1, 300)` })
      .from(prompts)
      .where(and(eq(prompts.orgId, org), ne(prompts.status, "archived")))
      .all()
      .flatMap((prompt) => scoreChangeOf(ctx, org, { id: prompt.id, title: titleOf(prompt) })),
  ).filter(({ since }) => Date.parse(since) > ctx.now() - recentMs);

function scoreChangeOf(ctx: Context, org: OrgId, prompt: Found["prompt"]): Found[] {
  const latest = findLatest(ctx, org, prompt.id);
  const change = latest?.change;
  if (!latest || !change || (change.verdict !== "regressed" && change.verdict !== "improved")) return [];
  const isWorse = change.verdict === "regressed";
  const [before, after] = change.slugs;
  const { agent, model } = latest;
  return [
    {
      kind: isWorse ? "score_fell" : "score_rose",
      id: `score-${prompt.id}-${latest.points.find(({ slug }) => slug === after)?.evalRequestId ?? after}`,
      since: change.at,
      prompt,
      ...{ agent, model, before, after },
      delta: Math.round(change.delta * 10) / 10,
      scores: latest.points.map(({ score }) => Math.round(score * 10) / 10),
      cause: causeOf(ctx, org, latest, after, isWorse),
    },
  ];
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
