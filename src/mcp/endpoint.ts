import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { createMcpHandler, isLegacyRequest, Server as ModernServer } from "@modelcontextprotocol/server";
import { version } from "../../package.json" with { type: "json" };
import type { Context } from "../context.ts";
import { AppError } from "../errors.ts";
import { readJson } from "../http/body.ts";
import type { Caller } from "../http/caller.ts";
import { type Call, invalidParams, RpcError, rpcCodes, rpcRefusal } from "./tool.ts";
import { fillPlaceholder, isToolResult, placeholder, toResultMembers, withText } from "./tool-result.ts";

/**
 * The requests, with the schemas of their parameters. Revision 2026-07-28 has the same schemas without the envelope, and its SDK removes the
 * envelope.
 */
const requests = {
  "tools/list": ListToolsRequestSchema,
  "tools/call": CallToolRequestSchema,
  "resources/list": ListResourcesRequestSchema,
  "resources/templates/list": ListResourceTemplatesRequestSchema,
  "resources/read": ReadResourceRequestSchema,
  "resources/subscribe": SubscribeRequestSchema,
  "resources/unsubscribe": UnsubscribeRequestSchema,
  "prompts/list": ListPromptsRequestSchema,
  "prompts/get": GetPromptRequestSchema,
  "completion/complete": CompleteRequestSchema,
};
type Method = keyof typeof requests;

const toMethod = (name: unknown): Method | undefined =>
  typeof name === "string" && Object.hasOwn(requests, name) ? (name as Method) : undefined;

/** Answers requests of one method. Throws RpcError. */
// biome-ignore lint/suspicious/noExplicitAny: the SDKs have checked the parameters of each method
export type Handler = (params: any, call: Call, sdk: unknown) => object | Promise<object>;

/** The methods of an endpoint: a handler for each one that its capabilities declare. */
export type Surface = {
  capabilities: Record<string, object>;
  instructions: string;
  handlers: Partial<Record<Method, Handler>>;
  /** Whether a request sends messages before its result. If so, the response is a stream, provided that the client supports streams. */
  isStreamed(method: Method, params: unknown): boolean;
};

export type Endpoint = ReturnType<typeof createEndpoint>;

/** An authorized request. */
type IncomingMessage = {
  caller: Caller;
  supportsStreams: boolean;
  incoming: Request;
  method: Method | undefined;
  /** Whether the response is one JSON object. If so, a tool's result is inserted as text at the end, because the SDKs take long to serialize it. */
  isSingle: boolean;
  /** The members of that result as JSON, set when the tool has returned it. Until then, the response contains a placeholder. */
  resultMembers?: string;
};

const serverInfo = { name: "evald", title: "evald", version };
/** The revisions with batches. Revision 2025-06-18 removed them. A request without the header uses the newest of these revisions. */
const batchRevisions = new Set(["2024-11-05", "2025-03-26"]);
const legacyRevisions = new Set([...batchRevisions, "2025-06-18", "2025-11-25"]);
const maxBatch = 20;
/** Open streams for notifications of changes. No such notification is ever sent, because lists don't change while the service runs. */
const maxSubscriptions = 16;

/** An MCP endpoint over Streamable HTTP without sessions: each request is self-contained and gets its own server. */
export function createEndpoint(ctx: Context, surface: Surface) {
  const { capabilities, instructions, handlers } = surface;
  const onError = (error: unknown) => ctx.log.debug({ err: error }, "MCP request rejected");
  /** The newer SDK creates the servers itself, and passes only the request. */
  const incomingMessages = new WeakMap<Request, IncomingMessage>();

  const modern = createMcpHandler(
    ({ requestInfo }) => {
      const message = requestInfo && incomingMessages.get(requestInfo);
      if (!message) throw new Error("A request reached the MCP server without going through the endpoint.");
      const server = new ModernServer(serverInfo, { capabilities, instructions });
      // Without a fallback handler, the SDK rejects the request with the HTTP status of an unknown method.
      if (!message.method || !handlers[message.method]) return server;
      server.fallbackRequestHandler = (request, context) => {
        const { _meta, notify, signal } = context.mcpReq;
        return answer(request, message, toCall(message, _meta, notify as Notify, signal), context);
      };
      return server;
    },
    { legacy: "reject", responseMode: "auto", onerror: onError, maxSubscriptions },
  );

  function legacyServer(message: IncomingMessage): Server {
    const server = new Server(serverInfo, { capabilities, instructions, jsonSchemaValidator: noValidator });
    server.onerror = onError;
    server.fallbackRequestHandler = (request, context) => {
      const { _meta, sendNotification, signal } = context;
      return answer(request, message, toCall(message, _meta, sendNotification as Notify, signal), context);
    };
    return server;
  }

  /** The fallback handler of both servers. For a registered method, they would validate each request twice, and each result once more. */
  async function answer(request: { method: string }, message: IncomingMessage, call: Call, sdk: unknown) {
    const method = toMethod(request.method);
    const handler = method && handlers[method];
    if (!handler) throw new RpcError(rpcCodes.methodNotFound, "Method not found");
    const parsed = requests[method].safeParse(request);
    if (!parsed.success) throw invalidParams(`Invalid params of ${method}: ${parsed.error.message}`);
    const result = await handler(parsed.data.params ?? {}, call, sdk);
    if (!isToolResult(result)) return result as Record<string, unknown>;
    if (!message.isSingle) return withText(result);
    message.resultMembers = toResultMembers(result);
    return placeholder;
  }

  /** Answers one POST of an authorized caller. Throws too_large, and forbidden for an Origin of another site. */
  async function handle(incoming: Request, caller: Caller): Promise<Response> {
    checkOrigin(ctx, incoming.headers.get("origin"));
    const body = await readMessage(incoming);
    if (body instanceof Response) return body;
    const revision = incoming.headers.get("mcp-protocol-version");
    const refusal = refuseBatch(body, revision);
    if (refusal) return refusal;
    const supportsStreams = incoming.headers.get("accept")?.includes("text/event-stream") ?? false;
    const request = withRequiredHeaders(incoming);
    const { method, params } = (body ?? {}) as { method?: unknown; params?: unknown };
    const knownMethod = toMethod(method);
    const isStreamed = supportsStreams && knownMethod !== undefined && surface.isStreamed(knownMethod, params);
    const message: IncomingMessage = {
      caller,
      supportsStreams,
      incoming,
      method: knownMethod,
      isSingle: !isStreamed && !Array.isArray(body),
    };
    const response = await respond(request, body, message, { isStreamed });
    return message.resultMembers === undefined ? response : fillPlaceholder(response, message.resultMembers);
  }

  async function respond(
    request: Request,
    body: unknown,
    message: IncomingMessage,
    { isStreamed }: { isStreamed: boolean },
  ): Promise<Response> {
    const isLegacy =
      isLegacyByShape(body, request.headers.get("mcp-protocol-version")) ?? (await isLegacyRequest(request, body));
    if (!isLegacy) {
      incomingMessages.set(request, message);
      return modern.fetch(request, { parsedBody: body });
    }
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !isStreamed });
    await legacyServer(message).connect(transport);
    const response = await transport.handleRequest(request, { parsedBody: withoutTask(body) });
    const isBatchOfOne = Array.isArray(body) && body.length === 1;
    return isBatchOfOne && !isStreamed ? asBatch(response) : response;
  }

  return { handle };
}

const versionKey = "io.modelcontextprotocol/protocolVersion";

/**
 * Whether a request is for the older SDK, judged by its shape. `isLegacyRequest` would also validate the whole request, which the server does anyway.
 * null: only `isLegacyRequest` can decide.
 */
function isLegacyByShape(body: unknown, revision: string | null): boolean | null {
  const { jsonrpc, id, method, params, ...rest } = (body ?? {}) as Record<string, unknown>;
  const hasId = typeof id === "string" || Number.isInteger(id);
  const isRequest = jsonrpc === "2.0" && hasId && toMethod(method) !== undefined && Object.keys(rest).length === 0;
  if (!isRequest || !isObject(params)) return null;
  const { _meta } = params;
  const hasLegacyRevision = revision === null || legacyRevisions.has(revision);
  if (_meta === undefined && hasLegacyRevision) return true;
  return isObject(_meta) && versionKey in _meta ? false : null;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

type Meta = { progressToken?: string | number };
type Notify = (notification: { method: string; params: Record<string, unknown> }) => Promise<void>;

function toCall(
  { caller, supportsStreams, incoming }: IncomingMessage,
  meta: Meta | undefined,
  notify: Notify,
  cancelled: AbortSignal,
): Call {
  const progressToken = supportsStreams ? meta?.progressToken : undefined;
  return {
    caller,
    // Created on first use, because most tools don't use it.
    get signal() {
      return AbortSignal.any([incoming.signal, cancelled]);
    },
    progress(progress, total, message) {
      if (progressToken === undefined) return;
      notify({ method: "notifications/progress", params: { progressToken, progress, total, message } }).catch(() => {});
    },
  };
}

/** Validation is only needed for requests to the client, and creating the default validator takes longer than a whole request. */
const noValidator = {
  getValidator: () => {
    throw new Error("This endpoint sends no requests to clients.");
  },
};

/** Adds the headers that announce JSON and streams. Both SDKs reject clients, such as curl, that don't send them. */
function withRequiredHeaders(incoming: Request): Request {
  const accept = incoming.headers.get("accept") ?? "";
  const acceptsBoth = accept.includes("application/json") && accept.includes("text/event-stream");
  if (acceptsBoth && incoming.headers.get("content-type") === "application/json") return incoming;
  const headers = new Headers(incoming.headers);
  headers.set("accept", "application/json, text/event-stream");
  headers.set("content-type", "application/json");
  return new Request(incoming.url, { method: "POST", headers, signal: incoming.signal });
}

/** Throws forbidden for a page of another site. Such a page must not use the browser of somebody who can reach this service. */
function checkOrigin({ baseUrl, config }: Context, origin: string | null): void {
  if (origin === null || origin === new URL(baseUrl()).origin || config.corsOrigins.includes(origin)) return;
  const hostname = URL.parse(origin)?.hostname ?? "";
  if (/^https?:/.test(origin) && ["localhost", "127.0.0.1", "[::1]"].includes(hostname)) return;
  throw new AppError("forbidden", `Requests from the origin ${JSON.stringify(origin.slice(0, 200))} are not allowed.`);
}

/** The parsed body of a request, or an error response if the body isn't JSON. */
async function readMessage(request: Request): Promise<unknown> {
  try {
    return (await readJson(request)) ?? null;
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "bad_request") throw error;
    return rpcRefusal(400, rpcCodes.parseError, `Parse error: ${error.detail}`);
  }
}

/** The error response to a batch that is invalid, or to any batch if the revision has none; null for any other body. */
function refuseBatch(body: unknown, revision: string | null): Response | null {
  if (!Array.isArray(body)) return null;
  const refuse = (reason: string) => rpcRefusal(400, rpcCodes.invalidRequest, `Invalid Request: ${reason}.`);
  if (revision !== null && !batchRevisions.has(revision))
    return refuse(`${revision} does not support batches. Send one message per request`);
  if (body.length === 0 || body.length > maxBatch) return refuse(`a batch must have 1 to ${maxBatch} messages`);
  const ids = body.flatMap((message) => message?.id ?? []);
  const duplicate = ids.find((id, i) => ids.indexOf(id) !== i);
  return duplicate === undefined ? null : refuse(`duplicate id ${JSON.stringify(duplicate)} in the batch`);
}

/** Puts the response to a batch of one message into an array, because the SDK returns it without one. */
async function asBatch(answer: Response): Promise<Response> {
  const text = await answer.text();
  if (!text.startsWith("{") || !answer.ok) return new Response(text || null, answer);
  return new Response(`[${text}]`, answer);
}

/** Removes the request for a task. There is no task support, so the call runs like any other. The SDK would reject the call. */
function withoutTask(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(withoutTask);
  const { method, params } = (body ?? {}) as { method?: unknown; params?: object };
  if (method !== "tools/call" || !params || !Object.hasOwn(params, "task")) return body;
  const { task: _, ...rest } = params as { task: unknown };
  return { ...(body as object), params: rest };
}
