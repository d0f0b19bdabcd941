import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { compareReports } from "../../comparisons/side-by-side.ts";
import type { Context, OrgId } from "../../context.ts";
import { oneLine } from "../../grading/text.ts";
import { listPromptChoices, listTags } from "../../prompts/lists.ts";
import { getPromptRow } from "../../prompts/prompts.ts";
import { listReports } from "../../reports/lists.ts";
import { toIso } from "../../schema.ts";
import { getTrends, type Trends, trendFilter } from "../../trends/trends.ts";
import { showPage } from "../page-requests.tsx";
import { type ChangeSides, TrendsPage } from "../pages/trends.tsx";
import { agentChoices, queryOptions } from "../query.ts";

/** Maximum number of changes whose reports are compared, the newest, and of friction points listed for each side. */
const maxSides = 4;
const maxFriction = 5;

const dayMs = 86_400_000;

/** The end of the last day to show: people expect it to be included. Any other time, valid or not, as it is. */
const dayAfter = (until: string | undefined): string | undefined =>
  until?.length === 10 && !Number.isNaN(Date.parse(until)) ? toIso(Date.parse(until) + dayMs).slice(0, 10) : until;

/** The newest reports before and after each change of the score of a prompt, and the friction that came or went. */
function sidesOf(
  ctx: Context,
  org: OrgId,
  promptId: string | undefined,
  { agent, changes }: Trends,
): Map<string, ChangeSides> {
  if (promptId === undefined || agent === null) return new Map();
  const scoreChanges = changes.filter(({ what }) => what === "score");
  const sides = scoreChanges.slice(-maxSides).flatMap(({ at }, i, newestChanges): [string, ChangeSides][] => {
    const findNewestReport = (range: { since?: string; until?: string }) =>
      listReports(ctx, org, { promptId, agent, status: "published", ...range }, { limit: 1, offset: 0 }).items[0];
    const [before, after] = [
      findNewestReport({ until: at }),
      findNewestReport({ since: at, until: newestChanges[i + 1]?.at }),
    ];
    if (!before || !after) return [];
    const { only } = compareReports(ctx, org, [before.slug, after.slug]).friction;
    const titles = (slug: string) =>
      only
        .filter(({ slugs }) => slugs.includes(slug))
        .slice(0, maxFriction)
        .map(({ title }) => oneLine(title, 160));
    return [[at, { slugs: [before.slug, after.slug], gone: titles(before.slug), added: titles(after.slug) }]];
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
        const isTag = of !== undefined && tags.includes(of);
        const scope = of === undefined ? {} : isTag ? { tag: of } : { promptId: of };
        const query = filter.promptId === undefined && filter.tag === undefined ? { ...filter, ...scope } : filter;
        if (query.promptId !== undefined) getPromptRow(ctx, viewer.org, query.promptId);
        const trends = getTrends(ctx, viewer.org, { ...query, until: dayAfter(query.until) });
        const sides = sidesOf(ctx, viewer.org, query.promptId, trends);
        const prompts = listPromptChoices(ctx, viewer.org);
        const agents = agentChoices(ctx, query.agent);
        return <TrendsPage {...{ site, viewer, trends, sides, query, prompts, tags, agents }} />;
      }),
    queryOptions({
      ...trendFilter,
      of: Type.Optional(Type.String({ maxLength: 50, description: "ID of a prompt, or a tag" })),
    }),
  );
