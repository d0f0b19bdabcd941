import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery, paginate } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { AgentInfo } from "./agent-schema.ts";
import { listPrompts } from "./lists.ts";
import { createPrompt, getPrompt, listAgents, updatePrompt } from "./prompts.ts";
import { Prompt, PromptInput, PromptPatch, PromptSummary } from "./schema.ts";

const path = Type.Object({ promptId: PathId("ID of the prompt") });

export const promptRoutes = (ctx: Context) =>
  new Elysia({ name: "prompts" })
    .get(
      "/api/v1/prompts",
      ({ request, query, set }) => {
        const includeArchived = query.includeArchived === "1";
        const { tag } = query;
        return listResponse(set, listPrompts(ctx, orgOf(request), { includeArchived, tag, ...pageOf(query) }));
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
        // The agents belong to the server. This call only checks the scope of the key.
        orgOf(request);
        return listResponse(set, paginate(listAgents(ctx), pageOf(query)));
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
        return createPrompt(ctx, orgOf(request), body);
      },
      {
        ...jsonBody(PromptInput),
        ...operation("Prompts", "createPrompt", "Create a prompt", { 201: Prompt, ...errors(400, 413) }),
      },
    )
    .get("/api/v1/prompts/:promptId", ({ request, params }) => getPrompt(ctx, orgOf(request), params.promptId), {
      params: path,
      ...operation("Prompts", "getPrompt", "Get a prompt", { 200: Prompt, ...errors(404) }),
    })
    .patch(
      "/api/v1/prompts/:promptId",
      ({ request, params, body }) => updatePrompt(ctx, orgOf(request), params.promptId, body),
      {
        params: path,
        ...jsonBody(PromptPatch),
        ...operation("Prompts", "updatePrompt", "Update, pause, archive or unarchive a prompt", {
          200: Prompt,
          ...errors(400, 404, 413),
        }),
      },
    );
