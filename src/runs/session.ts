import { and, asc, eq } from "drizzle-orm";
import type { AgentEvent, EventSource, SessionEvent } from "../agents/agent.ts";
import { type Db, tx } from "../db/open.ts";
import { sessionEvents } from "../db/tables.ts";
import type { Deps } from "../deps.ts";
import { redactKeys } from "../schema.ts";

const batchRows = 100;
const batchMs = 50;
const maxPayloadBytes = 32 * 1024;
const secretNames = /^(proxy-)?authorization$|^(set-)?cookie$|^x-api-key$/i;
const bearer = /\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi;

/** A run in one of its attempts: what its events belong to. */
export type SessionId = { orgId: string; runId: string; attempt: number };

export type SessionWriter = {
  append(event: AgentEvent, source: EventSource): void;
  /** Stores what is still in memory. Throws what the last write threw. */
  close(): void;
};

/**
 * Stores the events of a session, in batches of 100 rows or 50 ms, capped and redacted. `mayWrite` is asked inside each transaction: once it
 * says no, nothing more is stored. `onError` hears of a batch that could not be written; the session is then not whole and must end.
 */
export function openSession(
  { db, now }: Pick<Deps, "db" | "now">,
  { orgId, runId, attempt }: SessionId,
  mayWrite: () => boolean,
  onError: (error: unknown) => void,
): SessionWriter {
  const begunAt = now();
  let seq = 0;
  let buffer: (typeof sessionEvents.$inferInsert)[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (buffer.length === 0) return;
    const rows = buffer;
    buffer = [];
    tx(db, (t) => {
      if (mayWrite()) t.insert(sessionEvents).values(rows).run();
    });
  }

  function flushInBackground(): void {
    try {
      flush();
    } catch (error) {
      onError(error);
    }
  }

  return {
    append(event, source) {
      const at = now();
      const { type, ...fields } = event;
      buffer.push({
        orgId,
        runId,
        attempt,
        seq: seq++,
        at,
        tMs: Math.max(0, at - begunAt),
        type,
        source,
        data: storable(fields),
      });
      if (buffer.length >= batchRows) flushInBackground();
      else timer ??= setTimeout(flushInBackground, batchMs);
    },
    close: flush,
  };
}

/** The events of a session as they were stored, in order. */
export function readSession(db: Db, { orgId, runId, attempt }: SessionId): SessionEvent[] {
  return db
    .select()
    .from(sessionEvents)
    .where(and(eq(sessionEvents.orgId, orgId), eq(sessionEvents.runId, runId), eq(sessionEvents.attempt, attempt)))
    .orderBy(asc(sessionEvents.seq))
    .all()
    .map(({ seq, at, tMs, type, source, data }) => ({ ...data, seq, at, tMs, type, source }) as SessionEvent);
}

/** Ways to make a payload smaller, mildest first: so many characters of a text, so many items of a list. */
const cuts = [
  ...[8192, 4096, 2048, 1024, 512, 256, 128, 64].map((chars) => ({ chars, items: Number.POSITIVE_INFINITY })),
  ...[512, 256, 128, 64, 32, 16, 8, 4, 2, 1].map((items) => ({ chars: 256, items })),
];

/** What may be stored: without secrets, and not above 32 KiB of JSON (then texts, then lists are cut and `cutBytes` says by how much). */
function storable(fields: Record<string, unknown>): Record<string, unknown> {
  const clean = mapTexts(fields, (text, key) =>
    secretNames.test(key) ? "[redacted]" : redactKeys(text).replace(bearer, "$1 [redacted]"),
  ) as Record<string, unknown>;
  const bytes = Buffer.byteLength(JSON.stringify(clean));
  if (bytes <= maxPayloadBytes) return clean;
  for (const { chars, items } of cuts) {
    const shorter = (text: string) => (text.length > chars ? `${text.slice(0, chars)}…` : text);
    const cut = mapTexts(clean, shorter, items) as Record<string, unknown>;
    const left = Buffer.byteLength(JSON.stringify(cut));
    if (left <= maxPayloadBytes) return { ...cut, cutBytes: bytes - left };
  }
  return { cutBytes: bytes };
}

/** `key`: the name under which a text stands, also as an item of a list; empty at the top. `items`: what is kept of a list. */
function mapTexts(
  value: unknown,
  change: (text: string, key: string) => string,
  items = Number.POSITIVE_INFINITY,
  key = "",
): unknown {
  if (typeof value === "string") return change(value, key);
  if (Array.isArray(value)) return value.slice(0, items).map((item) => mapTexts(item, change, items, key));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapTexts(item, change, items, name)]));
}
