import { diffLines } from "diff";
import { findLatestResults, type LatestResults } from "../comparisons/latest.ts";
import type { Context, OrgId } from "../context.ts";
import { notFound } from "../errors.ts";
import { factsOf } from "../grading/facts.ts";
import { pagesReadOf } from "../grading/findings/pages-read.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { titleOf } from "../reports/labels.ts";
import { getReport } from "../reports/reports.ts";
import { readSession } from "../reports/session-events.ts";
import { mean } from "../stats/estimates.ts";
import { round } from "../stats/repeats.ts";
import { findCauses, sidesOf } from "./causes.ts";
import type { ChangedPage, Explanation } from "./schema.ts";
import { toScoreChange } from "./score-changes.ts";

/** Pages whose changes are shown, and their longest text. */
const maxPages = 10;
const maxPageChars = 200_000;
/** Unchanged lines around each changed one. */
const contextLines = 2;

/** Why the score of a prompt changed: both sides, the friction that came or went, and the pages that agents read differently. Throws not_found, also without a change. */
export function explainScoreChange(ctx: Context, org: OrgId, promptId: string): Explanation {
  const explanation = findExplanation(ctx, org, promptId);
  if (!explanation) throw notFound("The score of this prompt has not changed significantly.");
  return explanation;
}

/** The same; null if the score has not changed significantly. Throws not_found for an unknown prompt. */
export function findExplanation(ctx: Context, org: OrgId, promptId: string): Explanation | null {
  const { id, title, text } = getPromptRow(ctx, org, promptId);
  const latest = findLatestResults(ctx, org, id);
  const change = latest && toScoreChange(id, latest);
  if (!change) return null;
  const causes = findCauses(ctx, org, latest, change.after);
  const explained = causes.reduce((sum, { points }) => sum + (points ?? 0), 0);
  const sides = sidesOf(latest, change.after);
  return {
    ...change,
    prompt: { id, title: titleOf({ title, text }) },
    before: sideOf(sides.before),
    after: sideOf(sides.after),
    causes,
    unexplained: round(change.delta - explained, 1),
    pages: findChangedPages(ctx, org, change.before, change.after),
  };
}

const sideOf = (points: LatestResults["points"]): Explanation["before"] => ({
  mean: round(mean(points.flatMap(({ score, runs }) => Array<number>(runs).fill(score))), 1),
  runs: points.reduce((sum, { runs }) => sum + runs, 0),
  evaluations: points.map(({ evalRequestId, slug, score, runs, at }) => ({
    ...{ evalRequestId, slug, runs, at },
    score: round(score, 1),
  })),
});

/** The pages that two sessions read with different texts, with the lines that differ. */
function findChangedPages(ctx: Context, org: OrgId, before: string, after: string): ChangedPage[] {
  const textsBefore = textsOf(ctx, org, before);
  return [...textsOf(ctx, org, after)]
    .flatMap(([url, text]) => {
      const earlier = textsBefore.get(url);
      return earlier === undefined || earlier === text ? [] : [{ url, lines: changedLines(earlier, text) }];
    })
    .slice(0, maxPages);
}

function textsOf(ctx: Context, org: OrgId, slug: string): Map<string, string> {
  const { runId, attempt } = getReport(ctx, org, slug).run;
  const events = readSession(ctx.db, { orgId: org, runId, attempt });
  return new Map(pagesReadOf(factsOf(events)).map(({ url, text }) => [url, text.slice(0, maxPageChars)]));
}

function changedLines(before: string, after: string): ChangedPage["lines"] {
  const all = diffLines(before, after).flatMap(({ value, added, removed }) =>
    value
      .replace(/\n$/, "")
      .split("\n")
      .map((text) => ({
        change: added ? ("added" as const) : removed ? ("removed" as const) : ("none" as const),
        text,
      })),
  );
  const isNearChange = (_: unknown, i: number) =>
    all.slice(Math.max(0, i - contextLines), i + contextLines + 1).some(({ change }) => change !== "none");
  return all.filter(isNearChange);
}
