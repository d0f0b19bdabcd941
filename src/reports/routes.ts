import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context, OrgId } from "../context.ts";
import { badRequest } from "../errors.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { getArtifact, toArtifactResponse } from "./artifacts.ts";
import { getReportByMethodology, listGradings, pinGrading } from "./gradings.ts";
import { listReports } from "./lists.ts";
import { getReport, setReportStatus } from "./reports.ts";
import { GradingList, Report, ReportPatch, ReportSummary, reportFilter } from "./schema.ts";
import { getSession, getTrace } from "./trace.ts";
import { Trace, traceQuery } from "./trace-schema.ts";

const reportPath = Type.Object({ slug: Type.String() });

const methodologyQuery = Type.Object({
  methodology: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "Show the grading by this methodology: its ID, or at least 8 digits of its hash",
    }),
  ),
});

/** Throws bad_request, not_found. */
function changeReport(ctx: Context, org: OrgId, slug: string, patch: ReportPatch): Report {
  if (patch.status === undefined && patch.gradingId === undefined)
    throw badRequest("Nothing to change. Set status or gradingId.");
  if (patch.gradingId !== undefined) pinGrading(ctx, org, slug, patch.gradingId);
  return patch.status === undefined ? getReport(ctx, org, slug) : setReportStatus(ctx, org, slug, patch.status);
}

export const reportRoutes = (ctx: Context) =>
  new Elysia({ name: "reports" })
    .get(
      "/api/v1/reports",
      ({ request, query: { limit, offset, ...filter }, set }) =>
        listResponse(set, listReports(ctx, orgOf(request), filter, pageOf({ limit, offset }))),
      {
        query: Type.Object({ ...reportFilter, ...pageQuery }),
        ...operation("Reports", "listReports", "List reports, newest first", {
          200: listOf(ReportSummary, "Reports, newest first"),
          ...errors(400),
        }),
      },
    )
    .get(
      "/api/v1/reports/:slug",
      ({ request, params: { slug }, query: { methodology } }) =>
        methodology === undefined
          ? getReport(ctx, orgOf(request), slug)
          : getReportByMethodology(ctx, orgOf(request), slug, methodology),
      {
        params: reportPath,
        query: methodologyQuery,
        ...operation("Reports", "getReport", "Get a report with scores, friction points and recommended fixes", {
          200: Report,
          ...errors(400, 404),
        }),
      },
    )
    .get("/api/v1/reports/:slug/gradings", ({ request, params }) => listGradings(ctx, orgOf(request), params.slug), {
      params: reportPath,
      ...operation("Reports", "listGradings", "List the gradings of a report and how consistent its judges are", {
        200: GradingList,
        ...errors(404),
      }),
    })
    .patch(
      "/api/v1/reports/:slug",
      ({ request, params, body }) => changeReport(ctx, orgOf(request), params.slug, body),
      {
        params: reportPath,
        ...jsonBody(ReportPatch),
        ...operation(
          "Reports",
          "updateReport",
          "Update a report: publish it, make it a draft, archive it, or pin a grading",
          {
            200: Report,
            ...errors(400, 404, 413),
          },
        ),
      },
    )
    .get(
      "/api/v1/reports/:slug/trace",
      ({ request, params, query }) => getTrace(ctx, getSession(ctx, orgOf(request), params.slug), query),
      {
        params: reportPath,
        query: Type.Object(traceQuery),
        ...operation(
          "Reports",
          "getSessionTrace",
          "Get the session trace of a report, page by page",
          { 200: Trace, ...errors(400, 404) },
          { description: "A page has at most 1 MiB of events, so it can have fewer than `limit`." },
        ),
      },
    )
    .get(
      "/api/v1/reports/:slug/artifacts/:name",
      ({ request, params }) =>
        toArtifactResponse(params.name, getArtifact(ctx, orgOf(request), params.slug, params.name)),
      {
        params: Type.Object({
          slug: Type.String(),
          name: Type.String({ description: "Name from the artifact field of an event" }),
        }),
        ...operation("Reports", "getArtifact", "Get a screenshot or the workspace diff of the session", {
          200: {
            description: "The image",
            content: { "image/webp": { schema: { type: "string", contentEncoding: "binary" } } },
          },
          ...errors(404),
        }),
      },
    );
