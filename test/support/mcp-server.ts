import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { z } from "zod";

type FurtherTool = { name: string; description: string; annotations?: { readOnlyHint: boolean } };

/** Serves a stateless MCP server with the tool lookup, and further ones that do nothing, at /mcp. */
export function serveMcp(furtherTools: FurtherTool[] = []) {
  const calls: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      if (new URL(request.url).pathname !== "/mcp") return new Response("not found", { status: 404 });
      if (request.method !== "POST") return new Response("use POST", { status: 405 });
      const mcp = new McpServer({ name: "acme-remote", version: "1.0.0" });
      mcp.registerTool("lookup", { description: "Looks up a name.", inputSchema: { name: z.string() } }, ({ name }) => {
        calls.push(name);
        return { content: [{ type: "text", text: `remote ${name}` }] };
      });
      for (const { name, ...tool } of furtherTools) mcp.registerTool(name, tool, () => ({ content: [] }));
      const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: undefined });
      await mcp.connect(transport);
      return transport.handleRequest(request);
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, calls, stop: () => server.stop(true) };
}
