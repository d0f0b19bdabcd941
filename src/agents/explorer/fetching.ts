import { setTimeout } from "node:timers/promises";
import { findWrongCharset, type WrongCharset } from "../../net/charset.ts";
import { toAddress } from "../../net/failure.ts";
import {
  createGuard,
  type Guard,
  GuardError,
  type GuardErrorKind,
  type GuardedRequest,
  type GuardedResponse,
} from "../../net/guarded.ts";
import { readRetryAfter } from "../../net/retry-after.ts";
import { createRobots, type Robots } from "../../net/robots.ts";
import type { AgentContext, AgentEvent, Provenance } from "../agent.ts";
import type { DeadLink } from "../link-edits.ts";
import { slowPageMs } from "../page-problem.ts";
import type { Task } from "../task.ts";

/** A request, with its purpose and how its URL was found. */
export type FetchRequest = {
  url: string;
  method?: NonNullable<GuardedRequest["method"]>;
  accept?: string;
  /** Further headers, for requests that are not cached. */
  headers?: Record<string, string> | undefined;
  body?: string | undefined;
  provenance: Provenance;
  foundOn: string | null;
  purpose: "task" | "check";
  /** Default: true. */
  follow?: boolean | "same_origin";
  /** The URL that is reported instead of a URL with secrets. */
  reportedUrl?: string | undefined;
  /** Timeout in ms, if shorter than the usual one. */
  timeoutMs?: number;
};

/**
 * `refused`: not allowed, regardless of the response. `cut`: a limit was reached first, so nothing was sent.
 * `disallowed`: blocked by robots.txt.
 */
export type FetchFailureKind = GuardErrorKind | "cut" | "disallowed";

/**
 * `address`: the host and port of the request, or the URL if evald sent no request. `hostResponds`: whether the host had responded to another
 * request.
 */
type FetchFailure = {
  ok: false;
  kind: FetchFailureKind;
  message: string;
  address: string;
  hostResponds?: boolean;
  rule?: RobotsRule;
};

/** The rule of a robots.txt that disallows a URL: where it is, and its text. */
type RobotsRule = { url: string; line: number; text: string };

/** What the explorer gets for a URL: a response, or the reason why there is none. */
export type FetchResult =
  | {
      ok: true;
      response: GuardedResponse;
      contentType: string | null;
      text: () => string;
      /** The encodings that the response declares and has, if they differ. */
      wrongCharset: () => WrongCharset | null;
      /** Whether it took too long, and another request for it did too. */
      isSlow?: boolean;
      /** Pages that redirected by HTML or JavaScript, before this one. */
      followed?: string[];
    }
  | FetchFailure;

/** The events of one tool call, in order. */
export type Log = { id: string | null; events: AgentEvent[] };

type RequestLimit = { limit: "requests" | "wall_clock"; value: number; unit: "requests" | "ms" };

/** The only network access of an exploration. Every request is counted, cached and reported. */
export type Fetcher = {
  task: Task;
  context: AgentContext;
  guard: Guard;
  robots: Robots;
  /** When the last request may start, and when it must end. */
  deadline: number;
  cache: Map<string, Promise<FetchResult>>;
  requestCount: number;
  /** Number of requests that limits prevented, and the first of these limits. */
  preventedCount: number;
  firstLimit: RequestLimit | null;
  /** Links that a page contained and whose target doesn't exist. */
  deadLinks: Map<string, DeadLink>;
  /** Slow pages that were requested again. */
  repeatCount: number;
  /** Hosts with their ports that responded. */
  responding: Set<string>;
};

/** Timeout of one request in ms, if the task has that much time left. */
const requestMs = 15_000;
/** Maximum size of a decoded body: nobody reads larger docs. */
export const maxBytes = 5 * 1024 * 1024;

/** Our name in robots.txt. */
const agentToken = "evald";

/** How much of the time limit is reserved to finish properly, at most 5 s. */
const reservedMs = (wallClockMs: number) => Math.min(5000, wallClockMs * 0.2);

/** Creates what sends the requests of one run, within its limits. */
export function createFetcher(task: Task, context: AgentContext): Fetcher {
  const { allow, now, startedAt, egress } = context;
  const { wallClockMs } = task.limits;
  const fetcher: Fetcher = {
    task,
    context,
    guard: createGuard({ allow, urlMap: task.urlMap, edits: task.edits, now, proxy: egress }),
    // Callers request robots.txt first, so that their log contains the request. Here, the response comes from the cache.
    robots: createRobots(async (url) => {
      const answer = await fetchUrl(fetcher, robotsRequest(url), { id: null, events: [] });
      return answer.ok ? { status: answer.response.status, text: answer.text() } : null;
    }, agentToken),
    deadline: startedAt + wallClockMs - reservedMs(wallClockMs),
    cache: new Map(),
    requestCount: 0,
    preventedCount: 0,
    firstLimit: null,
    deadLinks: new Map(),
    repeatCount: 0,
    responding: new Set(),
  };
  return fetcher;
}

const robotsRequest = (url: string): FetchRequest => {
  const address = new URL("/robots.txt", url).href;
  return { url: address, provenance: "guessed", foundOn: null, purpose: "check" };
};

/** The limit that allows no more requests; null if there is none. */
export function findLimit({ task, context, deadline, requestCount }: Fetcher): RequestLimit | null {
  const { wallClockMs, maxRequests } = task.limits;
  if (context.now() >= deadline) return { limit: "wall_clock", value: wallClockMs, unit: "ms" };
  return requestCount >= maxRequests ? { limit: "requests", value: maxRequests, unit: "requests" } : null;
}

/** Whether the response to a request may be used again for an equal one. */
const isCacheable = ({ method = "GET", headers, body, reportedUrl }: FetchRequest): boolean =>
  (method === "GET" || method === "HEAD") && headers === undefined && body === undefined && reportedUrl === undefined;

/** Returns a cached response for the same method, URL and Accept header. Throws only the signal's reason. */
export async function fetchUrl(fetcher: Fetcher, request: FetchRequest, log: Log): Promise<FetchResult> {
  fetcher.context.signal.throwIfAborted();
  const url = request.url.replace(/#.*$/s, "");
  const key = `${request.method ?? "GET"} ${request.accept ?? "*/*"} ${request.follow ?? true} ${url}`;
  const cached = isCacheable(request) ? fetcher.cache.get(key) : undefined;
  if (cached) return cached;
  const limit = findLimit(fetcher);
  if (limit) {
    fetcher.firstLimit ??= limit;
    fetcher.preventedCount++;
    return { ok: false, kind: "cut", message: `The limit of ${limit.value} ${limit.unit} was reached`, address: url };
  }
  const fetchResult = sendUntilSure(fetcher, { ...request, url }, log);
  if (isCacheable(request)) fetcher.cache.set(key, fetchResult);
  return fetchResult;
}

/** Slow pages of a session that are requested again. */
const maxRepeats = 10;

const isSlow = (fetchResult: FetchResult): boolean =>
  fetchResult.ok && fetchResult.response.status < 400 && fetchResult.response.ms > slowPageMs;

/** Sends a request. Requests a slow page once more, because this machine or the network may have been slow instead of the page. */
async function sendUntilSure(fetcher: Fetcher, request: FetchRequest, log: Log): Promise<FetchResult> {
  const first = await sendUntilAccepted(fetcher, request, log);
  const isForPage = (request.method ?? "GET") === "GET" && request.provenance !== "guessed";
  if (!isForPage || !first.ok || !isSlow(first)) return first;
  if (fetcher.repeatCount >= maxRepeats || findLimit(fetcher)) return first;
  fetcher.repeatCount++;
  const again = await send(fetcher, { ...request, purpose: "check" }, log);
  return { ...first, isSlow: isSlow(again) };
}

/** Maximum pause that a host gets if it asks for one, in ms. */
const maxPauseMs = 30_000;

/** Sends a request, and once more if the host asks to wait and there is time for it. */
async function sendUntilAccepted(fetcher: Fetcher, request: FetchRequest, log: Log): Promise<FetchResult> {
  const ownLog: Log = { id: log.id, events: [] };
  const fetchResult = await send(fetcher, request, ownLog);
  const { signal, now } = fetcher.context;
  const pauseMs =
    fetchResult.ok && fetchResult.response.status === 429
      ? readRetryAfter(fetchResult.response.headers.get("retry-after"), now())
      : null;
  if (pauseMs === null || pauseMs > maxPauseMs || now() + pauseMs >= fetcher.deadline) {
    log.events.push(...ownLog.events);
    return fetchResult;
  }
  // If the host accepts the request after the pause, its first refusal is no failure of its docs.
  for (const event of ownLog.events) log.events.push(event.type === "http" ? { ...event, purpose: "check" } : event);
  await setTimeout(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  return send(fetcher, request, log);
}

async function send(fetcher: Fetcher, request: FetchRequest, log: Log): Promise<FetchResult> {
  const { guard, deadline, deadLinks } = fetcher;
  const { signal, now } = fetcher.context;
  const { url, method = "GET", accept = "*/*", headers, body, provenance, foundOn, purpose } = request;
  const reported = { url: request.reportedUrl ?? url, provenance, foundOn, purpose };
  const event = { type: "http" as const, id: log.id, method, ...reported };
  const startedAt = now();
  fetcher.requestCount++;
  try {
    const timeoutMs = Math.max(1, Math.min(request.timeoutMs ?? requestMs, deadline - startedAt));
    const response = await guard.request(url, {
      method,
      headers: { accept, ...headers },
      ...(body !== undefined && { body }),
      signal,
      timeoutMs,
      maxBytes,
      followRedirects: request.follow ?? true,
    });
    const { mappedUrl, status, ms, redirects, edit } = response;
    fetcher.requestCount += redirects.length;
    fetcher.responding.add(toAddress(mappedUrl ?? response.url));
    const contentType = response.headers.get("content-type");
    const bytesOut = body === undefined ? {} : { bytesOut: Buffer.byteLength(body) };
    const received = { mappedUrl, status, ms, bytes: response.body.length, ...bytesOut, contentType, error: null };
    log.events.push({
      ...event,
      ...received,
      ...(redirects.length > 0 && { answeredBy: response.url }),
      ...(edit && { edit }),
    });
    if ((status === 404 || status === 410) && foundOn !== null && edit?.kind !== "hidden")
      deadLinks.set(`${foundOn} ${url}`, { url, foundOn });
    let text: string | null = null;
    return {
      ok: true,
      response,
      contentType,
      text: () => (text ??= guard.text(response)),
      wrongCharset: () => findWrongCharset(response.body, contentType),
    };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof GuardError)) throw error;
    const { kind, message, address } = error;
    const ms = now() - startedAt;
    const mappedUrl = guard.findMappedUrl(url);
    log.events.push({ ...event, mappedUrl, status: null, ms, bytes: 0, contentType: null, error: { kind, message } });
    return { ok: false, kind, message, address, hostResponds: fetcher.responding.has(address) };
  }
}

/** Why a URL may not be read; null: it may. Its host's robots.txt disallows it, or the request for robots.txt was refused or cut. */
export async function findRefusal(fetcher: Fetcher, url: string, log: Log): Promise<FetchFailure | null> {
  const fetchResult = await fetchUrl(fetcher, robotsRequest(url), log);
  if (await fetcher.robots.isAllowed(url)) return null;
  if (!fetchResult.ok && (fetchResult.kind === "refused" || fetchResult.kind === "cut")) return fetchResult;
  const line = await fetcher.robots.ruleLineOf(url);
  const text = fetchResult.ok && line !== null ? (fetchResult.text().split("\n")[line - 1] ?? "").trim() : "";
  return {
    ok: false,
    kind: "disallowed",
    message: "disallowed by the host's robots.txt",
    address: url,
    ...(line !== null && { rule: { url: robotsRequest(url).url, line, text } }),
  };
}

/** The sitemaps listed in the robots.txt of the URL's host. */
export async function listSitemaps(fetcher: Fetcher, url: string, log: Log): Promise<string[]> {
  await fetchUrl(fetcher, robotsRequest(url), log);
  return fetcher.robots.sitemaps(url);
}
