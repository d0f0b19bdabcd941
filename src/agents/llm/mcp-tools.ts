import http from "node:http";
import { Readable } from "node:stream";
import { jsonSchema } from "@ai-sdk/provider-utils";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ReadBuffer, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CallToolResultSchema, ListToolsResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { reasonOf } from "../../errors.ts";
import type { SandboxResources } from "../agent.ts";
import { shorten } from "../event-size.ts";
import { tailOf } from "../lines.ts";
import type { Relay } from "../relay/relay.ts";
import { runSandboxed, type SandboxProcess } from "../sandbox/sandbox.ts";
import type { McpServer, Task } from "../task.ts";
import { defineTool, type ToolResult, type ToolSpec } from "./tool.ts";

/** Package managers may download a server first. */
const startMs = 60_000;
const callMs = 120_000;
const maxTools = 100;
const descriptionChars = 2_000;
const resultChars = 20_000;
const stderrChars = 2_000;
/** `Response` refuses a body with these. */
const statusesWithoutBody = [204, 205, 304];
/** Providers don't allow longer names of tools. */
const maxNameChars = 64;

type McpToolOptions = {
  task: Task;
  sandbox: SandboxResources;
  openRelay: () => Promise<Relay>;
  version: string;
  signal: AbortSignal;
};
type Connection = { client: Client; close: () => Promise<void> };

type McpTools = {
  /** By the names that the model gets: `mcp__SERVER__TOOL`. */
  tools: Record<string, ToolSpec>;
  /** Servers whose tools are available. */
  available: string[];
  /** Servers that could not be used, each with the reason. */
  unavailable: string[];
  [Symbol.asyncDispose](): Promise<void>;
};

/**
 * Connects to the MCP servers of a workspace: remote ones through the proxy of the run, local ones as commands in a sandbox. A server that
 * fails is left out, as coding agents do.
 */
export async function openMcpTools(options: McpToolOptions): Promise<McpTools> {
  const { task, signal } = options;
  const connections: Connection[] = [];
  const mcp: Omit<McpTools, typeof Symbol.asyncDispose> = { tools: {}, available: [], unavailable: [] };
  /** Requests are recorded under the tool call that made them. */
  const currentCall: { id: string | null } = { id: null };
  for (const [name, server] of Object.entries(task.workspace?.mcpServers ?? {})) {
    try {
      const { client, close } = await connect(server, options, () => currentCall.id);
      connections.push({ client, close });
      for (const tool of await listTools(client)) {
        const id = `mcp__${name}__${tool.name}`.replaceAll(/[^\w-]/g, "_").slice(0, maxNameChars);
        if (Object.keys(mcp.tools).length < maxTools) mcp.tools[id] ??= toSpec(client, tool, currentCall);
      }
      mcp.available.push(name);
    } catch (error) {
      signal.throwIfAborted();
      mcp.unavailable.push(`the MCP server ${name} (${reasonOf(error).slice(0, 500)})`);
    }
  }
  return {
    ...mcp,
    async [Symbol.asyncDispose]() {
      await Promise.all(connections.map(({ close }) => close()));
    },
  };
}

type Tool = { name: string; description?: string | undefined; inputSchema: object };

/** The tools of a server. The library's own method would also check results, but agents show a model whatever a server returns. */
async function listTools(client: Client): Promise<Tool[]> {
  const tools: Tool[] = [];
  let cursor: string | undefined;
  do {
    const params = cursor === undefined ? {} : { cursor };
    const page = await client.request({ method: "tools/list", params }, ListToolsResultSchema, { timeout: startMs });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined && tools.length < maxTools);
  return tools;
}

const toSpec = (client: Client, { name, description = "", inputSchema }: Tool, currentCall: { id: string | null }) =>
  defineTool<Record<string, unknown>>({
    description: shorten(description, descriptionChars),
    input: jsonSchema(inputSchema),
    async run(input, { id, signal }): Promise<ToolResult> {
      currentCall.id = id;
      try {
        const request = { method: "tools/call" as const, params: { name, arguments: input } };
        const result = await client.request(request, CallToolResultSchema, { signal, timeout: callMs });
        const { content, structuredContent, isError } = result;
        const texts = content.map((part) => (part.type === "text" ? part.text : JSON.stringify(part)));
        const text = texts.length > 0 ? texts.join("\n") : JSON.stringify(structuredContent ?? null);
        const output = shorten(text, resultChars);
        return isError === true ? { ok: false, output: { message: output } } : { ok: true, output: { text: output } };
      } catch (error) {
        signal.throwIfAborted();
        return { ok: false, output: { message: reasonOf(error).slice(0, 500) } };
      } finally {
        currentCall.id = null;
      }
    },
  });

async function connect(server: McpServer, options: McpToolOptions, callId: () => string | null): Promise<Connection> {
  const client = new Client({ name: "evald", version: options.version });
  const { transport, stderr } =
    server.url === undefined
      ? await startLocalServer(server, options)
      : { transport: createRemoteTransport(server.url, options.sandbox.egress, callId), stderr: () => "" };
  const close = () => client.close().catch(() => {});
  try {
    await client.connect(transport, { timeout: startMs, signal: options.signal });
    return { client, close };
  } catch (error) {
    await close();
    const output = stderr();
    throw new Error([reasonOf(error).slice(0, 500), ...(output ? [`stderr: ${output}`] : [])].join("; "));
  }
}

/** A server on the network. The egress proxy decides whether it may be reached, and records the requests. */
const createRemoteTransport = (
  url: string,
  { path, token }: SandboxResources["egress"],
  callId: () => string | null,
): Transport =>
  new StreamableHTTPClientTransport(new URL(url), {
    fetch: (requestUrl, { method = "GET", headers, body, signal } = {}) =>
      new Promise<Response>((resolve, reject) => {
        const credentials = Buffer.from(`${callId() ?? ""}:${token}`).toString("base64");
        const { host, href } = new URL(requestUrl);
        const request = http.request({
          socketPath: path,
          path: href,
          method,
          agent: false,
          headers: { ...Object.fromEntries(new Headers(headers)), host, "proxy-authorization": `Basic ${credentials}` },
          ...(signal && { signal }),
        });
        request.on("error", reject);
        request.on("response", (response) => {
          const status = response.statusCode ?? 502;
          const responseHeaders = new Headers(
            Object.entries(response.headers).map(([name, value]) => [name, String(value)] as [string, string]),
          );
          const body = statusesWithoutBody.includes(status) ? null : Readable.toWeb(response);
          resolve(new Response(body as ReadableStream<Uint8Array> | null, { status, headers: responseHeaders }));
        });
        request.end(typeof body === "string" ? body : undefined);
      }),
  }) as Transport;

/** A command that speaks MCP over stdio, in a sandbox with the workspace. It runs until the session ends. */
async function startLocalServer({ command = "", args = [], env = {} }: McpServer, options: McpToolOptions) {
  const { task, sandbox, openRelay, signal } = options;
  const serverProcess = runSandboxed({
    argv: ["sh", "-c", 'mkdir -p "$HOME" && exec "$@"', "sh", command, ...args],
    workspace: sandbox.workspace,
    env: { HOME: "/workspace/.home", ...task.workspace?.env, ...env },
    sockets: { egress: (await openRelay()).toProxy() },
    limits: task.limits,
    signal,
  });
  return { transport: createStdioTransport(serverProcess), stderr: tailOf(serverProcess.stderr, stderrChars).text };
}

/** Messages over the stdio of a command. Servers may also print other lines, which are reported as errors. */
function createStdioTransport(serverProcess: SandboxProcess): Transport {
  const buffer = new ReadBuffer();
  const read = async () => {
    for await (const bytes of serverProcess.stdout) {
      buffer.append(Buffer.from(bytes));
      for (let message = nextMessage(buffer, transport); message !== null; message = nextMessage(buffer, transport))
        transport.onmessage?.(message);
    }
  };
  const transport: Transport = {
    async start() {
      read()
        .catch((error: unknown) => transport.onerror?.(toError(error)))
        .finally(() => transport.onclose?.());
    },
    async send(message) {
      serverProcess.stdin.write(serializeMessage(message));
      await serverProcess.stdin.flush();
    },
    async close() {
      serverProcess.kill();
      await serverProcess.ended;
    },
  };
  return transport;
}

/** The next complete message; null if there is none yet. */
function nextMessage(buffer: ReadBuffer, transport: Transport) {
  for (;;)
    try {
      return buffer.readMessage();
    } catch (error) {
      transport.onerror?.(toError(error));
    }
}

const toError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
