import type { Config } from "../config/config.ts";
import { type Context, perContext } from "../context.ts";
import { yieldToEventLoop } from "../event-loop.ts";
import { createThread, hasThreads } from "../jobs/thread.ts";
import { type ExportOrder, writeExport } from "./writer.ts";

/** Size of a piece of a file, and the time after which a smaller one is returned. */
const piece = { chars: 256 * 1024, ms: 100 };
/** The same in the service's own thread, which handles other requests between pieces. */
const ownPiece = { chars: 64 * 1024, ms: 10 };
/** A piece takes milliseconds; one with a large archive takes longer. */
const timeoutMs = 120_000;

type Step = { id: number; order?: ExportOrder; isClosed?: true };

/** What the thread of exports is started with. */
export type ExportThreadData = { work: "export"; file: string; baseUrl: string; config: Config };

/** A file that is read piece by piece: `next` resolves to null at its end, and `close` stops it early. */
export type ExportPieces = { next(): Promise<Uint8Array | null>; close(): void };

/**
 * Exports in one thread with a database connection of its own, so that no export delays a request. Exports that are read at the same time take
 * turns. A piece is made when the last one was taken, so a slow reader uses no memory. In a program without threads, the caller's thread exports.
 */
export const exportThreadOf = perContext((ctx) => {
  const open = new Set<number>();
  let lastId = 0;
  let thread: ReturnType<typeof createThread<Step, Uint8Array | null>> | null = null;

  function start() {
    const { db, config } = ctx;
    const data: ExportThreadData = { work: "export", file: db.$client.filename, baseUrl: ctx.baseUrl(), config };
    return createThread<Step, Uint8Array | null>({ data, timeoutMs, what: "exporting", isInUse: () => open.size > 0 });
  }

  return {
    stream(order: ExportOrder): ExportPieces {
      if (!hasThreads()) return streamInOwnThread(ctx, order);
      thread ??= start();
      const { ask } = thread;
      const id = ++lastId;
      let isStarted = false;
      open.add(id);
      return {
        async next() {
          const step = isStarted ? { id } : { id, order };
          isStarted = true;
          const next = await ask(step).catch((error: unknown) => {
            open.delete(id);
            throw error;
          });
          if (next === null) open.delete(id);
          return next;
        },
        close() {
          if (open.delete(id) && isStarted) ask({ id, isClosed: true }).catch(() => {});
        },
      };
    },
    close: async (): Promise<void> => thread?.end(),
  };
});

function streamInOwnThread(ctx: Context, order: ExportOrder): ExportPieces {
  const texts = writeExport(ctx, order);
  return {
    async next() {
      await yieldToEventLoop();
      return readPiece(texts, ownPiece);
    },
    close: () => void texts.return(undefined),
  };
}

/** The next part of a file, empty if it takes long to read; null at its end. */
function readPiece(texts: Iterator<string>, { chars, ms }: typeof piece): Uint8Array | null {
  let text = "";
  const startedAt = performance.now();
  while (text.length < chars && performance.now() - startedAt < ms) {
    const next = texts.next();
    if (next.done) return text === "" ? null : new TextEncoder().encode(text);
    text += next.value;
  }
  return new TextEncoder().encode(text);
}

/** In the thread of exports: how it answers. `ctx`: of the thread, with a connection of its own. */
export function createExportAnswers(ctx: Context): (step: Step) => Uint8Array | null {
  const open = new Map<number, Generator<string>>();

  return ({ id, order, isClosed }) => {
    if (order) open.set(id, writeExport(ctx, order));
    const texts = open.get(id);
    if (!isClosed && !texts) throw new Error("the export was interrupted");
    let next: Uint8Array | null = null;
    try {
      if (isClosed) texts?.return(undefined);
      else if (texts) next = readPiece(texts, piece);
    } finally {
      if (next === null) open.delete(id);
    }
    return next;
  };
}
