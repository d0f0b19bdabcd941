import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, listOf, type OrgOf, operation } from "../api.ts";
import { jsonBody } from "../body.ts";
import type { Deps } from "../deps.ts";
import { pageQuery } from "../paging.ts";
import { DocsMap, getDocsMap, mapQuery } from "../reports/docsmap.ts";
import { Fix } from "../reports/fixschema.ts";
import { FrictionDetail, FrictionThing, frictionFilter, scopeQuery } from "../reports/frictionschema.ts";
import { DoneInput, fixFilter, type Recommendations } from "../reports/recommendations.ts";
import type { Reports } from "../reports/reports.ts";
import { getTrends, Trends, trendFilter } from "../reports/trends.ts";
import { PathId } from "../schema.ts";

type Parts = {
  reports: Reports;
  recommendations: Recommendations;
  deps: Pick<Deps, "db" | "now">;
  /** Who asks, in words. */
  nameOf: (request: Request) => string;
};

/** What many reports say together: friction, trends, docs map, recommendations that were followed. */
export const historyRoutes = ({ reports, recommendations, deps, nameOf }: Parts, orgOf: OrgOf) =>
  new Elysia({ name: "history" })
    .get(
      "/api/v1/friction",
      ({ request, query: { limit = 100, offset, ...filter }, set }) => {
        const { items, total } = reports.listFriction(orgOf(request), filter, { limit, offset: offset ?? 0 });
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        query: Type.Object({ ...frictionFilter, ...pageQuery }),
        ...operation("Friction", "listFriction", "List what stood in the way, each thing once, the worst first", {
          200: listOf(FrictionThing, "Friction of a prompt or of a provider's prompts"),
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/friction/:fingerprint",
      ({ request, params, query }) => reports.getFriction(orgOf(request), params.fingerprint, query),
      {
        params: Type.Object({ fingerprint: Type.String() }),
        query: Type.Object(scopeQuery),
        ...operation("Friction", "getFriction", "Get one friction with the evaluations that came to where it stands", {
          200: FrictionDetail,
          ...errors(400, 404),
        }),
      },
    )
    .get("/api/v1/trends", ({ request, query }) => getTrends(deps, orgOf(request), query), {
      query: Type.Object(trendFilter),
      ...operation("Reports", "getTrends", "Show how results went over time, and where they changed", {
        200: Trends,
        ...errors(400, 404),
      }),
    })
    .post(
      "/api/v1/recommendations/:fingerprint/done",
      async ({ request, params, body, set }) => {
        set.status = 201;
        const who = { by: nameOf(request), trigger: "api" as const };
        return recommendations.markDone(orgOf(request), params.fingerprint, body, who);
      },
      {
        params: Type.Object({ fingerprint: Type.String({ description: "Of a friction that it is to remove" }) }),
        ...jsonBody(DoneInput),
        ...operation("Friction", "markDone", "Say that a recommendation was followed, and have it looked at", {
          201: Fix,
          ...errors(400, 404, 409, 413),
        }),
      },
    )
    .get(
      "/api/v1/recommendations/done",
      ({ request, query: { limit = 100, offset, ...filter }, set }) => {
        const { items, total } = recommendations.listDone(orgOf(request), filter, { limit, offset: offset ?? 0 });
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        query: Type.Object({ ...fixFilter, ...pageQuery }),
        ...operation(
          "Friction",
          "listDone",
          "List the recommendations of a prompt that were marked done, newest first",
          {
            200: listOf(Fix, "Marked done, with what became of it"),
            ...errors(400, 404),
          },
        ),
      },
    )
    .get(
      "/api/v1/providers/:providerId/docs-map",
      ({ request, params, query }) => getDocsMap(deps, orgOf(request), params, query),
      {
        params: Type.Object({ providerId: PathId("uuid of the provider") }),
        query: Type.Object(mapQuery),
        ...operation("Friction", "getDocsMap", "Show which pages of the docs agents read, never reach and guess", {
          200: DocsMap,
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/prompts/:promptId/docs-map",
      ({ request, params, query }) => getDocsMap(deps, orgOf(request), params, query),
      {
        params: Type.Object({ promptId: PathId("uuid of the prompt") }),
        query: Type.Object(mapQuery),
        ...operation("Friction", "getDocsMapOfPrompt", "The same of the runs of one prompt", {
          200: DocsMap,
          ...errors(400, 404),
        }),
      },
    );
