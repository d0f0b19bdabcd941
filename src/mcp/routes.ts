import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, operation } from "../api.ts";
import type { Caller } from "../auth/gate.ts";
import type { Endpoint } from "./endpoint.ts";

/** Where the endpoint lies under the base of the service. */
export const mcpPath = "/api/mcp";

const Message = Type.Object(
  { jsonrpc: Type.Literal("2.0") },
  {
    additionalProperties: true,
    title: "JsonRpcMessage",
    description: "A message of JSON-RPC 2.0, as the Model Context Protocol defines them",
    examples: [
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_prompts", arguments: { limit: 5 } } },
    ],
  },
);

/** The MCP endpoint, made when it is first asked. All but POST is refused before any route: there are no sessions. */
export const mcpRoutes = (endpoint: () => Promise<Endpoint>, callerOf: (request: Request) => Caller) =>
  new Elysia({ name: "mcp" }).post(
    mcpPath,
    async ({ request }) => (await endpoint()).handle(request, callerOf(request)),
    {
      parse: "none",
      ...operation(
        "MCP",
        "mcp",
        "Speak the Model Context Protocol",
        { 200: Message, ...errors(400, 413) },
        {
          description:
            "Streamable HTTP without sessions: each request holds one message, and is answered with one. Revisions up to 2025-11-25 and 2026-07-28. GET and DELETE are 405.",
          requestBody: { required: true, content: { "application/json": { schema: Message } } },
        },
      ),
    },
  );
