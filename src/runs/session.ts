import { and, asc, eq } from "drizzle-orm";
import type { AgentEvent, EventSource, SessionEvent } from "../agents/agent.ts";
import { diskFault } from "../db/fault.ts";
import { type Db, tx } from "../db/open.ts";
import { sessionEvents } from "../db/tables.ts";
import type { Deps } from "../deps.ts";
import { createRedaction } from "./redaction.ts";
import { pay } from "./spending.ts";

const batchRows = 100;
const batchMs = 50;
const maxPayloadBytes = 32 * 1024;
/** What is kept in memory while the disk is full, and how often and how long it is tried. */
const maxWaitingRows = 20_000;
const maxWaitingBytes = 32 * 1024 * 1024;
const maxWaitingMs = 60_000;
const retryMs = 500;

/** A run in one of its attempts: what its events belong to. */
export type SessionId = { orgId: string; runId: string; attempt: number };

export type SessionWriter = {
  append(event: AgentEvent, source: EventSource): void;
  /** From now on these are taken out of everything, in every usual spelling. */
  hide(secrets: string[]): void;
  /** A text as it may be stored, logged or answered. */
  clean(text: string): string;
  /** Stores what is still in memory; while the disk is full it waits for room, until `stop`. Throws what the last write threw. */
  close(stop: AbortSignal): Promise<void>;
};

/**
 * Stores the events of a session, in batches of 100 rows or 50 ms, capped and redacted. `mayWrite` is asked inside each transaction: once it
 * says no, nothing more is stored. While the disk is full events wait in memory. `onError` hears of what could not be stored in the end; the
 * session is then not whole and must end. `after` is the last event of a session that goes on.
 */
export function openSession(
  { db, now }: Pick<Deps, "db" | "now">,
  { orgId, runId, attempt }: SessionId,
  mayWrite: () => boolean,
  onError: (error: unknown) => void,
  after?: Pick<SessionEvent, "seq" | "at" | "tMs">,
): SessionWriter {
  const begunAt = after ? after.at - after.tMs : now();
  const redaction = createRedaction();
  let seq = after ? after.seq + 1 : 0;
  let waiting: { row: typeof sessionEvents.$inferInsert; bytes: number }[] = [];
  let waitingBytes = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Since when the disk is full, by the monotonic clock. */
  let fullSince: number | null = null;
  let failed: { error: unknown } | null = null;

  /** Stores a batch of what waits; what a full disk refuses goes on waiting, within bounds. Throws all else. */
  function store(): void {
    clearTimeout(timer);
    timer = undefined;
    if (failed) throw failed.error;
    const batch = waiting.slice(0, batchRows);
    if (batch.length === 0) return;
    try {
      tx(db, (t) => {
        const rows = batch.map(({ row }) => row);
        if (mayWrite()) t.insert(sessionEvents).values(rows).run();
        // Paid all the same.
        else
          for (const { type, source, at, data } of rows)
            if (type === "usage" && source !== "agent") pay(t, orgId, at, data.costUsd as number | null);
      });
      fullSince = null;
      waiting = waiting.slice(batch.length);
      for (const { bytes } of batch) waitingBytes -= bytes;
    } catch (error) {
      fullSince ??= performance.now();
      const bounded = waiting.length <= maxWaitingRows && waitingBytes <= maxWaitingBytes;
      if (diskFault(error) === "full" && bounded && performance.now() - fullSince < maxWaitingMs) return;
      failed = { error };
      waiting = [];
      onError(error);
      throw error;
    }
  }

  function storeInBackground(): void {
    try {
      store();
      if (waiting.length > 0) timer ??= setTimeout(storeInBackground, fullSince === null ? batchMs : retryMs);
    } catch {
      // `onError` has heard of it.
    }
  }

  return {
    hide: redaction.hide,
    clean: (text) => redaction.clean(text),
    append(event, source) {
      if (failed) return;
      const at = now();
      const { type, ...fields } = event;
      const { data, bytes } = storable(fields, redaction.clean);
      const tMs = Math.max(0, at - begunAt);
      waiting.push({ row: { orgId, runId, attempt, seq: seq++, at, tMs, type, source, data }, bytes });
      waitingBytes += bytes;
      const tooMuch = waiting.length > maxWaitingRows || waitingBytes > maxWaitingBytes;
      if (tooMuch || (fullSince === null && waiting.length >= batchRows)) storeInBackground();
      else timer ??= setTimeout(storeInBackground, batchMs);
    },

    async close(stop) {
      for (;;) {
        store();
        if (waiting.length === 0) return;
        stop.throwIfAborted();
        await Bun.sleep(fullSince === null ? 0 : retryMs);
      }
    },
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
export function storable(
  fields: Record<string, unknown>,
  cleaned: (text: string, name?: string) => string,
): { data: Record<string, unknown>; bytes: number } {
  const clean = mapTexts(fields, cleaned, Number.POSITIVE_INFINITY, "", cleaned) as Record<string, unknown>;
  const bytes = Buffer.byteLength(JSON.stringify(clean));
  if (bytes <= maxPayloadBytes) return { data: clean, bytes };
  for (const { chars, items } of cuts) {
    const shorter = (text: string) => (text.length > chars ? `${text.slice(0, chars).toWellFormed()}…` : text);
    const cut = mapTexts(clean, shorter, items) as Record<string, unknown>;
    const left = Buffer.byteLength(JSON.stringify(cut));
    if (left <= maxPayloadBytes) return { data: { ...cut, cutBytes: bytes - left }, bytes: left };
  }
  return { data: { cutBytes: bytes }, bytes: 0 };
}

/** `key`: the name under which a text stands, also as an item of a list; empty at the top. `items`: what is kept of a list. */
function mapTexts(
  value: unknown,
  change: (text: string, key: string) => string,
  items = Number.POSITIVE_INFINITY,
  key = "",
  rename = (name: string) => name,
): unknown {
  if (typeof value === "string") return change(value, key);
  if (Array.isArray(value)) return value.slice(0, items).map((item) => mapTexts(item, change, items, key, rename));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [rename(name), mapTexts(item, change, items, name, rename)]),
  );
}
