import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { getTrends, trendFilter } from "../../reports/trends.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { TrendsPage } from "../pages/trends.tsx";
import { withoutBlanks } from "../query.ts";

/** Results over time. */
export const trendPages = ({ deps, prompts }: Service, front: Front) =>
  new Elysia({ name: "trend pages" }).get(
    "/trends",
    ({ request, query }) =>
      front.show(request, (viewer, site) => {
        if (query.promptId !== undefined) prompts.getPromptRow(viewer.org, query.promptId);
        const trends = getTrends(deps, viewer.org, query);
        const listed = prompts.listPrompts(viewer.org, { limit: 200, offset: 0, includeArchived: true }).items;
        const agents = [...new Set(["explorer", "llm", ...(query.agent ? [query.agent] : [])])];
        return privateAnswer(
          "html",
          toPage(<TrendsPage {...{ site, viewer, trends, query, prompts: listed, agents }} />),
        );
      }),
    {
      transform: withoutBlanks,
      query: Type.Object(trendFilter),
      ...page("trendsPage", "Results over time, and what moved them", { refuses: true, misses: true, needsKey: true }),
    },
  );
