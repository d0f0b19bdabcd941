import { and, count, eq, gte, inArray, lt } from "drizzle-orm";
import { type Context, type OrgId, perContext } from "../context.ts";
import { firstIdOf } from "../db/rows.ts";
import { prompts } from "../db/tables/prompts.ts";
import { runs } from "../db/tables/runs.ts";
import { createField } from "../field/field.ts";
import { createDismissals } from "../friction/dismissals.ts";
import { createFriction } from "../friction/friction.ts";
import { cut, type EventData } from "../notifications/events.ts";
import { reportUrl } from "../reports/links.ts";
import { getReport } from "../reports/reports.ts";
import { toIso } from "../schema.ts";
import { findLatest } from "./latest.ts";

/** Items per list of a digest. */
const maxItems = 5;
/** Friction points to search for fixes. */
const maxPoints = 50;
const maxText = 500;

type Digest = EventData<"digest.weekly">;

const frictionOf = perContext((ctx) => createFriction(ctx, { ...createDismissals(ctx), ...createField(ctx) }));

/** What happened in an organization in a week: runs, changed scores, regressed friction, and what to fix first. Times are epoch ms. */
export function getWeeklyDigest(ctx: Context, org: OrgId, from: number, until: number): Digest {
  const inWeek = and(eq(runs.orgId, org), gte(runs.id, firstIdOf(from)), lt(runs.id, firstIdOf(until)));
  const byStatus = ctx.db
    .select({ promptId: runs.promptId, status: runs.status, n: count() })
    .from(runs)
    .where(inWeek)
    .groupBy(runs.promptId, runs.status)
    .all();
  const total = (status: string) => byStatus.reduce((sum, row) => sum + (row.status === status ? row.n : 0), 0);
  const since = toIso(from);
  const regressed = frictionOf(ctx).list(
    org,
    { everything: true, state: "regressed" },
    { limit: maxPoints, offset: 0 },
  );
  return {
    from: since,
    until: toIso(until),
    runs: { completed: total("completed"), failed: total("failed") },
    scores: listScoreChanges(ctx, org, [...new Set(byStatus.map(({ promptId }) => promptId))], since),
    regressed: regressed.items
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
    fixFirst: listFixes(ctx, org),
  };
}

/** The prompts whose scores changed since a time (ISO), the worst first. */
function listScoreChanges(ctx: Context, org: OrgId, promptIds: string[], since: string): Digest["scores"] {
  return ctx.db
    .select({ id: prompts.id, title: prompts.title })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), inArray(prompts.id, promptIds)))
    .all()
    .flatMap((prompt): Digest["scores"] => {
      const { verdict, delta, at, slugs } = findLatest(ctx, org, prompt.id)?.change ?? {};
      if (!slugs || (verdict !== "improved" && verdict !== "regressed") || (at ?? "") < since) return [];
      return [{ prompt, verdict, delta: Math.round((delta ?? 0) * 10) / 10, after: toLink(ctx, slugs[1]) }];
    })
    .sort((a, b) => a.delta - b.delta)
    .slice(0, maxItems);
}

/** The fixes for the friction that costs the most points. */
function listFixes(ctx: Context, org: OrgId): Digest["fixFirst"] {
  const { items } = frictionOf(ctx).list(org, { everything: true, sort: "-cost" }, { limit: maxPoints, offset: 0 });
  const fixes = new Map<string, Digest["fixFirst"][number]>();
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
      report: toLink(ctx, slug),
    });
  }
  return [...fixes.values()];
}

const toLink = (ctx: Context, slug: string) => ({ slug, url: reportUrl(ctx.baseUrl(), slug) });
