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
/** Prompts to search when a list is requested. The rest follows in the background. */
const maxSearches = 10;
/** Pauses of the search in the background, with and without more to do. */
const betweenMs = 20;
const pollMs = 2_000;

type UnmarkedChange = Unmarked<ScoreChange>;
type StoredChange = Omit<UnmarkedChange, "prompt">;

const columns = { promptId: scoreChanges.promptId, change: scoreChanges.change, isStale: scoreChanges.isStale };
/** Written as in the partial index, so that SQLite uses it. */
const whereStale = sql`${scoreChanges.isStale} = 1`;

/**
 * The significant changes of scores of the last 30 days, of all prompts that are not archived. Nothing is written, so that it works on a full
 * disk: changes that the background has not yet looked for are searched again for each list.
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

/** Looks for the change of a prompt whose results have changed. Returns whether there was one. */
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
    // One at a time, because a search takes tens of milliseconds.
    check: () => Promise.resolve(refreshScoreChange(ctx) ? betweenMs : pollMs),
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not look for changed scores");
    },
    retryMs: pollMs,
  });
}

/** The newest significant change of a prompt's scores; null: none. */
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
  // A change between two given windows may have no clear verdict: then its sign decides.
  const isFall = isClear(change) ? change.verdict === "regressed" : change.delta < 0;
  return {
    kind: isFall ? ("score_fell" as const) : ("score_rose" as const),
    // By the evaluation: its newest report may become another one.
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
