import { promises as dns } from "node:dns";
import http from "node:http";
import https from "node:https";
import type { AllowRule } from "../config/allow-rules.ts";
import { createAddressPolicy } from "./addresses.ts";
import { decodeText } from "./charset.ts";
import { type EditedAnswer, mayEdit, sendEdited } from "./edited-answer.ts";
import { type Edits, editsOf, type PageEdit } from "./edits.ts";
import { GuardError } from "./failure.ts";
import { type RequestOptions, sendRequest } from "./http-request.ts";
import { createMapping, type Mapping, toCallerText } from "./mapping.ts";
import { type Lookup, resolve } from "./resolve.ts";
import { createSlots } from "./slots.ts";
import { type Agents, createTunnelAgents, type TunnelProxy } from "./tunnel-agents.ts";
import { userAgent } from "./user-agent.ts";

export { GuardError, type GuardErrorKind } from "./failure.ts";

export type GuardedRequest = {
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  headers?: Record<string, string>;
  /** Resent after a redirect that keeps the method. */
  body?: string;
  signal?: AbortSignal;
  /** Time limit of the whole request with redirects and body. The wait for a free slot doesn't count. Default 30,000. */
  timeoutMs?: number;
  /** Limit of the decoded body. Default 5 MiB. */
  maxBytes?: number;
  /** Cuts a longer body at `maxBytes` instead of failing. */
  cutsBody?: boolean;
  /** Default true. At most 5 redirects, each checked. With `same_origin`, a redirect to another origin is returned as it is, without its body. */
  followRedirects?: boolean | "same_origin";
};

export type GuardedResponse = {
  /** The final URL without fragment. It has the caller's host names, not the host names of the urlMap. */
  url: string;
  /** The URL that was actually requested last; null if urlMap did not change it. */
  mappedUrl: string | null;
  status: number;
  headers: Headers;
  body: Uint8Array;
  /** The URLs that redirected, from the first on, with the caller's host names. */
  redirects: string[];
  /** Duration of the whole request, without the wait for a free slot. */
  ms: number;
  /** What the edits of the run did to it; absent: it is what the site sent. */
  edit?: PageEdit;
};

export type Guard = {
  /** Sends a request. A response with any status is returned. Throws GuardError if there is no response. */
  request(url: string, init?: GuardedRequest): Promise<GuardedResponse>;
  /**
   * Decodes a body by its byte order mark, charset parameter or meta tag, else as UTF-8. In the response of a mapped host, the URLs of mapped hosts
   * are translated back to the caller's.
   */
  text(response: GuardedResponse): string;
  /** The URL to which the urlMap maps another URL; null if none. */
  findMappedUrl(url: string): string | null;
};

export type GuardOptions = {
  /** Private addresses that the operator allows. */
  allow: readonly AllowRule[];
  urlMap?: Record<string, string>;
  edits?: Edits | undefined;
  /** Default true. False for requests that must not fail because a host closed an idle connection. */
  keepsAlive?: boolean;
  /** Concurrent requests per host and port. Default 4. */
  maxPerHost?: number;
  now: () => number;
  /** Resolves a host name to all its addresses. Default: the system resolver. */
  lookup?: Lookup;
  /** A proxy that resolves, checks and connects hosts in place of this process, which then needs no network. It has its own `allow` and `lookup`. */
  proxy?: TunnelProxy | null | undefined;
};

export const maxRedirects = 5;
const keepAliveOptions = { keepAlive: true, timeout: 15_000 };
// zstd is not requested, because Bun accepts truncated bodies. Neither is deflate, because some servers omit its zlib wrapper.
const acceptEncoding = "gzip, br";
const connectMs = 10_000;
const defaultTimeoutMs = 30_000;
const defaultMaxBytes = 5 * 1024 * 1024;
const redirectStatuses = [301, 302, 303, 307, 308];
/** Headers that the client sets itself, in lower case. */
export const managedHeaders = [
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "te",
  "upgrade",
  "expect",
  "accept-encoding",
];
/** Headers that hold no credentials. All other headers may hold some, because APIs use their own names. */
const harmlessHeaders = "accept accept-encoding accept-language content-type range user-agent".split(" ");

/**
 * The only client for URLs supplied by users. It accepts only http(s) without user info, and only ports 80 and 443 unless others are allowed. It
 * checks every resolved address and every redirect. Time, size and decompression are limited.
 */
export function createGuard(options: GuardOptions): Guard {
  const { now, proxy = null, lookup = (hostname) => dns.lookup(hostname, { all: true }) } = options;
  const policy = createAddressPolicy(options.allow);
  const mapping = createMapping(options.urlMap ?? {});
  const edits = editsOf(options);
  const slots = createSlots(options.maxPerHost ?? 4);
  // The agents are not shared, because a kept-alive connection was checked only against this guard's rules.
  const agents = createAgents(proxy, options.keepsAlive === false ? {} : keepAliveOptions);
  const freshAgents = createAgents(proxy, {});

  /** Sends one request within `leftMs`, the part of the time limit that earlier requests left. It doesn't follow a redirect. */
  function send({ method, url, headers, body }: Outgoing, realUrl: URL, init: GuardedRequest, leftMs: number) {
    const { signal: callerSignal, timeoutMs = defaultTimeoutMs, maxBytes = defaultMaxBytes, cutsBody = false } = init;
    return withTimeout({ callerSignal, leftMs, timeoutMs, url }, async (signal): Promise<EditedAnswer> => {
      const addresses = proxy ? null : await resolve(realUrl, policy, lookup, signal);
      // A request that may not be sent twice gets a new connection, because a host may close a kept-alive one at that moment.
      const isRepeatable = method === "GET" || method === "HEAD";
      const agent = (isRepeatable ? agents : freshAgents)[realUrl.protocol as keyof Agents];
      const wantsBody = (status: number, received: Headers) => findLocation(init, status, received) === null;
      const content = { url: realUrl, method, headers, body };
      const connection = { addresses, agent, freshAgents, connectMs };
      const request: RequestOptions = { ...content, ...connection, wantsBody, maxBytes, cutsBody, signal };
      return edits && mayEdit(edits, method, url) ? sendEdited(edits, url, mapping, request) : sendRequest(request);
    });
  }

  async function request(urlText: string, init: GuardedRequest = {}): Promise<GuardedResponse> {
    const { method = "GET", timeoutMs = defaultTimeoutMs } = init;
    const redirects: string[] = [];
    const requestedTargets = new Set<string>();
    const headers = toRequestHeaders(init.headers ?? {});
    let outgoing: Outgoing = { method, url: parseUrl(urlText), headers, body: init.body };
    let ms = 0;
    for (;;) {
      const { url } = outgoing;
      const realUrl = mapping.toMappedUrl(url) ?? url;
      const release = await slots.take(realUrl.origin, init.signal, () => toAbortError(url));
      const startedAt = now();
      const response = await send(outgoing, realUrl, init, timeoutMs - ms).finally(release);
      ms += now() - startedAt;
      const next = findNextUrl(response, init, mapping, { url, realUrl });
      if (next === null) {
        const mappedUrl = mapping.toMappedUrlWithoutTokens(url)?.href ?? null;
        return { url: url.href, mappedUrl, ...response, redirects, ms };
      }
      redirects.push(url.href);
      requestedTargets.add(targetOf(outgoing));
      outgoing = toRedirected(outgoing, response.status, next);
      if (requestedTargets.has(targetOf(outgoing))) throw redirectLoop(next);
      if (redirects.length > maxRedirects) throw tooManyRedirects(next);
    }
  }

  return {
    request,
    text({ url, mappedUrl, body, headers }) {
      const text = decodeText(body, headers.get("content-type"));
      return mappedUrl === null ? text : toCallerText(mapping, text, new URL(url));
    },
    findMappedUrl: (url) => (URL.canParse(url) ? (mapping.toMappedUrlWithoutTokens(new URL(url))?.href ?? null) : null),
  };
}

/** A request as it is sent: `url` with the caller's host names. */
type Outgoing = { method: string; url: URL; headers: Record<string, string>; body: string | undefined };

const targetOf = ({ method, url }: Outgoing): string => `${method} ${url.href}`;

/** Where a response redirects to; null: nowhere, or redirects are not followed. */
const findLocation = ({ followRedirects = true }: GuardedRequest, status: number, headers: Headers): string | null =>
  followRedirects && redirectStatuses.includes(status) ? headers.get("location") : null;

/**
 * The URL that a response redirects to, with the caller's host names. null: the response is final. Throws GuardError if the URL may not be requested.
 */
function findNextUrl(
  { status, headers }: EditedAnswer,
  init: GuardedRequest,
  mapping: Mapping,
  { url, realUrl }: { url: URL; realUrl: URL },
): URL | null {
  const location = findLocation(init, status, headers);
  if (location === null) return null;
  const next = toAllowedUrl(mapping.toCallerUrl(resolveRedirect(location, realUrl), url));
  return init.followRedirects === "same_origin" && next.origin !== url.origin ? null : next;
}

const redirectLoop = ({ host, href }: URL) =>
  new GuardError("redirect", href, `${host} redirects in a loop back to ${href}`);

const tooManyRedirects = ({ host, href }: URL) =>
  new GuardError("redirect", href, `More than ${maxRedirects} redirects, the last one to ${host}`);

/** The request after a redirect, as browsers send it. 303 turns every method except HEAD into GET. 301 and 302 turn only POST into GET. */
function toRedirected({ method, url, headers, body }: Outgoing, status: number, next: URL): Outgoing {
  const becomesGet = method !== "HEAD" && (status === 303 || (status < 303 && method === "POST"));
  return {
    method: becomesGet ? "GET" : method,
    url: next,
    headers: next.origin === url.origin ? headers : selectHeaders(headers, (name) => harmlessHeaders.includes(name)),
    body: becomesGet ? undefined : body,
  };
}

const createAgents = (proxy: TunnelProxy | null, options: http.AgentOptions): Agents =>
  proxy ? createTunnelAgents(proxy, options) : { "http:": new http.Agent(options), "https:": new https.Agent(options) };

function parseUrl(text: string): URL {
  if (!URL.canParse(text)) throw new GuardError("refused", text, `${JSON.stringify(text)} is not a valid URL`);
  return toAllowedUrl(new URL(text));
}

/** A URL without its fragment. Throws GuardError if it may not be requested. */
function toAllowedUrl(url: URL): URL {
  url.hash = "";
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new GuardError("refused", url.href, `${url.href} is a ${url.protocol} URL; only http and https are allowed`);
  if (url.username || url.password)
    throw new GuardError(
      "refused",
      url.href,
      `The URL of ${url.host} contains a user name or password, which is not allowed`,
    );
  return url;
}

/** Resolves a redirect location. Most servers send UTF-8, which Node decodes as Latin-1. */
function resolveRedirect(location: string, from: URL): URL {
  const text = Buffer.from(location, "latin1").toString("utf8");
  const target = text.includes("\ufffd") ? location : text;
  if (!URL.canParse(target, from.href))
    throw new GuardError(
      "redirect",
      from.href,
      `${from.host} redirects to ${JSON.stringify(target)}, which is not a valid URL`,
    );
  return new URL(target, from.href);
}

/** `leftMs`: the part of `timeoutMs` that is left. */
type Timeout = { callerSignal: AbortSignal | undefined; leftMs: number; timeoutMs: number; url: URL };

/** Runs `work` with a signal. The signal aborts with a GuardError when the caller aborts or `leftMs` is over. */
async function withTimeout<T>(
  { callerSignal, leftMs, timeoutMs, url }: Timeout,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort(toAbortError(url));
  if (callerSignal?.aborted) abort();
  const timer = setTimeout(() => {
    controller.abort(
      new GuardError("timeout", url.href, `${url.host} did not respond completely within ${timeoutMs / 1000} s`),
    );
  }, leftMs);
  callerSignal?.addEventListener("abort", abort);
  try {
    return await work(controller.signal);
  } catch (error) {
    throw error instanceof GuardError ? toCallerError(error, url) : error;
  } finally {
    clearTimeout(timer);
    callerSignal?.removeEventListener("abort", abort);
  }
}

/** Reports an error at a mapped host under the URL that the caller requested. */
function toCallerError(error: GuardError, url: URL): GuardError {
  if (error.url === url.href) return error;
  return new GuardError(error.kind, url.href, `${error.message} (urlMap maps ${url.host} to it)`, error.address);
}

const toAbortError = (url: URL) => new GuardError("aborted", url.href, `The request to ${url.host} was cancelled`);

function toRequestHeaders(headers: Record<string, string>): Record<string, string> {
  const lowerCased = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    accept: "*/*",
    "user-agent": userAgent,
    ...selectHeaders(lowerCased, (name) => !managedHeaders.includes(name)),
    "accept-encoding": acceptEncoding,
  };
}

const selectHeaders = (headers: Record<string, string>, isSelected: (name: string) => boolean) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => isSelected(name)));
