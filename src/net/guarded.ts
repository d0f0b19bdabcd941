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
  /** For the whole request with redirects and body, without the wait for a free slot. Default 30,000. */
  timeoutMs?: number;
  /** Limit of the decoded body. Default 5 MiB. */
  maxBytes?: number;
  /** Cuts a longer body at `maxBytes` instead of failing. */
  cutsBody?: boolean;
  /** Default true. At most 5 redirects, each checked. `same_origin`: one to another origin is returned as it is, without its body. */
  followRedirects?: boolean | "same_origin";
};

export type GuardedResponse = {
  /** The final URL without fragment, with the caller's host names rather than those of the urlMap. */
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
   * Decodes a body by its byte order mark, charset parameter or meta tag, else as UTF-8. In what a mapped host sent, the
   * URLs of mapped hosts become those of the caller.
   */
  text(response: GuardedResponse): string;
  /** The URL that the urlMap maps another one to; null if none. */
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
  /** Resolves, checks and connects hosts in place of this process, which needs no network then. `allow` and `lookup` are its own. */
  proxy?: TunnelProxy | null | undefined;
};

export const maxRedirects = 5;
const keepAliveOptions = { keepAlive: true, timeout: 15_000 };
// Not requested: zstd, because Bun accepts truncated bodies, and deflate, because some servers omit its zlib wrapper.
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
/** Headers that hold no credentials, as all others may: APIs have their own names for those. */
const harmlessHeaders = "accept accept-encoding accept-language content-type range user-agent".split(" ");

/**
 * The only client for URLs supplied by users. http(s) only, no user info, ports 80 and 443 unless allowed, every resolved address
 * and redirect checked, bounded in time, size and decompression.
 */
export function createGuard(options: GuardOptions): Guard {
  const { now, proxy = null, lookup = (hostname) => dns.lookup(hostname, { all: true }) } = options;
  const policy = createAddressPolicy(options.allow);
  const mapping = createMapping(options.urlMap ?? {});
  const edits = editsOf(options);
  const slots = createSlots(options.maxPerHost ?? 4);
  // Not shared: a kept-alive connection was checked against this guard's rules only.
  const agents = createAgents(proxy, options.keepsAlive === false ? {} : keepAliveOptions);
  const freshAgents = createAgents(proxy, {});

  /** Sends one request within `leftMs`, which is what earlier ones left of its time limit. A redirect is not followed. */
  function send({ method, url, headers, body }: Outgoing, realUrl: URL, init: GuardedRequest, leftMs: number) {
    const { signal: callerSignal, timeoutMs = defaultTimeoutMs, maxBytes = defaultMaxBytes, cutsBody = false } = init;
    return withTimeout({ callerSignal, leftMs, timeoutMs, url }, async (signal): Promise<EditedAnswer> => {
      const addresses = proxy ? null : await resolve(realUrl, policy, lookup, signal);
      // What may not be sent twice gets a new connection: a host may close a kept-alive one at that moment.
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

/** The URL that a response redirects to, with the caller's host names; null: it is the final one. Throws GuardError if it may not be requested. */
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

/** The request after a redirect, as browsers send it: 303 turns every method but HEAD into GET, 301 and 302 only POST. */
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

/** `leftMs`: what is left of `timeoutMs`. */
type Timeout = { callerSignal: AbortSignal | undefined; leftMs: number; timeoutMs: number; url: URL };

/** Runs `work` with a signal that aborts, with a GuardError, when the caller aborts or `leftMs` is over. */
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
