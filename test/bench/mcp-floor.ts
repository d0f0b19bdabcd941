// The floor of MCP: each SDK as its documentation shows it, with one tool that says one word. No key, no checks, no log. Prints its address.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { createMcpHandler, isLegacyRequest, Server as ModernServer } from "@modelcontextprotocol/server";

const info = { name: "floor", version: "1" };
const options = { capabilities: { tools: {} } };
const tools = [{ name: "get_report", inputSchema: { type: "object" as const } }];
const word = { content: [{ type: "text" as const, text: "word" }] };

const modern = createMcpHandler(
  () => {
    const server = new ModernServer(info, options);
    server.setRequestHandler("tools/list", () => ({ tools }));
    server.setRequestHandler("tools/call", () => word);
    return server;
  },
  { legacy: "reject" },
);

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const body = await request.json();
    if (!(await isLegacyRequest(request, body))) return modern.fetch(request, { parsedBody: body });
    const legacy = new Server(info, options);
    legacy.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
    legacy.setRequestHandler(CallToolRequestSchema, () => word);
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await legacy.connect(transport);
    return transport.handleRequest(request, { parsedBody: body });
  },
});
process.stderr.write(`listening on http://127.0.0.1:${server.port}\n`);
