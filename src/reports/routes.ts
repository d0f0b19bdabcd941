import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, type OrgOf, operation } from "../api.ts";
import type { Deps } from "../deps.ts";
import type { Reports } from "./reports.ts";
import { Report, Trace, traceQuery } from "./schema.ts";
import { getTrace } from "./trace.ts";

const path = Type.Object({ slug: Type.String() });

export const reportRoutes = (reports: Reports, deps: Pick<Deps, "db">, orgOf: OrgOf) =>
  new Elysia({ name: "reports" })
    .get("/api/v1/reports/:slug", ({ request, params }) => reports.getReport(orgOf(request), params.slug), {
      params: path,
      ...operation("Reports", "getReport", "Get a whole report: scores, friction points, recommendations", {
        200: Report,
        ...errors(404),
      }),
    })
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
