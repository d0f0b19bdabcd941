import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { jsonBody } from "../http/body.ts";
import { orgOf } from "../http/caller.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listAnswer, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { Slot } from "./schema.ts";
import { listSlots } from "./slot-lists.ts";
import { scheduleTag, TagSchedule, TagScheduled } from "./tag-schedules.ts";

/** The schedule of a prompt, and of all prompts with a tag. */
export const scheduleRoutes = (ctx: Context) =>
  new Elysia({ name: "schedules" })
    .post("/api/v1/prompts/schedule", async ({ request, body }) => scheduleTag(ctx, orgOf(request), body), {
      ...jsonBody(TagSchedule),
      ...operation("Prompts", "scheduleTag", "Schedule all prompts with a tag", {
        200: TagScheduled,
        ...errors(400, 413),
      }),
    })
    .get(
      "/api/v1/prompts/:promptId/slots",
      ({ request, params, query, set }) =>
        listAnswer(set, listSlots(ctx, orgOf(request), params.promptId, pageOf(query))),
      {
        params: Type.Object({ promptId: PathId("ID of the prompt") }),
        query: Type.Object(pageQuery),
        ...operation("Prompts", "listSlots", "List the scheduled slots of a prompt and their outcomes, newest first", {
          200: listOf(Slot, "Slots, newest first"),
          ...errors(400, 404),
        }),
      },
    );
