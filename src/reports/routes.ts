import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, listOf, type OrgOf, operation } from "../api.ts";
import { jsonBody } from "../body.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest } from "../errors.ts";
import { pageQuery } from "../paging.ts";
import type { Gradings } from "./gradings.ts";
import type { Reports } from "./reports.ts";
import { GradingList, Report, ReportPatch, ReportSummary, reportFilter, Trace, traceQuery } from "./schema.ts";
import { getTrace } from "./trace.ts";

const path = Type.Object({ slug: Type.String() });

const methodologyQuery = Type.Object({
  methodology: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "As it was graded by this methodology: its id, or 8 digits or more of its hash",
    }),
  ),
});

/** Throws bad_request, not_found. */
function change(reports: Reports, gradings: Gradings, org: OrgId, slug: string, patch: ReportPatch): Report {
  if (patch.status === undefined && patch.gradingId === undefined)
    throw badRequest("the body must have a status or a gradingId");
  if (patch.gradingId !== undefined) gradings.pinGrading(org, slug, patch.gradingId);
  return patch.status === undefined ? reports.getReport(org, slug) : reports.setStatus(org, slug, patch.status);
}

export const reportRoutes = (reports: Reports, gradings: Gradings, deps: Pick<Deps, "db">, orgOf: OrgOf) =>
  new Elysia({ name: "reports" })
    .get(
      "/api/v1/reports",
      ({ request, query: { limit = 100, offset, ...filter }, set }) => {
        const { items, total } = reports.listReports(orgOf(request), filter, { limit, offset: offset ?? 0 });
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        query: Type.Object({ ...reportFilter, ...pageQuery }),
        ...operation("Reports", "listReports", "List the reports of the organisation, newest first", {
          200: listOf(ReportSummary, "Reports, newest first"),
          ...errors(400),
        }),
      },
    )
    .get(
      "/api/v1/reports/:slug",
      ({ request, params: { slug }, query: { methodology } }) =>
        methodology === undefined
          ? reports.getReport(orgOf(request), slug)
          : gradings.getGraded(orgOf(request), slug, methodology),
      {
        params: path,
        query: methodologyQuery,
        ...operation("Reports", "getReport", "Get a whole report: scores, friction points, recommendations", {
          200: Report,
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/reports/:slug/gradings",
      ({ request, params }) => gradings.listGradings(orgOf(request), params.slug),
      {
        params: path,
        ...operation("Reports", "listGradings", "List how a report was graded, each time, and how far judges agree", {
          200: GradingList,
          ...errors(404),
        }),
      },
    )
    .patch(
      "/api/v1/reports/:slug",
      ({ request, params, body }) => change(reports, gradings, orgOf(request), params.slug, body),
      {
        params: path,
        ...jsonBody(ReportPatch),
        ...operation(
          "Reports",
          "updateReport",
          "Publish a report, make it a draft, archive it, or pin one of its gradings",
          {
            200: Report,
            ...errors(400, 404, 413),
          },
        ),
      },
    )
    .get(
      "/api/v1/reports/:slug/trace",
      ({ request, params, query }) => getTrace(deps, orgOf(request), params.slug, query),
      {
        params: path,
        query: Type.Object(traceQuery),
        ...operation("Reports", "getSessionTrace", "Read the session behind a report, a page at a time", {
          200: Trace,
          ...errors(400, 404),
        }),
      },
    );
