import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { errors, operation } from "../http/operation.ts";
import { PathId } from "../schema.ts";
import { Estimate } from "./estimate-schema.ts";
import { getEstimate } from "./estimates.ts";
import { Spending } from "./schema.ts";
import { getSpending } from "./spending.ts";

/** What runs will cost, and what they have cost. */
export const spendingRoutes = (ctx: Context) =>
  new Elysia({ name: "spending" })
    .get(
      "/api/v1/prompts/:promptId/estimate",
      ({ request, params }) => getEstimate(ctx, orgOf(request), params.promptId),
      {
        params: Type.Object({ promptId: PathId("ID of the prompt") }),
        ...operation("Prompts", "getEstimate", "Estimate the duration and cost of a run", {
          200: Estimate,
          ...errors(404),
        }),
      },
    )
    .get("/api/v1/spending", ({ request }) => getSpending(ctx, orgOf(request)), {
      ...operation("System", "getSpending", "Get the model spending and budget of the current month", {
        200: Spending,
        ...errors(),
      }),
    });
