import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { errors, operation } from "../http/operation.ts";
import { getTrends, Trends, trendFilter } from "./trends.ts";

export const trendRoutes = (ctx: Context) =>
  new Elysia({ name: "trends" }).get("/api/v1/trends", ({ request, query }) => getTrends(ctx, orgOf(request), query), {
    query: Type.Object(trendFilter),
    ...operation("Reports", "getTrends", "Show results over time, and when they changed", {
      200: Trends,
      ...errors(400, 404),
    }),
  });
