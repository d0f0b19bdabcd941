import { diffLines } from "diff";
import { and, avg, eq, inArray, type SQL, sql } from "drizzle-orm";
import { type ChangeWindow, findLatestResults, type LatestChange } from "../comparisons/latest.ts";
import type { Context, OrgId } from "../context.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { notFound } from "../errors.ts";
import { type Facts, factsOf } from "../grading/facts.ts";
import { pagesReadOf } from "../grading/findings/pages-read.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { titleOf } from "../reports/labels.ts";
import { getReport } from "../reports/reports.ts";
import { readSession } from "../reports/session-events.ts";
import { round } from "../stats/repeats.ts";
import { findCauses } from "./causes.ts";
import type { ChangeCause, ChangedPage, Explanation } from "./schema.ts";
import { toScoreChange } from "./score-changes.ts";
import { stepsOf } from "./session-steps.ts";

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
  if (!latest?.change || !change) return null;
  const { before, after, low, high } = latest.change;
  const lost = lostPointsOf(ctx, org, latest.agent, latest.change);
  const causes = withinLimit(findCauses(ctx, org, latest.agent, latest.change), lost?.fixes ?? change.delta);
  const [agentPoints, networkPoints] = [lost?.agent ?? 0, lost?.network ?? 0];
  const explained = causes.reduce((sum, { points }) => sum + (points ?? 0), agentPoints + networkPoints);
  const [sessionBefore, sessionAfter] = [change.before, change.after].map((slug) => readSessionOf(ctx, org, slug));
  return {
    ...change,
    ...{ low, high, prompt: { id, title: titleOf({ title, text }) } },
    before: sideOf(before, sessionBefore),
    after: sideOf(after, sessionAfter),
    ...{ causes, agentPoints, networkPoints },
    unexplained: round(change.delta - explained, 1),
    pages: findChangedPages(sessionBefore?.facts, sessionAfter?.facts),
  };
}

/** The points of the change that each owner of causes explains, from the means of both sides; null: no report has them. */
function lostPointsOf(ctx: Context, org: OrgId, agent: string, { before, after }: LatestChange) {
  const meansOf = ({ evaluations }: ChangeWindow) => {
    const meanOf = (owner: string): SQL<number | null> =>
      avg(sql`json_extract(${reports.lost}, ${`$.${owner}`})`).mapWith(Number);
    const ids = evaluations.map(({ evalRequestId }) => evalRequestId);
    return ctx.db
      .select({ fixes: meanOf("fixes"), agent: meanOf("agent"), network: meanOf("network") })
      .from(reports)
      .innerJoin(runs, eq(runs.id, reports.runId))
      .where(
        and(
          eq(reports.orgId, org),
          eq(reports.status, "published"),
          eq(runs.agent, agent),
          inArray(runs.evalRequestId, ids),
        ),
      )
      .get();
  };
  const [lostBefore, lostAfter] = [meansOf(before), meansOf(after)];
  const changeOf = (owner: "fixes" | "agent" | "network") => {
    const [from, to] = [lostBefore?.[owner] ?? null, lostAfter?.[owner] ?? null];
    return from === null || to === null ? null : round(from - to, 1);
  };
  const [fixes, agentPoints, network] = [changeOf("fixes"), changeOf("agent"), changeOf("network")];
  return fixes === null || agentPoints === null || network === null ? null : { fixes, agent: agentPoints, network };
}

/** Causes that overlap explain together no more than their limit, in points. */
function withinLimit(causes: ChangeCause[], limit: number): ChangeCause[] {
  const sum = causes.reduce((all, { points }) => all + (points ?? 0), 0);
  if (Math.sign(sum) !== Math.sign(limit) || Math.abs(sum) <= Math.abs(limit)) return causes;
  return causes.map((cause) => ({
    ...cause,
    points: cause.points === null ? null : round((cause.points * limit) / sum, 1),
  }));
}

type ReadSession = { slug: string; facts: Facts; costUsd: number | null; seconds: number | null };

function readSessionOf(ctx: Context, org: OrgId, slug: string): ReadSession {
  const { run, metrics } = getReport(ctx, org, slug);
  const events = readSession(ctx.db, { orgId: org, runId: run.runId, attempt: run.attempt });
  return { slug, facts: factsOf(events), costUsd: metrics.costUsd, seconds: metrics.timeSeconds };
}

const sideOf = ({ mean, evaluations }: ChangeWindow, session: ReadSession | undefined): Explanation["before"] => ({
  mean,
  runs: evaluations.reduce((sum, { runs }) => sum + runs, 0),
  evaluations: evaluations.map((each) => ({ ...each, score: round(each.score, 1) })),
  session: session
    ? {
        slug: session.slug,
        steps: stepsOf(session.facts),
        calls: session.facts.calls.length,
        ...{ costUsd: session.costUsd, seconds: session.seconds },
      }
    : null,
});

/** The pages that two sessions read with different texts, with the lines that differ. */
function findChangedPages(before: Facts | undefined, after: Facts | undefined): ChangedPage[] {
  const textsBefore = textsOf(before);
  return [...textsOf(after)]
    .flatMap(([url, text]) => {
      const earlier = textsBefore.get(url);
      return earlier === undefined || earlier === text ? [] : [{ url, lines: changedLines(earlier, text) }];
    })
    .slice(0, maxPages);
}

const textsOf = (facts: Facts | undefined): Map<string, string> =>
  new Map(facts && pagesReadOf(facts).map(({ url, text }) => [url, text.slice(0, maxPageChars)]));

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
