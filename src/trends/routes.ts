import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Deps } from "../deps.ts";
import { errors, type OrgOf, operation } from "../http/operation.ts";
import { getTrends, Trends, trendFilter } from "./trends.ts";

export const trendRoutes = (deps: Pick<Deps, "db" | "now">, orgOf: OrgOf) =>
  new Elysia({ name: "trends" }).get("/api/v1/trends", ({ request, query }) => getTrends(deps, orgOf(request), query), {
    query: Type.Object(trendFilter),
    ...operation("Reports", "getTrends", "Show results over time, and when they changed", {
      200: Trends,
      ...errors(400, 404),
    }),
  });
