import { and, eq, isNotNull, ne, or, sql } from "drizzle-orm";
import { isClear, type LatestChange } from "../comparisons/changes.ts";
import { findChangedResults, type LatestResults } from "../comparisons/latest.ts";
import type { Context, OrgId } from "../context.ts";
import { prompts } from "../db/tables/prompts.ts";
import { scoreChanges } from "../db/tables/trends.ts";
import { createPoll } from "../poll.ts";
import { titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import { round } from "../stats/repeats.ts";
import { findCauses } from "./causes.ts";
import type { ScoreChange, Unmarked } from "./schema.ts";

/** A change counts as recent for this long. */
const recentMs = 30 * 24 * 3600_000;
/** The maximum number of prompts to search when a list is requested. The background loop searches the others. */
const maxSearches = 10;
/** Pauses of the background loop: `betweenMs` if there is more to search, `pollMs` if not. */
const betweenMs = 20;
const pollMs = 2_000;

type UnmarkedChange = Unmarked<ScoreChange>;
type StoredChange = Omit<UnmarkedChange, "prompt">;

const columns = { promptId: scoreChanges.promptId, change: scoreChanges.change, isStale: scoreChanges.isStale };
/** Has the same form as in the partial index, so that SQLite uses the index. */
const whereStale = sql`${scoreChanges.isStale} = 1`;

/**
 * The significant changes of scores in the last 30 days, for all prompts that are not archived. It writes nothing, so that it works on a full disk.
 * So a change that the background loop has not yet searched for is searched again for each list.
 */
export function listScoreChanges(ctx: Context, org: OrgId): UnmarkedChange[] {
  let searches = 0;
  return ctx.db
    .select({ ...columns, title: prompts.title, text: titleText })
    .from(scoreChanges)
    .innerJoin(prompts, eq(prompts.id, scoreChanges.promptId))
    .where(
      and(eq(scoreChanges.orgId, org), ne(prompts.status, "archived"), or(whereStale, isNotNull(scoreChanges.change))),
    )
    .all()
    .flatMap(({ promptId, change, isStale, ...prompt }) => {
      const isSearched = isStale && searches < maxSearches;
      if (isSearched) searches++;
      const current = isSearched ? findScoreChange(ctx, org, promptId) : (change as StoredChange | null);
      if (current === null || Date.parse(current.since) < ctx.now() - recentMs) return [];
      return [{ ...current, prompt: { id: promptId, title: titleOf(prompt) } }];
    });
}

/** Searches for the change of a prompt whose results have changed. Returns whether there was such a prompt. */
function refreshScoreChange(ctx: Context): boolean {
  const row = ctx.db
    .select({ ...columns, orgId: scoreChanges.orgId })
    .from(scoreChanges)
    .where(whereStale)
    .limit(1)
    .get();
  if (!row) return false;
  const { orgId, promptId } = row;
  ctx.db
    .update(scoreChanges)
    .set({ isStale: false, change: findScoreChange(ctx, orgId as OrgId, promptId) })
    .where(and(eq(scoreChanges.orgId, orgId), eq(scoreChanges.promptId, promptId)))
    .run();
  return true;
}

/** Keeps the changes up to date. */
export function createScoreChangeLoop(ctx: Context) {
  return createPoll({
    // One prompt at a time, because a search takes tens of milliseconds.
    check: () => Promise.resolve(refreshScoreChange(ctx) ? betweenMs : pollMs),
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not look for changed scores");
    },
    retryMs: pollMs,
  });
}

/** The newest significant change in the scores of a prompt; null: none. */
function findScoreChange(ctx: Context, org: OrgId, promptId: string): StoredChange | null {
  const changed = findChangedResults(ctx, org, promptId);
  if (changed === null) return null;
  const [cause = null] = findCauses(ctx, org, changed.agent, changed.change).causes;
  return { ...toScoreChange(promptId, changed), cause };
}

/** A change in the results of a prompt, without its cause. */
export function toScoreChange(
  promptId: string,
  { change, points, agent, model }: Pick<LatestResults, "points" | "agent" | "model"> & { change: LatestChange },
) {
  const [before, after] = change.slugs;
  // A change between two given windows may have no clear verdict. Then its sign decides.
  const isFall = isClear(change) ? change.verdict === "regressed" : change.delta < 0;
  return {
    kind: isFall ? ("score_fell" as const) : ("score_rose" as const),
    // The ID names the evaluation, because the newest report of the evaluation may change.
    id: `score-${promptId}-${points.find(({ slug }) => slug === after)?.evalRequestId ?? after}`,
    since: change.at,
    agent,
    model,
    before,
    after,
    delta: change.delta,
    scores: points.map(({ score }) => round(score, 1)),
  };
}
