import { Elysia } from "elysia";
import { isRuleBased } from "../../agents/agent.ts";
import { findOrgByResultsToken } from "../../auth/orgs.ts";
import { findLatestResults } from "../../comparisons/latest.ts";
import type { Context, OrgId } from "../../context.ts";
import { cachedResult } from "../../db/cache.ts";
import { notFound } from "../../errors.ts";
import { listPromptsOnResultsPage } from "../../prompts/lists.ts";
import { titleOf } from "../../reports/labels.ts";
import { getReport } from "../../reports/reports.ts";
import { renderPage } from "../components/layout.tsx";
import { showByLink } from "../page-requests.tsx";
import { type PublicResult, ResultsPage } from "../pages/results.tsx";
import { toPublicScore } from "../public-score.ts";
import { publicResponse } from "../responses.ts";

/** The response varies by cookie, because the color scheme depends on a cookie. */
const cacheHeaders = { "cache-control": "public, max-age=60, must-revalidate", vary: "Cookie" };

function listResults(ctx: Context, org: OrgId, timeZone: string): PublicResult[] {
  return listPromptsOnResultsPage(ctx, org).map(({ id, ...texts }) => {
    const title = titleOf(texts);
    const latest = findLatestResults(ctx, org, id);
    if (latest === null) return { title, result: null };
    const { agent, methodology } = getReport(ctx, org, latest.slug);
    const scores = latest.points.map(({ score }) => score);
    const current = toPublicScore(latest, { isDeterministic: isRuleBased(agent.id), now: ctx.now(), timeZone });
    return { title, result: { agent, methodology, scores, current } };
  });
}

/** The public results page of an organization, for everyone with its URL. */
export const resultPages = (ctx: Context) =>
  new Elysia({ name: "results page" }).get("/results/:token", ({ request, params }) =>
    showByLink(ctx, request, (site) => {
      const org = findOrgByResultsToken(ctx, params.token);
      if (org === null) throw notFound("This page does not exist, or it is no longer public.");
      // Which results are outdated depends on the day, so the day is a part of the key.
      const day = new Date(ctx.now()).toISOString().slice(0, 10);
      const results = cachedResult(ctx.db, ["results", org.id, day], () => listResults(ctx, org.id, org.timeZone));
      const path = org.resultsPath ?? "";
      return publicResponse(
        request,
        "html",
        renderPage(<ResultsPage {...{ site, path, results }} orgName={org.name} />),
        cacheHeaders,
      );
    }),
  );
