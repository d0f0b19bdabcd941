import { promises as dns } from "node:dns";
import http from "node:http";
import https from "node:https";
import type { AllowRule } from "../config.ts";
import { createPlaces } from "./addresses.ts";
import { decodeText } from "./charset.ts";
import { exchange } from "./exchange.ts";
import { GuardError } from "./failure.ts";
import { createMapping } from "./mapping.ts";
import { type Lookup, resolve } from "./resolve.ts";
import { createSlots } from "./slots.ts";

export { GuardError, type GuardErrorKind } from "./failure.ts";

export type GuardedRequest = {
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  headers?: Record<string, string>;
  /** Sent again after a redirect that keeps the method. */
  body?: string;
  signal?: AbortSignal;
  /** Whole request, redirects and body included, the wait for a free place at the host not. Default 30,000. */
  timeoutMs?: number;
  /** Of the decoded body. Default 5 MiB. */
  maxBytes?: number;
  /** Default true, at most 5, each hop checked anew. */
  followRedirects?: boolean;
};

export type GuardedResponse = {
  /** The last address, without fragment, in the terms of the caller: hosts that the urlMap replaced go by their own names. */
  url: string;
  /** Where the last request really went; null if the urlMap did not touch it. */
  mappedUrl: string | null;
  status: number;
  headers: Headers;
  body: Uint8Array;
  /** Every address on the way, the first included, the last not; in the terms of the caller. */
  redirects: string[];
  /** Of the whole request, the wait for a free place at the host left out. */
  ms: number;
};

export type Guard = {
  /** Throws GuardError when no answer came; an answer of any status is an answer. */
  request(url: string, init?: GuardedRequest): Promise<GuardedResponse>;
  /** The text of a body, by its byte order mark, its charset parameter, its meta tag, else UTF-8. */
  text(response: GuardedResponse): string;
  /** Where the urlMap sends an address; null if nowhere else. */
  mapped(url: string): string | null;
};

export type GuardOptions = {
  /** Private places that the operator opened. */
  allow: readonly AllowRule[];
  urlMap?: Record<string, string>;
  userAgent: string;
  /** At once, to one host and port. Default 4. */
  maxPerHost?: number;
  now: () => number;
  /** All addresses of a host name. Default: the system's name service. */
  lookup?: Lookup;
};

const maxRedirects = 5;
const kept = { keepAlive: true, timeout: 15_000 };
// Not asked for: Bun's zstd takes a body that was cut off for whole, and some servers send deflate without its wrapper.
const acceptEncoding = "gzip, br";
const connectMs = 10_000;
const redirectStatus = [301, 302, 303, 307, 308];
const ownHeaders = [
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "te",
  "upgrade",
  "expect",
  "accept-encoding",
];
const credentials = ["authorization", "cookie", "proxy-authorization"];

/**
 * The only way out to an address that someone gave us. http(s) only, no user info, ports 80 and 443 unless allowed, every answer of
 * the name service checked, every redirect checked anew, bounded in time, size and decompression.
 */
export function createGuard(options: GuardOptions): Guard {
  const { now, lookup = (hostname) => dns.lookup(hostname, { all: true }) } = options;
  const places = createPlaces(options.allow);
  const mapping = createMapping(options.urlMap ?? {});
  const slots = createSlots(options.maxPerHost ?? 4);
  // Of this guard alone: a kept connection was checked by its rules and by no others.
  const agents = { "http:": new http.Agent(kept), "https:": new https.Agent(kept) };

  async function request(address: string, init: GuardedRequest = {}): Promise<GuardedResponse> {
    const { timeoutMs = 30_000, maxBytes = 5 * 1024 * 1024, followRedirects = true } = init;
    const redirects: string[] = [];
    const seen = new Set<string>();
    let method: string = init.method ?? "GET";
    let headers = toSent(init.headers ?? {}, options.userAgent);
    let body = init.body;
    let url = parse(address);
    let ms = 0;
    for (;;) {
      const real = mapping.toReal(url) ?? url;
      const release = await slots.take(real.origin, () => aborted(url), init.signal);
      const start = now();
      const target = (status: number, answered: Headers) =>
        followRedirects && redirectStatus.includes(status) ? answered.get("location") : null;
      const answer = await within(init.signal, timeoutMs - ms, timeoutMs, url, async (signal) => {
        const addresses = await resolve(real, places, lookup, signal);
        const agent = agents[real.protocol as keyof typeof agents];
        const wantsBody = (status: number, answered: Headers) => target(status, answered) === null;
        return exchange({ url: real, method, headers, body, addresses, agent, maxBytes, connectMs, signal, wantsBody });
      }).finally(release);
      ms += now() - start;
      const location = target(answer.status, answer.headers);
      if (location === null)
        return { url: url.href, mappedUrl: real === url ? null : real.href, ...answer, redirects, ms };
      const next = follow(location, real, (spoken) => mapping.toCaller(spoken, url));
      redirects.push(url.href);
      seen.add(`${method} ${url.href}`);
      if (method !== "HEAD" && (answer.status === 303 || (answer.status < 303 && method === "POST"))) {
        method = "GET";
        body = undefined;
      }
      if (seen.has(`${method} ${next.href}`))
        throw new GuardError("redirect", next.href, `${next.host} redirects in a loop, back to ${next.href}`);
      if (redirects.length > maxRedirects)
        throw new GuardError("redirect", next.href, `${next.host} was the end of more than ${maxRedirects} redirects`);
      if (next.origin !== url.origin) headers = without(headers, credentials);
      url = next;
    }
  }

  return {
    request,
    text: ({ body, headers }) => decodeText(body, headers.get("content-type")),
    mapped: (url) => (URL.canParse(url) ? (mapping.toReal(new URL(url))?.href ?? null) : null),
  };
}

function parse(address: string): URL {
  if (!URL.canParse(address)) throw new GuardError("refused", address, `${JSON.stringify(address)} is not an address`);
  const url = new URL(address);
  url.hash = "";
  accept(url);
  return url;
}

function accept(url: URL): void {
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new GuardError(
      "refused",
      url.href,
      `${url.href} is a ${url.protocol} address; only http and https are followed`,
    );
  if (url.username || url.password)
    throw new GuardError(
      "refused",
      url.href,
      `${url.host} is asked for with a user name or password in the address, which is refused`,
    );
}

/** The location of a redirect, read from the bytes that most servers send: UTF-8, which Node hands over as Latin-1. */
function follow(location: string, from: URL, toCaller: (spoken: URL) => URL): URL {
  const text = Buffer.from(location, "latin1").toString("utf8");
  const target = text.includes("\ufffd") ? location : text;
  if (!URL.canParse(target, from.href))
    throw new GuardError(
      "redirect",
      from.href,
      `${from.host} redirects to ${JSON.stringify(target)}, which is not an address`,
    );
  const next = toCaller(new URL(target, from.href));
  next.hash = "";
  accept(next);
  return next;
}

/** Runs `work` under a signal that carries, as a GuardError, why it has to stop: the caller's will or the end of `leftMs`. */
async function within<T>(
  outer: AbortSignal | undefined,
  leftMs: number,
  timeoutMs: number,
  url: URL,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const inner = new AbortController();
  const abort = () => inner.abort(aborted(url));
  if (outer?.aborted) abort();
  const timer = setTimeout(() => {
    inner.abort(
      new GuardError("timeout", url.href, `${url.host} did not finish its answer within ${timeoutMs / 1000} s`),
    );
  }, leftMs);
  outer?.addEventListener("abort", abort);
  try {
    return await work(inner.signal);
  } catch (error) {
    throw error instanceof GuardError ? inTermsOfCaller(error, url) : error;
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", abort);
  }
}

/** What went wrong at the host that the urlMap named is told of the address that was asked for. */
function inTermsOfCaller(error: GuardError, url: URL): GuardError {
  if (error.url === url.href) return error;
  return new GuardError(error.kind, url.href, `${error.message} (the urlMap sends ${url.host} there)`);
}

const aborted = (url: URL) => new GuardError("aborted", url.href, `The request to ${url.host} was called off`);

function toSent(headers: Record<string, string>, userAgent: string): Record<string, string> {
  const given = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    accept: "*/*",
    "user-agent": userAgent,
    ...without(given, ownHeaders),
    "accept-encoding": acceptEncoding,
  };
}

function without(headers: Record<string, string>, names: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
}
