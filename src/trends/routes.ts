import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { findClearChange } from "../comparisons/latest.ts";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { errors, operation } from "../http/operation.ts";
import { getTrends, Trends, trendFilter } from "./trends.ts";

export const trendRoutes = (ctx: Context) =>
  new Elysia({ name: "trends" }).get(
    "/api/v1/trends",
    ({ request, query }) => {
      const org = orgOf(request);
      return getTrends(ctx, org, query, findClearChange(ctx, org, query.promptId));
    },
    {
      query: Type.Object(trendFilter),
      ...operation("Reports", "getTrends", "Show results over time, and when they changed", {
        200: Trends,
        ...errors(400, 404),
      }),
    },
  );
