import { and, count, eq, gte, inArray, lt } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { firstIdOf } from "../db/rows.ts";
import { prompts } from "../db/tables/prompts.ts";
import { runs } from "../db/tables/runs.ts";
import { listFriction } from "../friction/friction.ts";
import { cut, type EventData } from "../notifications/events.ts";
import { titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import { reportUrl } from "../reports/links.ts";
import { getReport } from "../reports/reports.ts";
import { toIso } from "../schema.ts";
import { findLatestResults } from "./latest.ts";

/** Items per list of a digest. */
const maxItems = 5;
/** Friction points to search for fixes. */
const maxPoints = 50;
const maxText = 500;

export function weeklyDigestOf(ctx: Context, org: OrgId, from: number, until: number): EventData<"digest.weekly"> {
  const inWeek = and(eq(runs.orgId, org), gte(runs.id, firstIdOf(from)), lt(runs.id, firstIdOf(until)));
  const byStatus = ctx.db
    .select({ promptId: runs.promptId, status: runs.status, n: count() })
    .from(runs)
    .where(inWeek)
    .groupBy(runs.promptId, runs.status)
    .all();
  const total = (status: string) => byStatus.reduce((sum, row) => sum + (row.status === status ? row.n : 0), 0);
  const since = toIso(from);
  const regressions = listFriction(ctx, org, { everything: true, state: "regressed" }, { limit: maxPoints, offset: 0 });
  return {
    from: since,
    until: toIso(until),
    runs: { completed: total("completed"), failed: total("failed") },
    scores: scoresOf(ctx, org, [...new Set(byStatus.map(({ promptId }) => promptId))], since),
    regressed: regressions.items
      .filter(({ lastSeenAt, isPreview }) => lastSeenAt >= since && !isPreview)
      .slice(0, maxItems)
      .map(({ fingerprint, severity, category, title, url, lostPoints }) => ({
        fingerprint,
        severity,
        category,
        lostPoints,
        title: cut(title, maxText),
        pageUrl: url,
      })),
    fixFirst: fixesOf(ctx, org),
  };
}

const reportLink = (ctx: Context, slug: string) => ({ slug, url: reportUrl(ctx.baseUrl(), slug) });

function scoresOf(ctx: Context, org: OrgId, promptIds: string[], since: string) {
  const titles = ctx.db
    .select({ id: prompts.id, title: prompts.title, text: titleText })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), inArray(prompts.id, promptIds)))
    .all();
  return titles
    .flatMap(({ id, ...named }) => {
      const prompt = { id, title: titleOf(named) };
      const { verdict, delta, at, slugs } = findLatestResults(ctx, org, prompt.id)?.change ?? {};
      if (!slugs || (verdict !== "improved" && verdict !== "regressed") || (at ?? "") < since) return [];
      return { prompt, verdict, delta: Math.round((delta ?? 0) * 10) / 10, after: reportLink(ctx, slugs[1]) };
    })
    .sort((a, b) => a.delta - b.delta)
    .slice(0, maxItems);
}

/** The fixes for the friction that costs the most points. */
function fixesOf(ctx: Context, org: OrgId): EventData<"digest.weekly">["fixFirst"] {
  const { items } = listFriction(ctx, org, { everything: true, sort: "-cost" }, { limit: maxPoints, offset: 0 });
  const fixes = new Map<string, EventData<"digest.weekly">["fixFirst"][number]>();
  for (const { state, isPreview, slug, id } of items) {
    if (fixes.size >= maxItems) break;
    if (state === "fixed" || isPreview) continue;
    const { recommendations, prompt } = getReport(ctx, org, slug);
    const recommendation = recommendations.find(({ frictionIds }) => frictionIds.includes(id));
    if (!recommendation || fixes.has(recommendation.id)) continue;
    fixes.set(recommendation.id, {
      title: cut(recommendation.title, maxText),
      action: cut(recommendation.action, maxText),
      pageUrl: recommendation.url,
      prompt: { id: prompt.id, title: prompt.title },
      report: reportLink(ctx, slug),
    });
  }
  return [...fixes.values()];
}
