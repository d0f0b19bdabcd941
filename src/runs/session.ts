import { type AgentEvent, type EventSource, maxPageTextChars, type SessionEvent } from "../agents/agent.ts";
import type { Context } from "../context.ts";
import { diskFault, isBusy } from "../db/fault.ts";
import { transaction } from "../db/open.ts";
import { insertStatement } from "../db/rows.ts";
import { sessionEvents } from "../db/tables/runs.ts";
import { withoutWaiting } from "../db/write-lock.ts";
import { cleanLines } from "../redaction/lines.ts";
import { createRedaction } from "../redaction/redaction.ts";
import { mapTexts } from "../redaction/texts.ts";
import { storePageText } from "../reports/page-texts.ts";
import type { SessionId } from "../reports/session-events.ts";
import { paidCallOf, recordSpending } from "./paid-calls.ts";

const insertEvent = insertStatement(sessionEvents);

const batchRows = 100;
const batchMs = 50;
const maxPayloadBytes = 32 * 1024;
/** Limits of buffering in memory while the disk is full or another process is writing. */
const maxBufferedRows = 20_000;
const maxBufferedBytes = 32 * 1024 * 1024;
const isFull = (rows: number, bytes: number) => rows > maxBufferedRows || bytes > maxBufferedBytes;
const maxBlockedMs = 60_000;
const retryMs = 500;

type SessionWriter = {
  append(event: AgentEvent, source: EventSource): void;
  /** Registers more secrets to redact, in every usual encoding. */
  hide(secrets: string[]): void;
  /** Redacts a text before it is stored, logged or returned. */
  clean(text: string): string;
  /** Redacts lines of text or JSON, such as the output of an agent. */
  cleanLines(lines: string): string;
  /** Flushes buffered events. While the disk is full or another process is writing, it waits until `stop`. Throws the last write error. */
  close(stop: AbortSignal): Promise<void>;
};

type SessionOptions = {
  /** Redacted from the first event on. */
  secrets: readonly string[];
  /** Checked in each transaction: once it returns false, nothing more is stored. */
  mayWrite: () => boolean;
  /** Called with the final write error. The session is then incomplete and must end. */
  onError?: (error: unknown) => void;
  /** The last event of a session to continue. */
  lastEvent?: SessionEvent | undefined;
};

/**
 * Stores the events of a session, capped and redacted, in batches of 100 rows or 50 ms. While the disk is full or another process is writing,
 * events wait in memory.
 */
export function openSession(
  ctx: Context,
  { orgId, runId, attempt }: SessionId,
  { secrets, mayWrite, onError = () => {}, lastEvent }: SessionOptions,
): SessionWriter {
  const { db, now, monotonicNow } = ctx;
  const startedMs = monotonicNow() - (lastEvent?.tMs ?? 0);
  const redaction = createRedaction(secrets);
  let seq = lastEvent ? lastEvent.seq + 1 : 0;
  let buffered: { row: typeof sessionEvents.$inferSelect; bytes: number; pageText: string | undefined }[] = [];
  let bufferedBytes = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** When the disk was found full or locked by another process, by the monotonic clock. */
  let blockedSince: number | null = null;
  let failure: { error: unknown } | null = null;

  /** Stores a batch. If this is impossible for now, the batch stays in memory, within limits. Throws other errors. */
  function storeBatch(): void {
    clearTimeout(timer);
    timer = undefined;
    if (failure) throw failure.error;
    const batch = buffered.slice(0, batchRows);
    if (batch.length === 0) return;
    try {
      withoutWaiting(db, () =>
        transaction(db, (tx) => {
          const rows = batch.map(({ row }) => row);
          if (mayWrite()) {
            rows.forEach(insertEvent(db));
            for (const { row, pageText } of batch)
              if (pageText !== undefined) storePageText(db, row, row.seq, pageText);
          }
          // The calls were paid for, even if their events can't be stored.
          for (const { type, source, at, data } of rows) {
            const call = paidCallOf(at, source, { type, ...data } as AgentEvent);
            if (call) recordSpending(ctx, tx, runId, call);
          }
        }),
      );
      blockedSince = null;
      buffered = buffered.slice(batch.length);
      for (const { bytes } of batch) bufferedBytes -= bytes;
    } catch (error) {
      blockedSince ??= performance.now();
      const mayPass = diskFault(error) === "full" || isBusy(error);
      if (mayPass && !isFull(buffered.length, bufferedBytes) && performance.now() - blockedSince < maxBlockedMs) return;
      failure = { error };
      buffered = [];
      onError(error);
      throw error;
    }
  }

  function storeInBackground(): void {
    try {
      storeBatch();
      if (buffered.length > 0) timer ??= setTimeout(storeInBackground, blockedSince === null ? batchMs : retryMs);
    } catch {
      // The error was already passed to `onError`.
    }
  }

  return {
    hide: redaction.hide,
    clean: redaction.clean,
    cleanLines: (lines) => cleanLines(lines, redaction.clean),
    append(event, source) {
      if (failure) return;
      const at = now();
      // Few events have the text of a page, which is stored apart.
      const { type, pageText: fullText, ...fields } = { pageText: undefined, ...event };
      const pageText = fullText === undefined ? undefined : redaction.clean(fullText.slice(0, maxPageTextChars));
      // The output of a running command arrives in several events, and a list of lines in several texts.
      const textKey = `${source} ${type} ${"id" in event ? event.id : ""}`;
      const { data, bytes: eventBytes } = toStoredFields(fields, (text, name) =>
        redaction.clean(text, name, name === undefined ? undefined : `${textKey} ${name}`),
      );
      const tMs = Math.round(monotonicNow() - startedMs);
      const bytes = eventBytes + (pageText?.length ?? 0);
      buffered.push({ row: { orgId, runId, attempt, seq: seq++, at, tMs, type, source, data }, bytes, pageText });
      bufferedBytes += bytes;
      if (isFull(buffered.length, bufferedBytes) || (blockedSince === null && buffered.length >= batchRows))
        storeInBackground();
      else timer ??= setTimeout(storeInBackground, batchMs);
    },

    async close(stop) {
      for (;;) {
        storeBatch();
        if (buffered.length === 0) return;
        stop.throwIfAborted();
        await Bun.sleep(blockedSince === null ? 0 : retryMs);
      }
    },
  };
}

/** Steps to shrink a payload, mildest first: maximum characters per text and items per list. */
const shrinkSteps = [
  ...[8192, 4096, 2048, 1024, 512, 256, 128, 64].map((chars) => ({ chars, maxItems: undefined })),
  ...[512, 256, 128, 64, 32, 16, 8, 4, 2, 1].map((maxItems) => ({ chars: 256, maxItems })),
];

/** Redacts an event and limits it to 32 KiB of JSON. Texts are cut first, then lists. `cutBytes`: the number of bytes removed. */
export function toStoredFields(
  fields: Record<string, unknown>,
  redact: (text: string, name?: string) => string,
): { data: Record<string, unknown>; bytes: number } {
  const clean = mapTexts(fields, redact, { rename: redact }) as Record<string, unknown>;
  const bytes = Buffer.byteLength(JSON.stringify(clean));
  if (bytes <= maxPayloadBytes) return { data: clean, bytes };
  for (const { chars, maxItems } of shrinkSteps) {
    const shorten = (text: string) => (text.length > chars ? `${text.slice(0, chars).toWellFormed()}…` : text);
    const cut = mapTexts(clean, shorten, { maxItems }) as Record<string, unknown>;
    const remainingBytes = Buffer.byteLength(JSON.stringify(cut));
    if (remainingBytes <= maxPayloadBytes)
      return { data: { ...cut, cutBytes: bytes - remainingBytes }, bytes: remainingBytes };
  }
  return { data: { cutBytes: bytes }, bytes: 0 };
}
