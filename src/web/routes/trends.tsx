import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Service } from "../../service.ts";
import { getTrends, trendFilter } from "../../trends/trends.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { page } from "../describe.ts";
import type { PageRequests } from "../page-requests.tsx";
import { TrendsPage } from "../pages/trends.tsx";
import { withoutBlanks } from "../query.ts";

/** The trends page. */
export const trendPages = ({ deps, prompts, listAgents }: Service, pages: PageRequests) =>
  new Elysia({ name: "trend pages" }).get(
    "/trends",
    ({ request, query }) =>
      pages.show(request, (viewer, site) => {
        if (query.promptId !== undefined) prompts.getPromptRow(viewer.org, query.promptId);
        const trends = getTrends(deps, viewer.org, query);
        const listed = prompts.listChoices(viewer.org);
        const agents = [...new Set([...listAgents().map(({ id }) => id), ...(query.agent ? [query.agent] : [])])];
        return privateAnswer(
          "html",
          toPage(<TrendsPage {...{ site, viewer, trends, query, prompts: listed, agents }} />),
        );
      }),
    {
      transform: withoutBlanks,
      query: Type.Object(trendFilter),
      ...page("trendsPage", "Trends page", { refuses: true, misses: true, needsKey: true }),
    },
  );
