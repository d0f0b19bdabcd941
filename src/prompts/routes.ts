import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { jsonBody } from "../http/body.ts";
import { orgOf } from "../http/caller.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listAnswer, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { AgentInfo } from "./agent-schema.ts";
import type { Prompts } from "./prompts.ts";
import { Prompt, PromptInput, PromptPatch, PromptSummary } from "./schema.ts";
import { TagSchedule, TagScheduled, type TagSchedules } from "./tag-schedules.ts";

type Parts = { prompts: Prompts; tagSchedules: TagSchedules };

const path = Type.Object({ promptId: PathId("ID of the prompt") });

export const promptRoutes = ({ prompts, tagSchedules }: Parts) =>
  new Elysia({ name: "prompts" })
    .get(
      "/api/v1/prompts",
      ({ request, query, set }) => {
        const includeArchived = query.includeArchived === "1";
        const { tag } = query;
        return listAnswer(set, prompts.listPrompts(orgOf(request), { includeArchived, tag, ...pageOf(query) }));
      },
      {
        query: Type.Object({
          includeArchived: Type.Optional(Type.Literal("1", { description: "1: include archived prompts" })),
          tag: Type.Optional(Type.String({ description: "Only prompts with this tag" })),
          ...pageQuery,
        }),
        ...operation("Prompts", "listPrompts", "List prompts, newest first", {
          200: listOf(PromptSummary, "Prompts, newest first"),
          ...errors(400),
        }),
      },
    )
    .get(
      "/api/v1/agents",
      ({ request, query, set }) => {
        orgOf(request);
        const { limit, offset } = pageOf(query);
        const all = prompts.listAgents();
        return listAnswer(set, { items: all.slice(offset, offset + limit), total: all.length });
      },
      {
        query: Type.Object(pageQuery),
        ...operation("Prompts", "listAgents", "List the agents of this server", {
          200: listOf(AgentInfo, "Agents, the default first"),
          ...errors(400),
        }),
      },
    )
    .post(
      "/api/v1/prompts",
      ({ request, body, set }) => {
        set.status = 201;
        return prompts.createPrompt(orgOf(request), body);
      },
      {
        ...jsonBody(PromptInput),
        ...operation("Prompts", "createPrompt", "Create a prompt", { 201: Prompt, ...errors(400, 413) }),
      },
    )
    .post("/api/v1/prompts/schedule", async ({ request, body }) => tagSchedules.scheduleTag(orgOf(request), body), {
      ...jsonBody(TagSchedule),
      ...operation("Prompts", "scheduleTag", "Schedule all prompts with a tag", {
        200: TagScheduled,
        ...errors(400, 413),
      }),
    })
    .get("/api/v1/prompts/:promptId", ({ request, params }) => prompts.getPrompt(orgOf(request), params.promptId), {
      params: path,
      ...operation("Prompts", "getPrompt", "Get a prompt", { 200: Prompt, ...errors(404) }),
    })
    .patch(
      "/api/v1/prompts/:promptId",
      ({ request, params, body }) => prompts.updatePrompt(orgOf(request), params.promptId, body),
      {
        params: path,
        ...jsonBody(PromptPatch),
        ...operation("Prompts", "updatePrompt", "Update, pause, archive or unarchive a prompt", {
          200: Prompt,
          ...errors(400, 404, 413),
        }),
      },
    );
