import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, listOf, type OrgOf, operation } from "../api.ts";
import { jsonBody } from "../body.ts";
import type { Deps } from "../deps.ts";
import { pageQuery } from "../paging.ts";
import type { Reports } from "./reports.ts";
import { Report, ReportPatch, ReportSummary, reportFilter, Trace, traceQuery } from "./schema.ts";
import { getTrace } from "./trace.ts";

const path = Type.Object({ slug: Type.String() });

export const reportRoutes = (reports: Reports, deps: Pick<Deps, "db">, orgOf: OrgOf) =>
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
    .get("/api/v1/reports/:slug", ({ request, params }) => reports.getReport(orgOf(request), params.slug), {
      params: path,
      ...operation("Reports", "getReport", "Get a whole report: scores, friction points, recommendations", {
        200: Report,
        ...errors(404),
      }),
    })
    .patch(
      "/api/v1/reports/:slug",
      ({ request, params, body }) => reports.setStatus(orgOf(request), params.slug, body.status),
      {
        params: path,
        ...jsonBody(ReportPatch),
        ...operation("Reports", "updateReport", "Publish a report, make it a draft or archive it", {
          200: Report,
          ...errors(400, 404, 413),
        }),
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
