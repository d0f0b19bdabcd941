import { and, count, eq, gte, lt } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { firstIdOf } from "../db/rows.ts";
import { runs } from "../db/tables/runs.ts";
import { listFriction } from "../friction/friction.ts";
import { cut, type EventData } from "../notifications/events.ts";
import { reportUrl, whyUrl } from "../reports/links.ts";
import { getReport } from "../reports/reports.ts";
import { toIso } from "../schema.ts";
import { getInbox } from "./inbox.ts";
import type { InboxItem } from "./schema.ts";

/** The maximum number of items in each list of a digest, except changes of scores. */
const maxItems = 5;
const maxScores = 10;
/** The number of friction points to search. */
const maxPoints = 50;
const maxTextChars = 500;

type Digest = EventData<"digest.weekly">;

/** The weekly digest of an organization: changes of the week, and what needs attention now. It is built from the items of the inbox. */
export function weeklyDigestOf(ctx: Context, org: OrgId, from: number, until: number): Digest {
  const inWeek = and(eq(runs.orgId, org), gte(runs.id, firstIdOf(from)), lt(runs.id, firstIdOf(until)));
  const counts = ctx.db
    .select({ status: runs.status, runs: count() })
    .from(runs)
    .where(inWeek)
    .groupBy(runs.status)
    .all();
  const countOf = (status: "completed" | "failed") => counts.find((row) => row.status === status)?.runs ?? 0;
  const week = { from: toIso(from), until: toIso(until) };
  const { problems, improvements } = getInbox(ctx, org);
  const regressions = listFriction(ctx, org, { everything: true, state: "regressed" }, { limit: maxPoints, offset: 0 });
  return {
    ...week,
    runs: { completed: countOf("completed"), failed: countOf("failed") },
    scores: [...problems, ...improvements].flatMap((item) => toScore(ctx, item, week)).slice(0, maxScores),
    problems: problems.flatMap(toProblem).slice(0, maxItems),
    regressed: regressions.items
      .filter(({ lastSeenAt, isPreview }) => lastSeenAt >= week.from && !isPreview)
      .slice(0, maxItems)
      .map(({ fingerprint, severity, category, title, url, lostPoints, promptIds }) => ({
        fingerprint,
        promptIds,
        severity,
        category,
        lostPoints,
        title: cut(title, maxTextChars),
        pageUrl: url,
      })),
    fixFirst: fixesOf(ctx, org),
  };
}

const reportLink = (ctx: Context, slug: string) => ({ slug, url: reportUrl(ctx.baseUrl(), slug) });

/** The change of a score with its cause. Empty for other items, and for a change outside of the week. */
function toScore(ctx: Context, item: InboxItem, week: { from: string; until: string }): Digest["scores"] {
  if (item.kind !== "score_fell" && item.kind !== "score_rose") return [];
  if (item.since < week.from || item.since >= week.until) return [];
  const { kind, prompt, delta, after, cause } = item;
  return [
    {
      prompt,
      delta,
      verdict: kind === "score_fell" ? "regressed" : "improved",
      after: reportLink(ctx, after),
      cause: cause && cut(cause.title, maxTextChars),
      whyUrl: whyUrl(ctx.baseUrl(), prompt.id),
    },
  ];
}

/** Everything that needs attention and its subject, except changes of scores. */
function toProblem(item: InboxItem): Digest["problems"] {
  const { kind, since } = item;
  switch (kind) {
    case "score_fell":
    case "score_rose":
      return [];
    case "runs_failed":
    case "schedule_paused":
    case "basis_changed":
    case "false_alarms":
      return [{ kind, since, subject: item.prompt.title, promptId: item.prompt.id }];
    case "destination_failing":
      return [{ kind, since, subject: item.destination.name, promptId: null }];
    case "budget_spent":
      return [{ kind, since, subject: item.budget?.tag ?? item.budget?.name ?? null, promptId: null }];
    case "runs_waiting":
    case "calibration_worse":
    case "runs_paused":
      return [{ kind, since, subject: item.agent, promptId: null }];
    case "check_failed":
      return [{ kind, since, subject: item.title, promptId: null }];
    case "worker_away":
      return [{ kind, since, subject: item.worker, promptId: null }];
    case "all_schedules_paused":
    case "secrets_unreadable":
    case "backup_failing":
      return [{ kind, since, subject: null, promptId: null }];
  }
}

/** The fixes for the friction that costs the most points. */
function fixesOf(ctx: Context, org: OrgId): Digest["fixFirst"] {
  const { items } = listFriction(ctx, org, { everything: true, sort: "-cost" }, { limit: maxPoints, offset: 0 });
  const fixes = new Map<string, Digest["fixFirst"][number]>();
  for (const { state, isPreview, slug, id } of items) {
    if (fixes.size >= maxItems) break;
    if (state === "fixed" || isPreview) continue;
    const { recommendations, prompt } = getReport(ctx, org, slug);
    const recommendation = recommendations.find(({ frictionIds }) => frictionIds.includes(id));
    if (!recommendation || fixes.has(recommendation.id)) continue;
    fixes.set(recommendation.id, {
      title: cut(recommendation.title, maxTextChars),
      action: cut(recommendation.action, maxTextChars),
      pageUrl: recommendation.url,
      prompt: { id: prompt.id, title: prompt.title },
      report: reportLink(ctx, slug),
    });
  }
  return [...fixes.values()];
}
