import type { ChangeWindow, LatestChange } from "../comparisons/changes.ts";
import { findChangedResults } from "../comparisons/latest.ts";
import { compareWindows, type WindowIds } from "../comparisons/windows.ts";
import type { Context, OrgId } from "../context.ts";
import { notFound } from "../errors.ts";
import { type Facts, factsOf } from "../grading/facts.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { titleOf } from "../reports/labels.ts";
import { pageTextsOf } from "../reports/page-texts.ts";
import { getReport } from "../reports/reports.ts";
import { readSession } from "../reports/session-events.ts";
import { round } from "../stats/repeats.ts";
import { findCauses } from "./causes.ts";
import { findChangedPages } from "./changed-pages.ts";
import type { ScoreChangeExplanation } from "./schema.ts";
import { toScoreChange } from "./score-changes.ts";
import { stepsOf } from "./session-steps.ts";

/** What is explained: a change with its windows, and the same change as the inbox shows it. */
type ExplainedChange = { fields: ReturnType<typeof toScoreChange>; change: LatestChange };

/**
 * Why the score of a prompt changed: both sides, the friction that appeared or disappeared, and the pages with different results. Explains the newest
 * significant change, or the change between two windows. Throws not_found, also if there is no change, and bad_request for windows that can't be
 * compared.
 */
export function explainScoreChange(
  ctx: Context,
  org: OrgId,
  promptId: string,
  windows?: WindowIds,
): ScoreChangeExplanation {
  const explanation = findExplanation(ctx, org, promptId, windows);
  if (!explanation) throw notFound("The score of this prompt has not changed significantly.");
  return explanation;
}

/** Like `explainScoreChange`, but null if the score has not changed significantly. */
export function findExplanation(
  ctx: Context,
  org: OrgId,
  promptId: string,
  windows?: WindowIds,
): ScoreChangeExplanation | null {
  const prompt = getPromptRow(ctx, org, promptId);
  const { id } = prompt;
  const explainedChange = windows ? changeBetween(ctx, org, id, windows) : newestChangeOf(ctx, org, id);
  if (explainedChange === null) return null;
  const { fields, change } = explainedChange;
  const [sessionBefore, sessionAfter] = change.slugs.map((slug) => readSessionOf(ctx, org, slug));
  return {
    ...fields,
    low: change.low,
    high: change.high,
    prompt: { id, title: titleOf(prompt) },
    before: sideOf(change.before, sessionBefore),
    after: sideOf(change.after, sessionAfter),
    ...findCauses(ctx, org, fields.agent, change),
    pages: sessionBefore && sessionAfter ? findChangedPages(sessionBefore, sessionAfter) : [],
  };
}

function newestChangeOf(ctx: Context, org: OrgId, promptId: string): ExplainedChange | null {
  const changed = findChangedResults(ctx, org, promptId);
  return changed && { fields: toScoreChange(promptId, changed), change: changed.change };
}

function changeBetween(ctx: Context, org: OrgId, promptId: string, windows: WindowIds): ExplainedChange {
  const { agent, model, change } = compareWindows(ctx, org, promptId, windows);
  const points = [...change.before.evaluations, ...change.after.evaluations];
  return { fields: toScoreChange(promptId, { agent, model, points, change }), change };
}

/** `pageTexts`: stored texts of pages. The key is the `seq` of the event that says that the page was read. */
type ReadSession = {
  slug: string;
  facts: Facts;
  pageTexts: Map<number, string>;
  costUsd: number | null;
  seconds: number | null;
};

function readSessionOf(ctx: Context, org: OrgId, slug: string): ReadSession {
  const { run, metrics } = getReport(ctx, org, slug);
  const session = { orgId: org, runId: run.runId, attempt: run.attempt };
  return {
    slug,
    facts: factsOf(readSession(ctx.db, session)),
    pageTexts: pageTextsOf(ctx.db, session),
    costUsd: metrics.costUsd,
    seconds: metrics.timeSeconds,
  };
}

const sideOf = (
  { mean, evaluations }: ChangeWindow,
  session: ReadSession | undefined,
): ScoreChangeExplanation["before"] => ({
  mean,
  runs: evaluations.reduce((sum, { runs }) => sum + runs, 0),
  evaluations: evaluations.map((each) => ({ ...each, score: round(each.score, 1) })),
  session: session
    ? {
        slug: session.slug,
        steps: stepsOf(session.facts),
        calls: session.facts.calls.length,
        costUsd: session.costUsd,
        seconds: session.seconds,
      }
    : null,
});
