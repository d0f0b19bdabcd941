import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { outcomes } from "../../agents/agent.ts";
import { reportStatuses } from "../../db/tables.ts";
import { badRequest } from "../../errors.ts";
import { reportMarkdown } from "../../reports/markdown.ts";
import { getPagesVisited } from "../../reports/pages-visited.ts";
import { reportFilter } from "../../reports/schema.ts";
import { getSession } from "../../reports/trace.ts";
import { OneOf } from "../../schema.ts";
import type { Service } from "../../service.ts";
import { prefersMarkdown, privateAnswer, varyAccept } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { hidden, page } from "../describe.ts";
import type { PageRequests } from "../page-requests.tsx";
import { ReportPage } from "../pages/report.tsx";
import { letters, ReportsPage, reportsShown } from "../pages/reports.tsx";
import { idIn, withoutBlanks } from "../query.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const slug = Type.Object({ slug: Type.String() });
const listQuery = Type.Object({
  promptId: reportFilter.promptId,
  status: Type.Optional(OneOf(reportStatuses)),
  outcome: Type.Optional(OneOf(outcomes)),
  agent: reportFilter.agent,
  best: Type.Optional(OneOf(letters)),
  worst: Type.Optional(OneOf(letters)),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
});

/** Lowest and highest score of each letter. Scores have one decimal. */
const least = { A: 90, B: 80, C: 70, D: 60, F: 0 };
const greatest = { A: 100, B: 89.9, C: 79.9, D: 69.9, F: 59.9 };

const shown = { misses: true, needsKey: true };

/** Report and session pages. */
export const reportPages = (
  { deps, reports, gradings, shares, evals, prompts, listAgents }: Service,
  pages: PageRequests,
) => {
  function listPage(viewer: Viewer, site: Site, query: Static<typeof listQuery>): Response {
    const { best, worst, offset = 0, ...filter } = query;
    const range = { minScore: worst && least[worst], maxScore: best && greatest[best] };
    const found = reports.listReports(viewer.org, { ...filter, ...range }, { limit: reportsShown, offset });
    const listed = prompts.listChoices(viewer.org);
    const agents = [...new Set([...listAgents().map(({ id }) => id), ...(query.agent ? [query.agent] : [])])];
    return privateAnswer(
      "html",
      toPage(<ReportsPage {...{ site, viewer, found, query, prompts: listed, agents }} now={deps.now()} />),
    );
  }

  /** `made`: the share link that was just created. */
  function reportPage(viewer: Viewer, site: Site, slug: string, made?: string): Response {
    const report = reports.getReport(viewer.org, slug);
    const session = getSession(deps, viewer.org, slug);
    const { notice } = session;
    const path = `/reports/${slug}`;
    const side = {
      session: notice === null ? `${site.base}${path}/session` : null,
      notice,
      shares: may(viewer, "share") ? shares.listOf(session.report) : [],
      made,
      nextId: deps.newId(deps.now()),
    };
    const visited = getPagesVisited(deps, session);
    const graded = { gradings: gradings.listOf(session.report).gradings };
    const { result } = evals.getEvalRequest(viewer.org, report.run.evalRequestId);
    const body = toPage(<ReportPage {...{ site, viewer, path, report, result, visited, side, ...graded }} />);
    return privateAnswer("html", body, 200, varyAccept);
  }

  return new Elysia({ name: "report pages" })
    .get("/reports", ({ request, query }) => pages.show(request, (viewer, here) => listPage(viewer, here, query)), {
      transform: withoutBlanks,
      query: listQuery,
      ...page("reportsPage", "Reports page", { refuses: true, needsKey: true }),
    })
    .get(
      "/reports/:slug",
      ({ request, params }) =>
        pages.show(request, (viewer, here) => {
          const slug = params.slug.replace(/\.(md|json)$/, "");
          const report = () => reports.getReport(viewer.org, slug);
          if (params.slug.endsWith(".json"))
            return privateAnswer("json", `${JSON.stringify(report(), null, 2)}\n`, 200, varyAccept);
          return slug !== params.slug || prefersMarkdown(request)
            ? privateAnswer("markdown", reportMarkdown(report()), 200, varyAccept)
            : reportPage(viewer, here, slug);
        }),
      {
        params: Type.Object({
          slug: Type.String({ description: "Slug of the report; append .md for Markdown or .json for JSON" }),
        }),
        ...page("reportPage", "Report page, as HTML, Markdown or JSON", {
          types: ["text/html", "text/markdown", "application/json"],
          ...shown,
        }),
      },
    )
    .post(
      "/reports/:slug/status",
      ({ request, params }) =>
        pages.submit(request, "publish", (viewer, fields) => {
          const status = reportStatuses.find((each) => each === fields.get("status"));
          if (!status) throw badRequest(`status must be one of ${reportStatuses.join(", ")}`);
          reports.setStatus(viewer.org, params.slug, status);
          return pages.seeOther(`/reports/${params.slug}`);
        }),
      { params: slug, ...hidden },
    )
    .post(
      "/reports/:slug/grading",
      ({ request, params }) =>
        pages.submit(request, "publish", (viewer, fields) => {
          gradings.pinGrading(viewer.org, params.slug, fields.get("grading") || null);
          return pages.seeOther(`/reports/${params.slug}#gradings`);
        }),
      { params: slug, ...hidden },
    )
    .post(
      "/reports/:slug/shares",
      ({ request, params }) =>
        pages.submit(request, "share", (viewer, fields, here) => {
          const share = { days: Number(fields.get("days")), withSession: fields.has("session"), id: idIn(fields) };
          const { url } = shares.createShare(viewer.org, params.slug, share);
          return reportPage(viewer, here, params.slug, url);
        }),
      { params: slug, ...hidden },
    )
    .post(
      "/reports/:slug/shares/:shareId/revoke",
      ({ request, params }) =>
        pages.submit(request, "share", (viewer) => {
          shares.revokeShare(viewer.org, params.slug, params.shareId);
          return pages.seeOther(`/reports/${params.slug}`);
        }),
      {
        params: Type.Object({ slug: Type.String(), shareId: Type.String() }),
        ...hidden,
      },
    );
};
