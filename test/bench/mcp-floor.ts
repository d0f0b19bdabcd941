// The floor of MCP: each SDK as its documentation shows it, with one tool and no scopes, redaction or log. With a data folder that also holds
// the reports, it checks the key as the floor of REST does and answers the same reports as evald, from memory. Without, it says one word and
// checks nothing. Prints its address.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { createMcpHandler, isLegacyRequest, Server as ModernServer } from "@modelcontextprotocol/server";
import { isKeyShaped } from "../../src/auth/keys.ts";

type Result = { content: { type: "text"; text: string }[]; structuredContent?: Record<string, unknown> };
type Call = { params: { arguments?: Record<string, unknown> } };

const word: Result = { content: [{ type: "text", text: "word" }] };

async function reader(folder: string) {
  const reports = new Map<string, Record<string, unknown>>(
    Object.entries(await Bun.file(join(folder, "reports.json")).json()),
  );
  const db = new Database(join(folder, "evald.db"));
  const keyRow = db.prepare<{ org_id: string }, [Uint8Array]>(
    "select org_id, expires_at from api_keys where hash = ? and revoked_at is null",
  );
  return ({ params }: Call, request: Request): Result => {
    const key = request.headers.get("authorization")?.slice(7) ?? "";
    const row = isKeyShaped(key) && keyRow.get(new Bun.CryptoHasher("sha256").update(key).digest());
    const report = row ? reports.get(String(params.arguments?.slug)) : undefined;
    if (!report) throw new Error("no such report");
    return { content: [{ type: "text", text: JSON.stringify(report) }], structuredContent: report };
  };
}

const folder = process.argv[2];
const answer = folder === undefined ? () => word : await reader(folder);

const info = { name: "floor", version: "1" };
const options = { capabilities: { tools: {} } };
const tools = [{ name: "get_report", inputSchema: { type: "object" as const } }];

const modern = createMcpHandler(
  ({ requestInfo }) => {
    const server = new ModernServer(info, options);
    server.setRequestHandler("tools/list", () => ({ tools }));
    server.setRequestHandler("tools/call", (call) => answer(call, requestInfo as Request));
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
    legacy.setRequestHandler(CallToolRequestSchema, (call) => answer(call, request));
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await legacy.connect(transport);
    return transport.handleRequest(request, { parsedBody: body });
  },
});
process.stderr.write(`listening on http://127.0.0.1:${server.port}\n`);
