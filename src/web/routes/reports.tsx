import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { outcomes } from "../../agents/agent.ts";
import { findLatestResults } from "../../comparisons/latest.ts";
import type { Context } from "../../context.ts";
import { reportStatuses } from "../../db/tables/reports.ts";
import { sortBy } from "../../http/sorting.ts";
import { listPromptChoices } from "../../prompts/lists.ts";
import { gradingsOfReport } from "../../reports/gradings.ts";
import { listReports, reportSortColumns } from "../../reports/lists.ts";
import { reportMarkdown } from "../../reports/markdown.ts";
import { getPagesVisited } from "../../reports/pages-visited.ts";
import { getReport } from "../../reports/reports.ts";
import { reportFilter } from "../../reports/schema.ts";
import { getSession } from "../../reports/trace.ts";
import { getEvalRequest } from "../../runs/evals.ts";
import { docsVariantsOf } from "../../runs/lists.ts";
import { OneOf } from "../../schema.ts";
import { createShare, sharesOfReport } from "../../shares/shares.ts";
import { toComparisonHref } from "../components/change-links.ts";
import { renderPage } from "../components/layout.tsx";
import { showPage, submitForm } from "../page-requests.tsx";
import { seeOther } from "../page-responses.ts";
import { ReportPage } from "../pages/report.tsx";
import { gradeLetters, ReportsPage, reportsPerPage } from "../pages/reports.tsx";
import { agentChoices, idIn, queryOptions } from "../query.ts";
import { prefersMarkdown, privateResponse, varyAccept } from "../responses.ts";
import type { Site } from "../site.ts";
import { verificationsOf } from "../verifications.ts";
import { may, type Viewer } from "../viewer.ts";

const listQuery = Type.Object({
  promptId: reportFilter.promptId,
  status: Type.Optional(OneOf(reportStatuses)),
  outcome: Type.Optional(OneOf(outcomes)),
  agent: reportFilter.agent,
  best: Type.Optional(OneOf(gradeLetters)),
  worst: Type.Optional(OneOf(gradeLetters)),
  sort: sortBy(reportSortColumns),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
});

/** The lowest and the highest score for each letter. Scores have one decimal. */
const minScores = { A: 90, B: 80, C: 70, D: 60, F: 0 };
const maxScores = { A: 100, B: 89.9, C: 79.9, D: 69.9, F: 59.9 };

function reportListPage(ctx: Context, viewer: Viewer, site: Site, query: Static<typeof listQuery>) {
  const { best, worst, offset = 0, ...filter } = query;
  const range = { minScore: worst && minScores[worst], maxScore: best && maxScores[best] };
  const reports = listReports(ctx, viewer.org, { ...filter, ...range }, { limit: reportsPerPage, offset });
  const runIds = reports.items.map(({ runId }) => runId);
  const docsVariants = docsVariantsOf(ctx, viewer.org, runIds);
  const prompts = listPromptChoices(ctx, viewer.org);
  const agents = agentChoices(ctx, query.agent);
  return <ReportsPage {...{ site, viewer, reports, docsVariants, query, prompts, agents }} now={ctx.now()} />;
}

/** `newLink`: the share link that was just created. */
async function reportPage(ctx: Context, viewer: Viewer, site: Site, slug: string, newLink?: string): Promise<Response> {
  const report = getReport(ctx, viewer.org, slug);
  const session = getSession(ctx, viewer.org, slug);
  const { notice } = session;
  const path = `/reports/${slug}`;
  const latest = findLatestResults(ctx, viewer.org, report.prompt.id);
  const extras = {
    session: notice === null ? `${site.base}${path}/session` : null,
    notice,
    shares: may(viewer, "share") ? sharesOfReport(ctx, session.report) : [],
    newLink,
    nextId: ctx.newId(ctx.now()),
    comparisonHref: toComparisonHref(site.base, latest, report.run.evalRequestId),
  };
  const pagesVisited = getPagesVisited(ctx, session);
  const { gradings } = gradingsOfReport(ctx, session.report);
  const evaluation = getEvalRequest(ctx, viewer.org, report.run.evalRequestId);
  const resultOfAgent = evaluation.agents.find(
    ({ agent }) => agent.id === report.agent.id && agent.model === report.agent.model,
  );
  const { result } = resultOfAgent ?? evaluation;
  const verifications = verificationsOf(ctx, viewer, report);
  const props = { site, viewer, path, report, result, latest, pagesVisited, extras, gradings, verifications };
  const body = renderPage(<ReportPage {...props} />);
  return privateResponse("html", body, 200, varyAccept);
}

/** Report pages. */
export const reportPages = (ctx: Context) =>
  new Elysia({ name: "report pages" })
    .get(
      "/reports",
      ({ request, query }) => showPage(ctx, request, (viewer, site) => reportListPage(ctx, viewer, site, query)),
      queryOptions(listQuery.properties),
    )
    .get("/reports/:slug", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => {
        const slug = params.slug.replace(/\.(md|json)$/, "");
        const report = () => getReport(ctx, viewer.org, slug);
        if (params.slug.endsWith(".json"))
          return privateResponse("json", `${JSON.stringify(report(), null, 2)}\n`, 200, varyAccept);
        return slug !== params.slug || prefersMarkdown(request)
          ? privateResponse("markdown", reportMarkdown(report()), 200, varyAccept)
          : reportPage(ctx, viewer, site, slug);
      }),
    )
    // The form responds at its own URL, which people may reload.
    .get("/reports/:slug/shares", ({ request, params }) =>
      showPage(ctx, request, ({ org }) => seeOther(ctx, `/reports/${getReport(ctx, org, params.slug).slug}`)),
    )
    .post("/reports/:slug/shares", ({ request, params }) =>
      submitForm(ctx, request, "share", (viewer, fields, site) => {
        const share = { days: Number(fields.get("days")), withSession: fields.has("session"), id: idIn(fields) };
        const { url } = createShare(ctx, viewer.org, params.slug, share);
        return reportPage(ctx, viewer, site, params.slug, url);
      }),
    );
