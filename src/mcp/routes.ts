import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { type Caller, callerOf } from "../http/caller.ts";
import { ApiError, errors, operation } from "../http/operation.ts";
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

/** Revisions before 2025-06-18 have batches. */
const Messages = Type.Union([Message, Type.Array(Message)], { description: "One message, or a batch" });

const responses = {
  200: Messages,
  202: { description: "Accepted: a notification or a response has no response" },
  ...errors(413),
  400: Type.Union([ApiError, Message]),
};

/** `endpointOf`: returns the endpoint with the tools that a caller may use. Methods other than POST are rejected before routing. */
export const mcpRoutes = (endpointOf: (caller: Caller) => Promise<Endpoint>) =>
  new Elysia({ name: "mcp" }).post(
    mcpPath,
    async ({ request }) => {
      const caller = callerOf(request);
      return (await endpointOf(caller)).handle(request, caller);
    },
    {
      parse: "none",
      ...operation("MCP", "mcp", "Send a Model Context Protocol message", responses, {
        description:
          "Stateless Streamable HTTP: each request holds one message and gets one response. Supports protocol revisions up to 2025-11-25 and 2026-07-28. GET and DELETE return 405.",
        requestBody: { required: true, content: { "application/json": { schema: Messages } } },
      }),
    },
  );
