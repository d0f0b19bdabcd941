import { createGuard, GuardError, type GuardErrorKind, type GuardedResponse } from "../../net/guarded.ts";
import { createRobots } from "../../net/robots.ts";
import type { AgentContext, AgentEvent, Provenance } from "../agent.ts";
import type { DeadLink } from "../link-edits.ts";
import type { Task } from "../task.ts";

/** The purpose of a request, and how its URL was found. */
export type Ask = {
  url: string;
  method?: "GET" | "HEAD";
  accept?: string;
  provenance: Provenance;
  foundOn: string | null;
  purpose: "task" | "check";
  /** Default: true. */
  follow?: boolean;
  /** Timeout in ms, if shorter than the usual one. */
  timeoutMs?: number;
};

/**
 * `refused`: not allowed, regardless of the response. `cut`: a limit was reached first, so nothing was sent.
 * `disallowed`: blocked by robots.txt.
 */
export type MissKind = GuardErrorKind | "cut" | "disallowed";

type Miss = { ok: false; kind: MissKind; message: string };

export type Fetched = { ok: true; response: GuardedResponse; contentType: string | null; text: () => string } | Miss;

/** The events of one tool call, in order. */
export type Log = { id: string | null; events: AgentEvent[] };

type Cut = { limit: "requests" | "wall_clock"; value: number; unit: "requests" | "ms" };

/** The only network access of an exploration. Every request is counted, cached and reported. */
export type Fetching = {
  /** Returns a cached response for the same method, URL and Accept header. Throws only the signal's reason. */
  get(ask: Ask, log: Log): Promise<Fetched>;
  /** The first limit that blocked a request; null if none did. */
  cut(): Cut | null;
  /** Whether the limits allow more requests. */
  open(): boolean;
  /** Number of requests that limits prevented. */
  cuts(): number;
  sent(): number;
  /** Links that a page contained and whose target doesn't exist. */
  dead(): DeadLink[];
  /** Why the host's robots.txt disallows the URL; null if it doesn't. */
  barred(url: string, log: Log): Promise<Miss | null>;
  /** The sitemaps listed in the robots.txt of the URL's host. */
  sitemaps(url: string, log: Log): Promise<string[]>;
};

/** The Accept header of agents that prefer Markdown to HTML. */
export const readerAccept = "text/markdown;q=1, text/html;q=0.8, text/plain;q=0.7";

/** Timeout of one request in ms, if the task has that much time left. */
const requestMs = 15_000;
/** Maximum size of a decoded body: nobody reads larger docs. */
const maxBytes = 5 * 1024 * 1024;

/** Our name in robots.txt. */
const agentToken = "evald";

/** Share of the wall clock reserved to finish properly, at most 5 s. */
const reserve = (wallClockMs: number) => Math.min(5000, wallClockMs * 0.2);

export function createFetching(
  { limits, urlMap }: Task,
  { allow, userAgent, signal, now, startedAt, egress }: AgentContext,
): Fetching {
  const guard = createGuard({ allow, urlMap, userAgent, now, proxy: egress });
  const deadline = startedAt + limits.wallClockMs - reserve(limits.wallClockMs);
  const known = new Map<string, Promise<Fetched>>();
  const dead = new Map<string, DeadLink>();
  let sent = 0;
  let cuts = 0;
  let firstCut: Cut | null = null;

  function limitReached(): Cut | null {
    if (now() >= deadline) return { limit: "wall_clock", value: limits.wallClockMs, unit: "ms" };
    if (sent >= limits.maxRequests) return { limit: "requests", value: limits.maxRequests, unit: "requests" };
    return null;
  }

  async function send(ask: Ask, log: Log): Promise<Fetched> {
    const { url, method = "GET", accept = "*/*", provenance, foundOn, purpose } = ask;
    const asked = { type: "http" as const, id: log.id, method, url, provenance, foundOn, purpose };
    const startedAt = now();
    sent++;
    try {
      const timeoutMs = Math.max(1, Math.min(ask.timeoutMs ?? requestMs, deadline - startedAt));
      const response = await guard.request(url, {
        method,
        headers: { accept },
        signal,
        timeoutMs,
        maxBytes,
        followRedirects: ask.follow ?? true,
      });
      sent += response.redirects.length;
      const { mappedUrl, status, ms, body } = response;
      const contentType = response.headers.get("content-type");
      log.events.push({ ...asked, mappedUrl, status, ms, bytes: body.length, contentType, error: null });
      if ((status === 404 || status === 410) && foundOn !== null) dead.set(`${foundOn} ${url}`, { url, foundOn });
      let text: string | null = null;
      return { ok: true, response, contentType, text: () => (text ??= guard.text(response)) };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof GuardError)) throw error;
      const { kind, message } = error;
      const ms = now() - startedAt;
      const mappedUrl = guard.mapped(url);
      log.events.push({ ...asked, mappedUrl, status: null, ms, bytes: 0, contentType: null, error: { kind, message } });
      return { ok: false, kind, message };
    }
  }

  async function get(ask: Ask, log: Log): Promise<Fetched> {
    signal.throwIfAborted();
    const url = ask.url.replace(/#.*$/s, "");
    const key = `${ask.method ?? "GET"} ${ask.accept ?? "*/*"} ${ask.follow ?? true} ${url}`;
    const before = known.get(key);
    if (before) return before;
    const limit = limitReached();
    if (limit) {
      firstCut ??= limit;
      cuts++;
      return { ok: false, kind: "cut", message: `The limit of ${limit.value} ${limit.unit} was reached` };
    }
    const answer = send({ ...ask, url }, log);
    known.set(key, answer);
    return answer;
  }

  const toRobots = (url: string): Ask => {
    const address = new URL("/robots.txt", url).href;
    return { url: address, provenance: "guessed", foundOn: null, purpose: "check" };
  };
  // Callers request robots.txt first, so that their log contains the request; here it comes from the cache.
  const robots = createRobots(async (url) => {
    const answer = await get(toRobots(url), { id: null, events: [] });
    return answer.ok ? { status: answer.response.status, text: answer.text() } : null;
  }, agentToken);

  return {
    get,
    cut: () => firstCut,
    open: () => limitReached() === null,
    cuts: () => cuts,
    sent: () => sent,
    dead: () => [...dead.values()],
    async barred(url, log) {
      const got = await get(toRobots(url), log);
      if (await robots.allowed(url)) return null;
      if (!got.ok && (got.kind === "refused" || got.kind === "cut")) return got;
      return { ok: false, kind: "disallowed", message: "disallowed by the host's robots.txt" };
    },
    async sitemaps(url, log) {
      await get(toRobots(url), log);
      return robots.sitemaps(url);
    },
  };
}
