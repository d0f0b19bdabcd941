import http from "node:http";
import https from "node:https";
import type net from "node:net";
import { isIP } from "node:net";
import { pipeline, type Readable } from "node:stream";
import zlib from "node:zlib";
import { GuardError, toGuardError } from "./failure.ts";
import type { Agents } from "./tunnel-agents.ts";

/** An address of a host that passed the checks. `port`: the port to connect to, if it is not the URL's. */
export type CheckedAddress = { address: string; family: number; port?: number };

/** The host name of a URL, without the brackets of an IPv6 address. */
export const hostnameOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "");

/** The port of a URL; without one, the port of its protocol. */
export const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === "https:" ? 443 : 80);

/** The host and port to connect to for a URL. Addresses without a port are for the lookup of the host. */
export function toDestination(url: URL, addresses: CheckedAddress[] | null): { host: string; port: number } {
  const { address, port } = addresses?.[0] ?? {};
  if (address !== undefined && port !== undefined) return { host: address, port };
  return { host: hostnameOf(url), port: portOf(url) };
}

type ConnectionOptions = {
  url: URL;
  method: string;
  headers: Record<string, string>;
  /** Addresses that passed the checks; null: the proxy of `agent` resolves and checks them. */
  addresses: CheckedAddress[] | null;
  /** The unix socket to connect to in place of the host. */
  socketPath?: string | null;
  agent: http.Agent;
  connectMs: number;
};

export type RequestOptions = ConnectionOptions & {
  body?: string | undefined;
  maxBytes: number;
  /** Cuts a longer body instead of failing. */
  cutsBody?: boolean;
  /** Agents without keep-alive, to retry a request whose kept-alive connection was closed. */
  freshAgents: Agents;
  /** When it aborts, its reason becomes the error. */
  signal: AbortSignal;
  /** False: the body is not read. */
  wantsBody(status: number, headers: Headers): boolean;
};

export type Answer = { status: number; headers: Headers; body: Uint8Array };

const maxHeaderSize = 64 * 1024;

/** Sends one request to a checked address and reads the response, without redirects. Throws GuardError. */
export async function sendRequest(options: RequestOptions): Promise<Answer> {
  const { url, method, signal } = options;
  signal.throwIfAborted();
  let hasResponse = false;
  const request = openRequest(options);
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const stop = () => {
    request.destroy(signal.reason);
    // A request that waits for a connection reports the reason only once it has one.
    reject(signal.reason);
  };
  signal.addEventListener("abort", stop);
  try {
    request.once("response", resolve);
    request.on("error", reject);
    request.end(options.body);
    const response = await promise;
    hasResponse = true;
    response.on("error", () => {});
    const status = response.statusCode ?? 0;
    const headers = toHeaders(response.rawHeaders);
    if (!options.wantsBody(status, headers)) {
      request.destroy();
      return { status, headers, body: new Uint8Array() };
    }
    const body = await readBody(response, options);
    // Bun treats a body without a length as complete if its request was destroyed.
    signal.throwIfAborted();
    return { status, headers, body };
  } catch (error) {
    request.destroy();
    if (signal.aborted) throw signal.reason;
    // A host may close a kept-alive connection just as it is reused; that is not a failure of the host.
    const wasReuseFailure =
      request.reusedSocket && !hasResponse && isDisconnect(error) && (method === "GET" || method === "HEAD");
    if (wasReuseFailure) return sendRequest({ ...options, agent: options.freshAgents[url.protocol as keyof Agents] });
    const { kind, message } = toGuardError(error, url, hasResponse);
    throw new GuardError(kind, url.href, message);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

const isDisconnect = (error: unknown) => /^(ECONNRESET|EPIPE)$/.test(String((error as { code?: unknown }).code));

/** Starts a request to checked addresses; the caller writes the body and ends it. Emits a GuardError if no address accepts the connection. */
export function openRequest({
  url,
  method,
  headers,
  addresses,
  socketPath = null,
  agent,
  connectMs,
}: ConnectionOptions): http.ClientRequest {
  const isSecure = url.protocol === "https:";
  const hostname = hostnameOf(url);
  const request = (isSecure ? https : http).request({
    method,
    protocol: url.protocol,
    ...(socketPath === null ? toDestination(url, addresses) : { socketPath }),
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host },
    agent,
    maxHeaderSize,
    ...(addresses && { lookup: toLookup(addresses) }),
    ...(isSecure && { rejectUnauthorized: true, servername: isIP(hostname) ? "" : hostname }),
  });
  // The time to connect is limited. A proxy limits that itself, so there the time of the TLS handshake is limited.
  request.once("socket", (socket) => {
    const isHandshaking = isSecure && "secureConnecting" in socket && socket.secureConnecting === true;
    if (!socket.connecting && !isHandshaking) return;
    const timer = setTimeout(() => request.destroy(connectTimeout(url, connectMs)), connectMs);
    const clearTimer = () => clearTimeout(timer);
    request.once("close", clearTimer);
    socket.once(isSecure ? "secureConnect" : "connect", clearTimer);
  });
  return request;
}

/** The failure of a host that has not accepted a connection in time. */
export const connectTimeout = (url: URL, connectMs: number) =>
  new GuardError("timeout", url.href, `${url.host} did not accept the connection within ${connectMs / 1000} s`);

/** Answers lookups of `net.connect` with checked addresses. */
export const toLookup =
  (addresses: CheckedAddress[]): net.LookupFunction =>
  (_host, { all }, done) => {
    if (all) done(null, addresses);
    else done(null, addresses[0]!.address, addresses[0]!.family);
  };

function toHeaders(raw: string[]): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    try {
      headers.append(raw[i]!, raw[i + 1]!);
    } catch {
      // Headers that the Fetch standard does not allow are skipped.
    }
  }
  return headers;
}

async function readBody(response: http.IncomingMessage, options: RequestOptions): Promise<Uint8Array> {
  const { url, method, maxBytes, cutsBody } = options;
  const tooLarge = () =>
    new GuardError("too_large", url.href, `${url.host} sent a body larger than the limit of ${maxBytes} bytes`);
  const { "content-length": length, "content-encoding": encoding = "" } = response.headers;
  const isEmpty = method === "HEAD" || response.statusCode === 204 || response.statusCode === 304 || length === "0";
  const codings = (isEmpty ? "" : encoding)
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim())
    .filter((coding) => coding !== "" && coding !== "identity")
    .reverse();
  if (!isEmpty && codings.length === 0 && Number(length) > maxBytes && !cutsBody) throw tooLarge();
  const source = decode(response, codings, url);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of source as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > maxBytes && !cutsBody) throw tooLarge();
    chunks.push(chunk);
    // Leaving the loop closes the connection.
    if (size > maxBytes) break;
  }
  return new Uint8Array(Buffer.concat(chunks).subarray(0, maxBytes));
}

function decode(response: Readable, codings: string[], url: URL): Readable {
  if (codings.length === 0) return response;
  const protocolError = (text: string) => new GuardError("protocol", url.href, `${url.host} ${text}`);
  if (codings.length > 3) throw protocolError("sent a response with more than three content encodings");
  const decoders = codings.map((coding) => {
    if (coding === "gzip" || coding === "x-gzip" || coding === "deflate") return zlib.createUnzip();
    if (coding === "br") return zlib.createBrotliDecompress();
    if (coding === "zstd") return zlib.createZstdDecompress();
    throw protocolError(`sent a response in the encoding ${JSON.stringify(coding)}, which was not requested`);
  });
  // Errors reach the reader through the last stream. The callback keeps them from being thrown a second time.
  return pipeline([response, ...decoders], () => {}) as unknown as Readable;
}
