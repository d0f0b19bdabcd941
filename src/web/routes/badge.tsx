import { Elysia } from "elysia";
import { isRuleBased } from "../../agents/agent.ts";
import { findLatestResults } from "../../comparisons/latest.ts";
import type { Context } from "../../context.ts";
import { timeZoneOf } from "../../db/rows.ts";
import { notFound } from "../../errors.ts";
import { count } from "../../grading/text.ts";
import { findPromptByBadge } from "../../prompts/lists.ts";
import { notMeasured, outcomeLabels, scopeLabels } from "../../reports/labels.ts";
import { getReport } from "../../reports/reports.ts";
import { type Badge, renderBadge, toShields } from "../components/badge.tsx";
import { type PublicScore, toPublicScore } from "../public-score.ts";
import { publicResponse } from "../responses.ts";

/**
 * The score with the number of its runs and its date. It has the color of its grade only if the goal was tested and the result is recent. A result
 * from a single run of an agent whose runs differ stays gray, too.
 */
function toBadge({ score, grade, scope, runs, day, isStale, isSingle }: PublicScore): Badge {
  const date = isStale ? `${day} (outdated)` : day;
  if (score === null) return { message: `${notMeasured} · ${date}`, grade: null };
  const parts = [
    grade === null ? `${scopeLabels[scope]} ${score} · ${outcomeLabels.not_judged}` : `${grade} (${score} of 100)`,
    isSingle ? "single run" : count(runs, "run"),
    date,
  ];
  return { message: parts.join(" · "), grade: isSingle || isStale ? null : grade };
}

function badgeOf(ctx: Context, token: string): Badge {
  const prompt = findPromptByBadge(ctx, token);
  if (prompt === null) throw notFound("This badge does not exist, or it is no longer public.");
  const { org, promptId, isArchived } = prompt;
  if (isArchived) return { message: "archived", grade: null };
  const latest = findLatestResults(ctx, org, promptId);
  if (latest === null) return { message: "no report yet", grade: null };
  const { agent } = getReport(ctx, org, latest.slug);
  const timeZone = timeZoneOf(ctx.db, org);
  return toBadge(toPublicScore(latest, { isDeterministic: isRuleBased(agent.id), now: ctx.now(), timeZone }));
}

/** Public badges with the latest score of a prompt, as an image or for Shields. They need no sign-in, but the prompt must allow them. */
export const badgePages = (ctx: Context) =>
  new Elysia({ name: "badges" }).get("/badges/:badge", ({ request, params }) => {
    const [, token = "", format] = /^([\w-]+)\.(svg|json)$/.exec(params.badge) ?? [];
    const badge = badgeOf(ctx, token);
    // Otherwise, image proxies would show an old score. With the ETag, an unchanged badge costs little.
    const headers = { "cache-control": "no-cache" };
    return format === "json"
      ? publicResponse(request, "json", JSON.stringify(toShields(badge)), headers)
      : publicResponse(request, "svg", renderBadge(badge), headers);
  });
