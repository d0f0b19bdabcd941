import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, listOf, type OrgOf, operation } from "../api.ts";
import { jsonBody } from "../body.ts";
import { pageQuery } from "../paging.ts";
import { PathId } from "../schema.ts";
import type { Prompts } from "./prompts.ts";
import { Prompt, PromptInput, PromptPatch, PromptSummary } from "./schema.ts";

const path = Type.Object({ promptId: PathId("uuid of the prompt") });

export const promptRoutes = (prompts: Prompts, orgOf: OrgOf) =>
  new Elysia({ name: "prompts" })
    .get(
      "/api/v1/prompts",
      ({ request, query, set }) => {
        const { includeArchived, limit = 100, offset } = query;
        const { items, total } = prompts.listPrompts(orgOf(request), {
          includeArchived: includeArchived === "1",
          limit,
          offset: offset ?? 0,
        });
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        query: Type.Object({
          includeArchived: Type.Optional(Type.Literal("1", { description: "Archived prompts too" })),
          ...pageQuery,
        }),
        ...operation("Prompts", "listPrompts", "List the prompts of the organisation, newest first", {
          200: listOf(PromptSummary, "Prompts, newest first"),
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
    .get("/api/v1/prompts/:promptId", ({ request, params }) => prompts.getPrompt(orgOf(request), params.promptId), {
      params: path,
      ...operation("Prompts", "getPrompt", "Get one prompt", { 200: Prompt, ...errors(404) }),
    })
    .patch(
      "/api/v1/prompts/:promptId",
      ({ request, params, body }) => prompts.updatePrompt(orgOf(request), params.promptId, body),
      {
        params: path,
        ...jsonBody(PromptPatch),
        ...operation("Prompts", "updatePrompt", "Change a prompt, pause it, archive it or bring it back", {
          200: Prompt,
          ...errors(400, 404, 413),
        }),
      },
    );
