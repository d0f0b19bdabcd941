import { and, eq, inArray } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { notifications } from "../db/tables/notifications.ts";
import { emitEvent, eventWantedSince } from "../notifications/outbox.ts";
import { toPromptEvent } from "../reports/announcements.ts";
import { reportUrl } from "../reports/links.ts";
import { findLatestResults } from "./latest.ts";

/** A change found again with more data may move by this many evaluations. */
const maxShift = 2;

/** Announces that the scores of a prompt changed significantly, once for each change. */
export function announceScore(ctx: Context, tx: Tx, org: string, promptId: string): void {
  const since = eventWantedSince(ctx, org, "score.changed");
  if (since === null) return;
  const latest = findLatestResults(ctx, org as OrgId, promptId);
  const { verdict, delta, at, slugs } = latest?.change ?? {};
  if (!latest || !slugs || (verdict !== "improved" && verdict !== "regressed")) return;
  const index = latest.points.findIndex(({ slug }) => slug === slugs[1]);
  // A change from before the destination was added is not news.
  if (index < 0 || Date.parse(at ?? "") < since) return;
  const keyOf = (evalRequestId: string) => `score ${promptId} ${evalRequestId} ${verdict}`;
  const nearbyKeys = latest.points
    .slice(Math.max(0, index - maxShift), index + maxShift + 1)
    .map((each) => keyOf(each.evalRequestId));
  const earlier = and(eq(notifications.orgId, org), inArray(notifications.onceKey, nearbyKeys));
  if (tx.select({ id: notifications.id }).from(notifications).where(earlier).get()) return;
  const link = (slug: string) => ({ slug, url: reportUrl(ctx.baseUrl(), slug) });
  const makeData = () => ({
    prompt: toPromptEvent(tx, promptId),
    verdict,
    delta: Math.round((delta ?? 0) * 10) / 10,
    before: link(slugs[0]),
    after: link(slugs[1]),
  });
  emitEvent(ctx, tx, org, "score.changed", makeData, keyOf(latest.points[index]?.evalRequestId ?? ""));
}
