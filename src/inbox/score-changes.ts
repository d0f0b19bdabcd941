import { and, eq, isNotNull, ne, sql } from "drizzle-orm";
import { findLatestResults } from "../comparisons/latest.ts";
import type { Context, OrgId } from "../context.ts";
import { prompts } from "../db/tables/prompts.ts";
import { scoreChanges } from "../db/tables/trends.ts";
import { createPoll } from "../poll.ts";
import { titleOf } from "../reports/labels.ts";
import { findCauses } from "./causes.ts";
import type { ScoreChange } from "./schema.ts";

/** A change counts as recent for this long. */
const recentMs = 30 * 24 * 3600_000;
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
function refreshScoreChanges(ctx: Context, max: number, org?: OrgId): number {
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

/** The newest significant change of a prompt's scores; null: none. */
export function findScoreChange(ctx: Context, org: OrgId, promptId: string): StoredChange | null {
  const latest = findLatestResults(ctx, org, promptId);
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
    cause: findCauses(ctx, org, latest, after)[0] ?? null,
  };
}
