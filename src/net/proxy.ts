import { chmodSync } from "node:fs";
import http from "node:http";
import type net from "node:net";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type ChunkHook, splice } from "./tunnel.ts";

/**
 * Who sent a request, and where its response is written. A request for another protocol has its bare connection, with the bytes that followed the
 * request.
 */
export type Client = { request: http.IncomingMessage } & (
  | { response: http.ServerResponse }
  | { socket: net.Socket; head: Buffer }
);

/** Where the response to a request is written. */
export type Output = { response: http.ServerResponse } | { socket: net.Socket };

type Handlers = {
  onRequest: (client: Client) => void;
  onTunnel: (request: http.IncomingMessage, socket: net.Socket, head: Buffer) => void;
};

type ProxyServer = {
  /** Accepts a connection on which requests arrive. */
  accept(socket: net.Socket): void;
  /** Disconnects all clients. */
  close(): Promise<void>;
};

/** Serves requests and tunnels on a unix socket that only this user can access. */
export async function serveProxy(socketPath: string, { onRequest, onTunnel }: Handlers): Promise<ProxyServer> {
  const server = http.createServer({ maxHeaderSize: 64 * 1024 }, (request, response) =>
    onRequest({ request, response }),
  );
  server.on("upgrade", (request: http.IncomingMessage, socket: net.Socket, head: Buffer) => {
    socket.on("error", () => {});
    // The server can't tell where the body ends.
    if (hasBody(request)) refuse({ socket }, 400, "A request that changes the protocol cannot have a body.");
    else onRequest({ request, socket, head });
  });
  server.on("connect", (request: http.IncomingMessage, socket: net.Socket, head: Buffer) => {
    socket.on("error", () => {});
    onTunnel(request, socket, head);
  });
  server.requestTimeout = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(socketPath, resolve);
  await promise;
  chmodSync(socketPath, 0o600);
  return {
    accept: (socket) => void server.emit("connection", socket),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}

type ForwardHooks = {
  /** When it aborts, its reason ends the exchange. */
  signal: AbortSignal;
  /** Called with the response before its body is read. Returns the headers for the client. */
  onResponse: (response: http.IncomingMessage) => http.OutgoingHttpHeaders;
  /** Called with the chunks of both bodies, and everything that follows a change of the protocol. */
  onChunk?: ChunkHook;
};

/**
 * Sends the body of a request upstream, and the response back, no faster than either side reads. Resolves when the response is complete. Throws the
 * reason of the signal, or the error of a connection.
 */
export async function forward(client: Client, upstream: http.ClientRequest, hooks: ForwardHooks): Promise<void> {
  const { signal, onResponse, onChunk } = hooks;
  const { promise, resolve, reject } = Promise.withResolvers<UpstreamAnswer>();
  const onAbort = () => {
    upstream.destroy(signal.reason);
    // A request that waits for a connection reports the reason only once it has one.
    reject(signal.reason);
  };
  upstream.once("response", (response) => resolve({ response, socket: null, head: Buffer.alloc(0) }));
  upstream.once("upgrade", (response, socket, head) => resolve({ response, socket: socket as net.Socket, head }));
  upstream.on("error", reject);
  signal.addEventListener("abort", onAbort);
  try {
    signal.throwIfAborted();
    if (hasBody(client.request)) pipeline(client.request, createChunkMeter("out", hooks), upstream).catch(reject);
    else upstream.end();
    const { response, socket, head } = await promise;
    const headers = onResponse(response);
    if ("response" in client) {
      client.response.writeHead(response.statusCode ?? 502, headers);
      await pipeline(response, createChunkMeter("in", hooks), client.response, { signal });
    } else if (socket) {
      client.socket.write(toHead(response, { ...headers, connection: "upgrade", upgrade: response.headers.upgrade }));
      await splice(client.socket, socket, {
        clientHead: client.head,
        serverHead: head,
        signal,
        ...(onChunk && { onChunk }),
      });
    } else {
      client.socket.write(toHead(response, { ...headers, connection: "close" }));
      await pipeline(response, createChunkMeter("in", hooks), client.socket, { signal });
    }
    // Bun treats a body without a length as complete if its request was destroyed.
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", onAbort);
    upstream.destroy();
  }
}

/** `socket`: the connection, if the server accepted another protocol. `head`: what the server has already sent on it. */
type UpstreamAnswer = { response: http.IncomingMessage; socket: net.Socket | null; head: Buffer };

type OwnServerHooks = {
  /** Called with the response before its body is read. */
  onResponse?: (response: http.IncomingMessage) => void;
  /** Answers a client that got no response. */
  onFailure: (error: Error) => void;
};

/** Forwards a request to a server of our own, until the client disconnects. A response that breaks off disconnects the client. */
export async function forwardToOwnServer(
  client: Client,
  upstream: http.ClientRequest,
  hooks: OwnServerHooks,
): Promise<void> {
  const controller = new AbortController();
  let isAnswered = false;
  watchClient(
    client,
    () => isAnswered,
    () => controller.abort(),
  );
  const onResponse = (response: http.IncomingMessage) => {
    isAnswered = true;
    hooks.onResponse?.(response);
    return endToEndHeaders(response.headers);
  };
  try {
    await forward(client, upstream, { signal: controller.signal, onResponse });
  } catch (error) {
    if (isAnswered) disconnect(client);
    else hooks.onFailure(error as Error);
  }
}

const hasBody = ({ headers }: http.IncomingMessage): boolean =>
  Number(headers["content-length"]) > 0 || headers["transfer-encoding"] !== undefined;

function createChunkMeter(direction: "in" | "out", { signal, onChunk = () => {} }: ForwardHooks): Transform {
  return new Transform({
    transform(chunk, _encoding, done) {
      onChunk(chunk, direction);
      if (!signal.aborted) done(null, chunk);
    },
  });
}

const connectionHeaders =
  "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade expect host".split(
    " ",
  );

/** The headers of a message without those that concern only one connection (hop-by-hop headers). */
export function endToEndHeaders(headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
  const namedHeaders = (headers.connection ?? "").toLowerCase().split(/\s*,\s*/);
  const droppedHeaders = new Set([...connectionHeaders, ...namedHeaders]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !droppedHeaders.has(name)));
}

/** The headers that a request needs on its next connection: how its body ends, and the protocol that it asks for. */
export function framingHeaders(client: Client): Record<string, string> {
  const { headers } = client.request;
  return {
    ...(headers["transfer-encoding"] !== undefined && { "transfer-encoding": "chunked" }),
    ...("socket" in client && { connection: "upgrade", upgrade: headers.upgrade ?? "" }),
  };
}

/** Calls `onDisconnect` if the client disconnects too early: before the end of its response or, without a response object, before its start. */
export function watchClient(client: Output, isAnswered: () => boolean, onDisconnect: () => void): void {
  outputOf(client).once("close", () => {
    const isDone = "response" in client ? client.response.writableFinished : isAnswered();
    if (!isDone) onDisconnect();
  });
}

/** Disconnects a client whose response has started. */
export const disconnect = (client: Output): void => void outputOf(client).destroy();

const outputOf = (client: Output) => ("response" in client ? client.response : client.socket);

/** Answers a request with a text, by default a plain one, and closes its connection. */
export function refuse(client: Output, status: number, text: string, headers: Record<string, string> = {}): void {
  const body = `${text}\n`;
  const allHeaders = { "content-type": "text/plain; charset=utf-8", ...headers, connection: "close" };
  if ("response" in client) {
    client.response.writeHead(status, allHeaders).end(body);
    return;
  }
  const length = { "content-length": Buffer.byteLength(body) };
  if (client.socket.destroyed) return;
  client.socket.end(
    toHead({ statusCode: status, statusMessage: http.STATUS_CODES[status] }, { ...allHeaders, ...length }) + body,
  );
}

/** The status line and headers of a response, for a connection that has no response object. */
function toHead(
  { statusCode, statusMessage }: { statusCode?: number | undefined; statusMessage?: string | undefined },
  headers: http.OutgoingHttpHeaders,
): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((each) => `${name}: ${each}\r\n`),
  );
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join("")}\r\n`;
}
