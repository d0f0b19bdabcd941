import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { listScheduledEvaluations } from "./scheduled-evaluations.ts";
import { ScheduledEvaluation, TagSchedule, TagScheduleResult } from "./schema.ts";
import { scheduleTag } from "./tag-schedules.ts";

export const scheduleRoutes = (ctx: Context) =>
  new Elysia({ name: "schedules" })
    .get(
      "/api/v1/prompts/:promptId/scheduled-evaluations",
      ({ request, params, query, set }) =>
        listResponse(set, listScheduledEvaluations(ctx, orgOf(request), params.promptId, pageOf(query))),
      {
        params: Type.Object({ promptId: PathId("ID of the prompt") }),
        query: Type.Object(pageQuery),
        ...operation(
          "Prompts",
          "listScheduledEvaluations",
          "List the scheduled evaluations of a prompt and their outcomes, newest first",
          { 200: listOf(ScheduledEvaluation, "Scheduled evaluations, newest first"), ...errors(400, 404) },
        ),
      },
    )
    .post("/api/v1/prompts/schedule", async ({ request, body }) => scheduleTag(ctx, orgOf(request), body), {
      ...jsonBody(TagSchedule),
      ...operation("Prompts", "scheduleTag", "Schedule all prompts with a tag", {
        200: TagScheduleResult,
        ...errors(400, 413),
      }),
    });
