import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listAnswer, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { Estimate } from "./estimate-schema.ts";
import type { Estimates } from "./estimates.ts";
import { Spending } from "./schema.ts";
import { Slot } from "./slot-schema.ts";
import type { Slots } from "./slots.ts";
import { getSpending } from "./spending.ts";

export type PlanParts = { slots: Slots; estimates: Estimates };

/** The schedule of a prompt, and the cost of its runs. */
export const planRoutes = (ctx: Context, { slots, estimates }: PlanParts) =>
  new Elysia({ name: "slots and spending" })
    .get(
      "/api/v1/prompts/:promptId/slots",
      ({ request, params, query, set }) =>
        listAnswer(set, slots.listSlots(orgOf(request), params.promptId, pageOf(query))),
      {
        params: Type.Object({ promptId: PathId("ID of the prompt") }),
        query: Type.Object(pageQuery),
        ...operation("Prompts", "listSlots", "List the scheduled slots of a prompt and their outcomes, newest first", {
          200: listOf(Slot, "Slots, newest first"),
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/prompts/:promptId/estimate",
      ({ request, params }) => estimates.getEstimate(orgOf(request), params.promptId),
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
