import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { compareSides } from "../../comparisons/compare.ts";
import { findClearChange } from "../../comparisons/latest.ts";
import type { Context, OrgId } from "../../context.ts";
import { timeOfId } from "../../db/rows.ts";
import { oneLine } from "../../grading/text.ts";
import { listPromptChoices, listTags } from "../../prompts/lists.ts";
import { getPromptRow } from "../../prompts/prompts.ts";
import { listPublished, type PublishedRun } from "../../reports/run-rows.ts";
import { maxScores } from "../../trends/drift.ts";
import { getTrends, type Trends, trendFilter } from "../../trends/trends.ts";
import { showPage } from "../page-requests.tsx";
import { type ChangeSides, TrendsPage } from "../pages/trends.tsx";
import { agentChoices, dayAfter, queryOptions } from "../query.ts";

/** The maximum number of changes whose runs are compared. These are the newest changes. */
const maxComparedChanges = 4;
/** The maximum number of friction points to list for each side of a change. */
const maxFriction = 5;
/** The maximum number of evaluations on each side whose friction is compared. */
const maxEvaluations = 10;

type Evaluation = { at: number; evalRequestId: string };

/** The evaluation and the time of each published run in the series that the page shows, oldest first. */
function listEvaluations(ctx: Context, org: OrgId, promptId: string, series: Trends): Evaluation[] {
  const isInSeries = (run: PublishedRun) =>
    run.agent === series.agent &&
    (run.model || null) === series.model &&
    (run.agentVersion || null) === series.agentVersion &&
    (run.contextDigest || null) === series.contextDigest &&
    run.methodology.hash === series.methodology?.hash;
  const newestFirst = listPublished(ctx, org, promptId, maxScores, { matches: isInSeries, batchSize: maxScores });
  return newestFirst.reverse().map(({ runId, evalRequestId }) => ({ at: timeOfId(runId), evalRequestId }));
}

/**
 * For each change of a prompt's score: all runs before and after it, up to the neighboring changes, and the friction that appeared or disappeared.
 */
function sidesOf(
  ctx: Context,
  org: OrgId,
  promptId: string | undefined,
  newestChange: ReturnType<typeof findClearChange>,
  trends: Trends,
): Map<string, ChangeSides> {
  const { agent, model } = trends;
  const scoreChanges = trends.changes.filter(({ what }) => what === "score");
  if (promptId === undefined || agent === null || scoreChanges.length === 0) return new Map();
  const evaluations = listEvaluations(ctx, org, promptId, trends);
  const evaluationsBetween = (from = 0, until = Number.POSITIVE_INFINITY) => {
    const evaluationsThen = evaluations.filter(({ at }) => at >= from && at < until);
    return [...new Set(evaluationsThen.map(({ evalRequestId }) => evalRequestId))];
  };
  const times = scoreChanges.map(({ at }) => Date.parse(at));
  const changesWithSides = scoreChanges.map((change, i) => ({
    ...change,
    before: evaluationsBetween(times[i - 1], times[i]),
    after: evaluationsBetween(times[i], times[i + 1]),
  }));
  // Only the newest change gets a link to the page that explains a change, because that page knows no other. Trends may give that change another
  // time of the day, so only the days are compared.
  const isExplained = (at: string, verdict: string | null) =>
    newestChange?.at.slice(0, 10) === at.slice(0, 10) && newestChange.verdict === verdict;
  const sides = changesWithSides.slice(-maxComparedChanges).flatMap(({ at, verdict, before, after }) => {
    if (before.length === 0 || after.length === 0) return [];
    const sideOf = (of: string[]) => ({ of, agent, ...(model !== null && { model }) });
    const [base, head] = [sideOf(before.slice(-maxEvaluations)), sideOf(after.slice(0, maxEvaluations))];
    const { friction } = compareSides(ctx, org, base, head);
    const titles = (points: { title: string }[]) =>
      points.slice(0, maxFriction).map(({ title }) => oneLine(title, 160));
    const changeSides: ChangeSides = {
      windows: { before, after, agent, model },
      explainedPromptId: isExplained(at, verdict) ? promptId : null,
      gone: titles(friction.gone),
      added: titles(friction.new),
    };
    return [[at, changeSides] as const];
  });
  return new Map(sides);
}

/** The trends page. */
export const trendPages = (ctx: Context) =>
  new Elysia({ name: "trend pages" }).get(
    "/trends",
    ({ request, query: { of, ...filter } }) =>
      showPage(ctx, request, (viewer, site) => {
        const tags = listTags(ctx, viewer.org);
        const selectedScope = tags.some((tag) => tag === of) ? { tag: of } : { promptId: of };
        const hasScope = filter.promptId !== undefined || filter.tag !== undefined;
        const query = hasScope || of === undefined ? filter : { ...filter, ...selectedScope };
        if (query.promptId !== undefined) getPromptRow(ctx, viewer.org, query.promptId);
        const newestChange = findClearChange(ctx, viewer.org, query.promptId);
        const trends = getTrends(ctx, viewer.org, { ...query, until: dayAfter(query.until) }, newestChange);
        const sides = sidesOf(ctx, viewer.org, query.promptId, newestChange, trends);
        const prompts = listPromptChoices(ctx, viewer.org);
        const agents = agentChoices(ctx, query.agent);
        return <TrendsPage {...{ site, viewer, trends, sides, query, prompts, tags, agents }} />;
      }),
    queryOptions({
      ...trendFilter,
      of: Type.Optional(Type.String({ maxLength: 50, description: "ID of a prompt, or a tag" })),
    }),
  );
