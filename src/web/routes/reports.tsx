import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { outcomes } from "../../agents/agent.ts";
import { reportStatuses } from "../../db/tables.ts";
import { badRequest } from "../../errors.ts";
import { getArtefact, toArtefactAnswer } from "../../reports/artefacts.ts";
import { reportFilter } from "../../reports/schema.ts";
import { findNotice, getEvent, getTrace, hasEarlier } from "../../reports/trace.ts";
import { traceQuery } from "../../reports/traceschema.ts";
import { getWay } from "../../reports/way.ts";
import { OneOf } from "../../schema.ts";
import type { Service } from "../../service.ts";
import { prefersMarkdown, privateAnswer, varyAccept } from "../answer.ts";
import { hidden, page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { reportMarkdown } from "../markdown.ts";
import { EventPage, toWhole } from "../pages/event.tsx";
import { ReportPage } from "../pages/report.tsx";
import { letters, ReportsPage, reportsShown } from "../pages/reports.tsx";
import { SessionPage } from "../pages/session.tsx";
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

/** The least score of each letter, and the greatest: scores have one decimal. */
const least = { A: 90, B: 80, C: 70, D: 60, F: 0 };
const greatest = { A: 100, B: 89.9, C: 79.9, D: 69.9, F: 59.9 };

const shown = { misses: true, needsKey: true };

/** Reports and the sessions behind them. */
export const reportPages = (
  { deps, reports, gradings, shares, evals, prompts, getTimeline }: Service,
  front: Front,
) => {
  function listPage(viewer: Viewer, site: Site, query: Static<typeof listQuery>): Response {
    const { best, worst, offset = 0, ...filter } = query;
    const range = { minScore: worst && least[worst], maxScore: best && greatest[best] };
    const found = reports.listReports(viewer.org, { ...filter, ...range }, { limit: reportsShown, offset });
    const listed = prompts.listPrompts(viewer.org, { limit: 200, offset: 0, includeArchived: true }).items;
    const agents = [...new Set(["explorer", "llm", ...(query.agent ? [query.agent] : [])])];
    return privateAnswer(
      "html",
      toPage(<ReportsPage {...{ site, viewer, found, query, prompts: listed, agents }} now={deps.now()} />),
    );
  }

  /** `made`: the share link that was made just now. */
  function reportPage(viewer: Viewer, site: Site, slug: string, made?: string): Response {
    const report = reports.getReport(viewer.org, slug);
    const notice = findNotice(deps, viewer.org, slug);
    const path = `/reports/${slug}`;
    const side = {
      session: notice === null ? `${site.base}${path}/session` : null,
      notice,
      shares: may(viewer, "share") ? shares.listShares(viewer.org, slug) : [],
      made,
      nextId: deps.newId(deps.now()),
    };
    const way = getWay(deps, viewer.org, slug);
    const graded = { gradings: gradings.listGradings(viewer.org, slug).gradings };
    const { result } = evals.getEvalRequest(viewer.org, report.run.evalRequestId);
    const body = toPage(<ReportPage {...{ site, viewer, path, report, result, way, side, ...graded }} />);
    return privateAnswer("html", body, 200, varyAccept);
  }

  return new Elysia({ name: "report pages" })
    .get("/reports", ({ request, query }) => front.show(request, (viewer, here) => listPage(viewer, here, query)), {
      transform: withoutBlanks,
      query: listQuery,
      ...page("reportsPage", "Reports, newest first, to be filtered and compared", { refuses: true, needsKey: true }),
    })
    .get(
      "/reports/:slug",
      ({ request, params }) =>
        front.show(request, (viewer, here) => {
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
          slug: Type.String({ description: "slug of the report; with .md for Markdown, with .json for JSON" }),
        }),
        ...page("reportPage", "A report, for people", {
          types: ["text/html", "text/markdown", "application/json"],
          ...shown,
        }),
      },
    )
    .post(
      "/reports/:slug/status",
      ({ request, params }) =>
        front.act(request, "publish", (viewer, fields) => {
          const status = reportStatuses.find((each) => each === fields.get("status"));
          if (!status) throw badRequest(`status must be one of ${reportStatuses.join(", ")}`);
          reports.setStatus(viewer.org, params.slug, status);
          return front.seeOther(`/reports/${params.slug}`);
        }),
      { params: slug, ...hidden },
    )
    .post(
      "/reports/:slug/grading",
      ({ request, params }) =>
        front.act(request, "publish", (viewer, fields) => {
          gradings.pinGrading(viewer.org, params.slug, fields.get("grading") || null);
          return front.seeOther(`/reports/${params.slug}#gradings`);
        }),
      { params: slug, ...hidden },
    )
    .post(
      "/reports/:slug/shares",
      ({ request, params }) =>
        front.act(request, "share", (viewer, fields, here) => {
          const share = { days: Number(fields.get("days")), withSession: fields.has("session"), id: idIn(fields) };
          const { url } = shares.createShare(viewer.org, params.slug, share);
          return reportPage(viewer, here, params.slug, url);
        }),
      { params: slug, ...hidden },
    )
    .post(
      "/reports/:slug/shares/:shareId/revoke",
      ({ request, params }) =>
        front.act(request, "share", (viewer) => {
          shares.revokeShare(viewer.org, params.slug, params.shareId);
          return front.seeOther(`/reports/${params.slug}`);
        }),
      {
        params: Type.Object({ slug: Type.String(), shareId: Type.String() }),
        ...hidden,
      },
    )
    .get(
      "/reports/:slug/session",
      ({ request, params, query }) =>
        front.show(request, (viewer, site) => {
          const report = reports.getReport(viewer.org, params.slug);
          const trace = getTrace(deps, viewer.org, params.slug, query);
          const timeline = getTimeline(viewer.org, params.slug);
          const earlier = hasEarlier(deps, viewer.org, params.slug, query, trace.events[0]?.seq ?? 0);
          const path = `/reports/${params.slug}`;
          return privateAnswer(
            "html",
            toPage(<SessionPage {...{ site, viewer, path, report, trace, timeline, query }} hasEarlier={earlier} />),
          );
        }),
      {
        transform: withoutBlanks,
        params: slug,
        query: Type.Object(traceQuery),
        ...page("sessionPage", "The session behind a report, for people", { refuses: true, ...shown }),
      },
    )
    .get(
      "/reports/:slug/session/:seq",
      ({ request, params }) =>
        front.show(request, (viewer, site) => {
          const event = getEvent(deps, viewer.org, params.slug, Number(params.seq));
          const path = `/reports/${params.slug}`;
          if (request.headers.has("hx-request")) return privateAnswer("html", toWhole(event));
          return privateAnswer("html", toPage(<EventPage {...{ site, viewer, path, event }} />));
        }),
      {
        params: Type.Object({ slug: Type.String(), seq: Type.String({ description: "seq of the event" }) }),
        ...page("eventPage", "One event of a session, whole", shown),
      },
    )
    .get(
      "/reports/:slug/artefacts/:name",
      ({ request, params }) =>
        front.show(request, ({ org }) => toArtefactAnswer(getArtefact(deps, org, params.slug, params.name))),
      {
        params: Type.Object({ slug: Type.String(), name: Type.String() }),
        ...page("artefactPage", "A picture that the agent took, for people", { types: ["image/webp"], ...shown }),
      },
    );
};
