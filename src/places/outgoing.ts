import type { FromWorker, Line } from "./messages.ts";

const batchBytes = 64 * 1024;
const batchMs = 20;
/** Bytes that wait for the service; then the agent waits too. */
const maxWaitingBytes = 2 * 1024 * 1024;
const resendMs = 4_000;

type Batch = { number: number; lines: Line[]; bytes: number; sentAt: number };

/** The lines of a session on their way to the service: sent in batches, kept until the service has taken them, and sent again if it didn't. */
export function createOutgoing(key: string, send: (message: FromWorker) => void) {
  let batches: Batch[] = [];
  let next: Batch = { number: 1, lines: [], bytes: 0, sentAt: 0 };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let changed = Promise.withResolvers<void>();
  let isOver = false;

  function dispatch(batch: Batch): void {
    batch.sentAt = performance.now();
    send({ kind: "lines", key, number: batch.number, lines: batch.lines });
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (next.lines.length === 0 || isOver) return;
    batches.push(next);
    dispatch(next);
    next = { number: next.number + 1, lines: [], bytes: 0, sentAt: 0 };
  }

  const waiting = () => batches.reduce((bytes, each) => bytes + each.bytes, 0);
  function notify(): void {
    changed.resolve();
    changed = Promise.withResolvers();
  }

  return {
    /** Adds a line. */
    push(line: Line): void {
      next.lines.push(line);
      next.bytes += JSON.stringify(line).length;
      if (next.bytes >= batchBytes) flush();
      else timer ??= setTimeout(flush, batchMs);
    },
    /** Resolves when there is room for more. */
    async room(): Promise<void> {
      while (!isOver && waiting() > maxWaitingBytes) await changed.promise;
    },
    /** The service has taken the batches up to this one. */
    taken(number: number): void {
      batches = batches.filter((batch) => batch.number > number);
      if ((batches[0]?.sentAt ?? Number.POSITIVE_INFINITY) < performance.now() - resendMs) batches.forEach(dispatch);
      notify();
    },
    /** Sends nothing more. */
    drop(): void {
      isOver = true;
      clearTimeout(timer);
      notify();
    },
    /** Resolves when everything was taken, or dropped. */
    async done(): Promise<void> {
      flush();
      while (!isOver && batches.length > 0) await changed.promise;
    },
  };
}
