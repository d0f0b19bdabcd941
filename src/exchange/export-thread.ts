import { readConfig } from "../config/config.ts";
import { type Context, createContext, perContext } from "../context.ts";
import { openReader } from "../db/open.ts";
import { turnOfOrg } from "../http/turns.ts";
import { createThread, hasThreads } from "../jobs/thread.ts";
import { createLog } from "../log.ts";
import { type ExportOrder, writeExport } from "./writer.ts";

/** Maximum size of a piece of a file, and the time after which a smaller piece is returned. */
const pieceLimits = { chars: 256 * 1024, ms: 100 };
/** Pieces are smaller in the service's own thread, so that other requests are answered in between. */
const pieceLimitsHere = { chars: 64 * 1024, ms: 10 };
/** A piece takes milliseconds. A piece with a large archive takes longer. */
const timeoutMs = 120_000;

/** What the thread does next with the export `id`. */
type ThreadMessage = { id: number } & ({ step: "start"; order: ExportOrder } | { step: "read" | "close" });
type ThreadData = { thread: "export"; file: string; baseUrl: string };

/** A file that is read piece by piece: `next` resolves to null at its end, and `close` stops it early. */
export type ExportPieces = { next(): Promise<Uint8Array | null>; close(): void };

const exportThreadOf = perContext(({ db, baseUrl }) => {
  /** IDs of the exports that are being read. */
  const openExports = new Set<number>();
  const data = (): ThreadData => ({ thread: "export", file: db.$client.filename, baseUrl: baseUrl() });
  const thread = createThread<ThreadMessage, Uint8Array | null>({
    data,
    timeoutMs,
    what: "exporting",
    isInUse: () => openExports.size > 0,
  });
  return { thread, openExports, lastId: 0 };
});

/**
 * Exports run in one thread with its own database connection, so that no export delays a request. Exports that are read at the same time take turns.
 * A piece is made when the previous one was taken, so a slow reader uses no memory.
 */
export function streamExport(ctx: Context, order: ExportOrder): ExportPieces {
  if (!hasThreads()) return exportHere(ctx, order);
  const state = exportThreadOf(ctx);
  const { thread, openExports } = state;
  const id = ++state.lastId;
  let isStarted = false;
  openExports.add(id);
  return {
    async next() {
      const message: ThreadMessage = isStarted ? { id, step: "read" } : { id, step: "start", order };
      isStarted = true;
      let next: Uint8Array | null = null;
      try {
        next = await thread.call(message);
      } finally {
        if (next === null) openExports.delete(id);
      }
      return next;
    },
    close() {
      if (openExports.delete(id) && isStarted) thread.call({ id, step: "close" }).catch(() => {});
    },
  };
}

/** Ends the thread of exports. */
export const closeExports = (ctx: Context): Promise<void> => exportThreadOf(ctx).thread.end();

function exportHere(ctx: Context, order: ExportOrder): ExportPieces {
  const texts = writeExport(ctx, order);
  return {
    async next() {
      await turnOfOrg(ctx, order.span.org);
      return readPiece(texts, pieceLimitsHere);
    },
    close: () => void texts.return(undefined),
  };
}

/** The next part of a file, empty if it takes long to make; null at its end. */
function readPiece(texts: Iterator<string>, { chars, ms }: typeof pieceLimits): Uint8Array | null {
  let text = "";
  const startedAt = performance.now();
  while (text.length < chars && performance.now() - startedAt < ms) {
    const next = texts.next();
    if (next.done) return text === "" ? null : new TextEncoder().encode(text);
    text += next.value;
  }
  return new TextEncoder().encode(text);
}

/** In the thread of exports: returns the function that handles its calls. */
export function createExportHandler(
  { file, baseUrl }: ThreadData,
  now: () => number,
): (message: ThreadMessage) => Uint8Array | null {
  const log = createLog({ logLevel: "silent", logFormat: "json" });
  // The order contains all settings that an export needs.
  const config = readConfig({});
  const ctx = createContext({ db: openReader(file), config, log, agents: {}, baseUrl: () => baseUrl, now });
  const openExports = new Map<number, Generator<string>>();

  return (message) => {
    const { id } = message;
    if (message.step === "start") openExports.set(id, writeExport(ctx, message.order));
    const texts = openExports.get(id);
    if (message.step === "close") {
      openExports.delete(id);
      texts?.return(undefined);
      return null;
    }
    // Another thread began this export, and has ended.
    if (!texts) throw new Error("The export was interrupted.");
    let next: Uint8Array | null = null;
    try {
      next = readPiece(texts, pieceLimits);
    } finally {
      if (next === null) openExports.delete(id);
    }
    return next;
  };
}
