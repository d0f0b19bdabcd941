import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { isRuleBased } from "../../agents/agent.ts";
import { findOrgByResults } from "../../auth/orgs.ts";
import { findLatest } from "../../comparisons/latest.ts";
import type { OrgId } from "../../context.ts";
import { whileUnchanged } from "../../db/unchanged.ts";
import { AppError, notFound } from "../../errors.ts";
import { getReport } from "../../reports/reports.ts";
import type { Service } from "../../service.ts";
import { publicAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { errorAnswer, type PageRequests } from "../page-requests.tsx";
import { type PublicResult, ResultsPage } from "../pages/results.tsx";
import { toPublicScore } from "../public-score.ts";

/** The URL is a secret until someone publishes it, so it doesn't leak through referrers or search engines. */
const secret = { "referrer-policy": "no-referrer", "x-robots-tag": "noindex, nofollow" };
/** The color scheme depends on a cookie. */
const caching = { "cache-control": "public, max-age=60, must-revalidate", vary: "Cookie" };

/** The public results page of an organization, for everyone with its URL. */
export const resultPages = ({ ctx, prompts }: Service, pages: PageRequests) => {
  const listResults = (org: OrgId, timeZone: string, now: number): PublicResult[] =>
    prompts.listOnResultsPage(org).map(({ id, title }) => {
      const newest = findLatest(ctx, org, id);
      if (newest === null) return { title, result: null };
      const { agent, methodology } = getReport(ctx, org, newest.slug);
      return {
        title,
        result: {
          ...{ agent, methodology, scores: newest.points.map(({ score }) => score) },
          current: toPublicScore(newest, isRuleBased(agent.id), now, timeZone),
        },
      };
    });

  return new Elysia({ name: "results page" }).get(
    "/results/:token",
    ({ request, params }) => {
      const site = pages.site(request);
      try {
        const org = findOrgByResults(ctx, params.token);
        if (org === null) throw notFound("This page does not exist, or it is no longer public.");
        const path = org.resultsPath ?? "";
        // What is outdated depends on the day.
        const day = new Date(ctx.now()).toISOString().slice(0, 10);
        const results = whileUnchanged(ctx.db, ["results", org.id, day], () =>
          listResults(org.id, org.timeZone, ctx.now()),
        );
        const body = toPage(<ResultsPage {...{ site, path, results }} orgName={org.name} />);
        return publicAnswer(request, "html", body, { ...secret, ...caching });
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        const answer = errorAnswer(site, request, error);
        for (const [name, value] of Object.entries(secret)) answer.headers.set(name, value);
        return answer;
      }
    },
    {
      params: Type.Object({ token: Type.String({ description: "Secret of the results page" }) }),
    },
  );
};
