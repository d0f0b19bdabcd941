import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Caller } from "../auth/gate.ts";
import { errors, operation } from "../http/operation.ts";
import type { Endpoint } from "./endpoint.ts";

/** Path of the endpoint below the base URL. */
export const mcpPath = "/api/mcp";

const Message = Type.Object(
  { jsonrpc: Type.Literal("2.0") },
  {
    additionalProperties: true,
    title: "JsonRpcMessage",
    description: "JSON-RPC 2.0 message of the Model Context Protocol",
    examples: [
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_prompts", arguments: { limit: 5 } } },
    ],
  },
);

/** The MCP endpoint, created on first use. Methods other than POST are rejected before routing. */
export const mcpRoutes = (endpoint: () => Promise<Endpoint>, callerOf: (request: Request) => Caller) =>
  new Elysia({ name: "mcp" }).post(
    mcpPath,
    async ({ request }) => (await endpoint()).handle(request, callerOf(request)),
    {
      parse: "none",
      ...operation(
        "MCP",
        "mcp",
        "Send a Model Context Protocol message",
        { 200: Message, ...errors(400, 413) },
        {
          description:
            "Stateless Streamable HTTP: each request holds one message and gets one response. Supports protocol revisions up to 2025-11-25 and 2026-07-28. GET and DELETE return 405.",
          requestBody: { required: true, content: { "application/json": { schema: Message } } },
        },
      ),
    },
  );
