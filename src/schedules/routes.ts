import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { listScheduledEvaluations, listScheduleExceptions } from "./scheduled-evaluations.ts";
import { getSchedule, getScheduleState, pauseSchedules, resumeSchedules } from "./schedules.ts";
import {
  Schedule,
  ScheduledEvaluation,
  ScheduleException,
  ScheduleState,
  TagSchedule,
  TagScheduleResult,
} from "./schema.ts";
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
    .get(
      "/api/v1/prompts/:promptId/schedule",
      ({ request, params }) => getSchedule(ctx, orgOf(request), params.promptId),
      {
        params: Type.Object({ promptId: PathId("ID of the prompt") }),
        ...operation("Prompts", "getSchedule", "Get the schedule of a prompt with its next 20 times", {
          200: Schedule,
          ...errors(404),
        }),
      },
    )
    .get(
      "/api/v1/schedules/exceptions",
      ({ request, query, set }) => listResponse(set, listScheduleExceptions(ctx, orgOf(request), pageOf(query))),
      {
        query: Type.Object(pageQuery),
        ...operation(
          "Prompts",
          "listScheduleExceptions",
          "List the scheduled evaluations that were missed, skipped or failed, wait, or ran late, newest first",
          { 200: listOf(ScheduleException, "Scheduled evaluations, newest first"), ...errors(400) },
        ),
      },
    )
    .get("/api/v1/schedules", ({ request }) => getScheduleState(ctx, orgOf(request)), {
      ...operation("Prompts", "getScheduleState", "Get whether the schedules of the organization are paused", {
        200: ScheduleState,
        ...errors(),
      }),
    })
    .post("/api/v1/schedules/pause", ({ request }) => pauseSchedules(ctx, orgOf(request)), {
      ...operation("Prompts", "pauseSchedules", "Pause all schedules of the organization", {
        200: ScheduleState,
        ...errors(),
      }),
    })
    .post("/api/v1/schedules/resume", ({ request }) => resumeSchedules(ctx, orgOf(request)), {
      ...operation(
        "Prompts",
        "resumeSchedules",
        "Resume all schedules of the organization",
        { 200: ScheduleState, ...errors() },
        { description: "From now on: what would have been due in between does not run." },
      ),
    })
    .post("/api/v1/prompts/schedule", async ({ request, body }) => scheduleTag(ctx, orgOf(request), body), {
      ...jsonBody(TagSchedule),
      ...operation("Prompts", "scheduleTag", "Schedule all prompts with a tag", {
        200: TagScheduleResult,
        ...errors(400, 413),
      }),
    });
