import { createGuard, GuardError, type GuardErrorKind, type GuardedResponse } from "../../net/guarded.ts";
import { createRobots } from "../../net/robots.ts";
import type { AgentContext, AgentEvent, Provenance, Task } from "../agent.ts";

/** What a fetch is for and how its address came to be known. */
export type Ask = {
  url: string;
  method?: "GET" | "HEAD";
  accept?: string;
  provenance: Provenance;
  foundOn: string | null;
  purpose: "way" | "check";
  /** Default true. */
  follow?: boolean;
  /** Less time than a request may take otherwise, in ms. */
  timeoutMs?: number;
};

/** `refused`: out of bounds to us, whatever is there. `cut`: a limit of the task was reached first, nothing was sent. `disallowed`: robots.txt asks to stay away. */
export type MissKind = GuardErrorKind | "cut" | "disallowed";

type Miss = { ok: false; kind: MissKind; message: string };

export type Fetched = { ok: true; response: GuardedResponse; contentType: string | null; text: () => string } | Miss;

/** The events of one tool call, in the order in which they belong. */
export type Log = { id: string | null; events: AgentEvent[] };

type Cut = { limit: "requests" | "wall_clock"; value: number; unit: "requests" | "ms" };

/** The only way out of an exploration: every request is counted, remembered and told of. */
export type Fetching = {
  /** Answers from memory where the same method, address and Accept were asked for before. Throws only what the signal carries. */
  get(ask: Ask, log: Log): Promise<Fetched>;
  /** The first limit that stood in the way of a request; null while none did. */
  cut(): Cut | null;
  /** Whether limits still let requests through. */
  open(): boolean;
  /** Fetches that limits kept from being made. */
  cuts(): number;
  sent(): number;
  /** Why the address is not to be fetched, as its host's robots.txt has it; null if it may be. */
  barred(url: string, log: Log): Promise<Miss | null>;
  /** The sitemaps that robots.txt of the address' host names. */
  sitemaps(url: string, log: Log): Promise<string[]>;
};

/** What agents ask for that would rather read Markdown than HTML. */
export const readerAccept = "text/markdown;q=1, text/html;q=0.8, text/plain;q=0.7";

/** One request may take this long, in ms, if the task leaves so much. */
const requestMs = 15_000;
/** Of a decoded body: docs over this are not read by anybody. */
const maxBytes = 5 * 1024 * 1024;

/** The name that robots.txt knows us by. */
const agentToken = "evald";

/** Part of the wall clock that is kept back to finish in order, at most 5 s. */
const reserve = (wallClockMs: number) => Math.min(5000, wallClockMs * 0.2);

export function createFetching(
  { limits, urlMap }: Task,
  { allow, userAgent, signal, now, startedAt }: AgentContext,
): Fetching {
  const guard = createGuard({ allow, urlMap, userAgent, now });
  const deadline = startedAt + limits.wallClockMs - reserve(limits.wallClockMs);
  const known = new Map<string, Promise<Fetched>>();
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
  // Asked for first by the callers below, so that what it takes is told in their log; here it comes from memory.
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
    async barred(url, log) {
      const got = await get(toRobots(url), log);
      if (await robots.allowed(url)) return null;
      if (!got.ok && (got.kind === "refused" || got.kind === "cut")) return got;
      return { ok: false, kind: "disallowed", message: "disallowed by robots.txt of the host" };
    },
    async sitemaps(url, log) {
      await get(toRobots(url), log);
      return robots.sitemaps(url);
    },
  };
}
