import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery, paginate } from "../http/paging.ts";
import { AgentLogin, AgentLoginInput } from "./login-schema.ts";
import { listLogins, removeLogin, setLogin } from "./logins.ts";

const path = Type.Object({ agent: Type.String({ description: "ID of the agent" }) });

export const loginRoutes = (ctx: Context) =>
  new Elysia({ name: "logins" })
    .get(
      "/api/v1/agent-logins",
      ({ request, query, set }) => listResponse(set, paginate(listLogins(ctx, orgOf(request)), pageOf(query))),
      {
        query: Type.Object(pageQuery),
        ...operation("Prompts", "listAgentLogins", "List the logins of coding agents", {
          200: listOf(AgentLogin, "Logins by agent"),
          ...errors(400),
        }),
      },
    )
    .put(
      "/api/v1/agent-logins/:agent",
      ({ request, params, body }) => setLogin(ctx, orgOf(request), params.agent, body.file),
      {
        params: path,
        ...jsonBody(AgentLoginInput),
        ...operation("Prompts", "setAgentLogin", "Store or replace the login of a coding agent, encrypted", {
          200: AgentLogin,
          ...errors(400, 413),
        }),
      },
    )
    .delete("/api/v1/agent-logins/:agent", ({ request, params }) => removeLogin(ctx, orgOf(request), params.agent), {
      params: path,
      ...operation("Prompts", "removeAgentLogin", "Remove the login of a coding agent", {
        200: AgentLogin,
        ...errors(404),
      }),
    });
