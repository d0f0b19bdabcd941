import type { Context } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { JobFailure, type JobHandler } from "./handler.ts";
import type { Lease, Queue, Return } from "./queue.ts";

/** How long a result is kept in memory while the disk is full, before its job starts over. */
const keepResultMs = 60_000;
/** Upper limit for a Retry-After. */
const defaultMaxRetryAfterMs = 3600_000;
const maxFaults = 5;
/** High, because a service may crash for other reasons; limited, because the job may be the cause. */
const maxCrashes = 20;
const crashedTooOften = `the service crashed ${maxCrashes} times during this job`;
const maxCrashPauseMs = 60_000;

export type SettlementOptions = Pick<Context, "log" | "now"> & {
  queue: Queue;
  commit: Commit;
  /** Handlers by job kind. */
  handlers: Record<string, JobHandler>;
  /** Called after the end of an attempt is stored, with any outcome. */
  onAttempt?: (lease: Lease) => void;
  /** Called with every database error. */
  onError?: (error: unknown) => void;
  /** Delay before the next attempt in milliseconds, by the number of failures of the same kind. */
  backoffMs?: (failures: number) => number;
  maxRetryAfterMs?: number;
};

/** Exponential backoff from 5 s with full jitter, between 1 s and 15 minutes. */
const defaultBackoff = (failures: number) =>
  Math.max(1_000, Math.random() * Math.min(15 * 60_000, 5_000 * 2 ** (failures - 1)));

/** Ends an attempt of a job: done, failed or requeued. All but `settle` run in the caller's transaction and return whether the lease was still held. */
export function createSettlement({
  log,
  queue,
  commit,
  handlers,
  onAttempt = () => {},
  onError = () => {},
  backoffMs = defaultBackoff,
  maxRetryAfterMs = defaultMaxRetryAfterMs,
}: SettlementOptions) {
  const handlerOf = (lease: Lease): JobHandler => {
    const handler = handlers[lease.kind];
    if (!handler) throw new Error(`no handler for jobs of kind ${lease.kind}`);
    return handler;
  };

  function fail(tx: Tx, lease: Lease, { message, failure }: JobFailure): boolean {
    const handler = handlerOf(lease);
    const held = queue.settle(tx, lease, "failed", message, handler.costOf(lease));
    if (held) handler.failed(tx, lease, failure);
    return held;
  }

  function putBack(tx: Tx, lease: Lease, how: Omit<Return, "costUsd">): boolean {
    const handler = handlerOf(lease);
    const held = queue.putBack(tx, lease, { ...how, costUsd: handler.costOf(lease) });
    if (held) handler.returned(tx, lease);
    return held;
  }

  /** Requeues the job of an exited process. From the second crash on it waits first, because the job may be what crashes the service. */
  function takeBack(tx: Tx, lease: Lease): boolean {
    if (lease.crashes + 1 >= maxCrashes)
      return fail(tx, lease, new JobFailure({ cause: "infrastructure", detail: crashedTooOften }, "never"));
    const delayMs = lease.crashes === 0 ? 0 : Math.min(backoffMs(lease.crashes), maxCrashPauseMs);
    const reason = "the process running the job exited";
    return putBack(tx, lease, { outcome: "lost", counts: "crashes", delayMs, reason });
  }

  function afterFailure(tx: Tx, lease: Lease, failure: JobFailure): boolean {
    const counts = failure.retry === "fault" ? "faults" : "spent";
    const before = counts === "faults" ? lease.faults : lease.spent;
    const most = counts === "faults" ? maxFaults : lease.maxAttempts;
    if (failure.retry === "never" || before + 1 >= most) return fail(tx, lease, failure);
    const delayMs = Math.max(Math.min(failure.retryAfterMs, maxRetryAfterMs), backoffMs(before + 1));
    return putBack(tx, lease, { outcome: "retried", counts, delayMs, reason: failure.message });
  }

  /** Stores how an attempt ended. Retries while the disk is full, until the lease ends or `stop` aborts. */
  async function settle(lease: Lease, stop: AbortSignal, write: (tx: Tx) => boolean): Promise<void> {
    const until = performance.now() + keepResultMs;
    for (;;) {
      try {
        if (!(await commit(write)))
          log.warn({ job: lease.id, subject: lease.subject }, "result discarded: this process no longer holds the job");
        else onAttempt(lease);
        return;
      } catch (error) {
        onError(error);
        if (diskFault(error) !== "full" || performance.now() > until || stop.aborted) throw error;
        await Bun.sleep(1_000);
      }
    }
  }

  function finish(tx: Tx, lease: Lease, write: (tx: Tx) => void): boolean {
    const held = queue.settle(tx, lease, "done", null, handlerOf(lease).costOf(lease));
    if (held) write(tx);
    return held;
  }

  const release = (tx: Tx, lease: Lease): boolean =>
    putBack(tx, lease, { outcome: "released", counts: null, delayMs: 0, reason: "the service was shut down" });

  return { handlerOf, settle, takeBack, finish, release, afterFailure };
}
