import type { FromWorker, Line } from "./messages.ts";

const batchBytes = 64 * 1024;
const batchMs = 20;
/** How many bytes may wait for the service. When there are more, the agent waits too. */
const maxWaitingBytes = 2 * 1024 * 1024;
const resendMs = 4_000;

type Batch = { number: number; lines: Line[]; bytes: number; sentAt: number };

const emptyBatch = (number: number): Batch => ({ number, lines: [], bytes: 0, sentAt: 0 });

/**
 * The lines of a session on their way to the service. They are sent in batches. A batch is kept until the service has taken it, and sent again if the
 * service hasn't taken it for a while.
 */
export type Outgoing = ReturnType<typeof openOutgoing>;

/** Prepares to send the lines of a session. */
export const openOutgoing = (key: string, send: (message: FromWorker) => void) => ({
  /** Key of the session. */
  key,
  send,
  /** Removes secrets that Redis must not get. The worker replaces this function if the session has a login file. */
  redact: (line: Line): Line => line,
  /** Batches that the service has not taken yet. */
  batches: [] as Batch[],
  /** The batch that lines are added to. */
  next: emptyBatch(1),
  timer: undefined as ReturnType<typeof setTimeout> | undefined,
  /** Resolves when batches were taken or dropped. */
  change: Promise.withResolvers<void>(),
  isDropped: false,
});

/** Adds a line. */
export function pushLine(outgoing: Outgoing, unredactedLine: Line): void {
  const { next, redact } = outgoing;
  const line = redact(unredactedLine);
  next.lines.push(line);
  next.bytes += JSON.stringify(line).length;
  if (next.bytes >= batchBytes) flush(outgoing);
  else outgoing.timer ??= setTimeout(flush, batchMs, outgoing);
}

/** Resolves when there is room for more. */
export async function waitForRoom(outgoing: Outgoing): Promise<void> {
  const isFull = () => outgoing.batches.reduce((sum, { bytes }) => sum + bytes, 0) > maxWaitingBytes;
  while (!outgoing.isDropped && isFull()) await outgoing.change.promise;
}

/** The service has taken the batches up to this one. */
export function confirmBatches(outgoing: Outgoing, number: number): void {
  outgoing.batches = outgoing.batches.filter((batch) => batch.number > number);
  // After a batch was lost, the service ignores the batches that follow it.
  const [oldest] = outgoing.batches;
  if (oldest && oldest.sentAt < performance.now() - resendMs)
    for (const batch of outgoing.batches) sendBatch(outgoing, batch);
  notify(outgoing);
}

/** Stops sending. */
export function dropLines(outgoing: Outgoing): void {
  outgoing.isDropped = true;
  clearTimeout(outgoing.timer);
  notify(outgoing);
}

/** Resolves when the service has taken everything, or when the lines were dropped. */
export async function waitUntilTaken(outgoing: Outgoing): Promise<void> {
  flush(outgoing);
  while (!outgoing.isDropped && outgoing.batches.length > 0) await outgoing.change.promise;
}

function flush(outgoing: Outgoing): void {
  const { next } = outgoing;
  clearTimeout(outgoing.timer);
  outgoing.timer = undefined;
  if (next.lines.length === 0 || outgoing.isDropped) return;
  outgoing.batches.push(next);
  sendBatch(outgoing, next);
  outgoing.next = emptyBatch(next.number + 1);
}

function sendBatch({ key, send }: Outgoing, batch: Batch): void {
  batch.sentAt = performance.now();
  send({ kind: "lines", key, number: batch.number, lines: batch.lines });
}

function notify(outgoing: Outgoing): void {
  outgoing.change.resolve();
  outgoing.change = Promise.withResolvers();
}
