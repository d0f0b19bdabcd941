import { toFailure } from "../agents/failure.ts";
import type { Context } from "../context.ts";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { JobFailure, type JobHandler } from "./handler.ts";
import { type Lease, type Requeue, requeueJob, settleJob } from "./queue.ts";

/** How long a result is kept in memory while the disk is full, before its job starts over. */
const keepResultMs = 60_000;
/** Upper limit for a Retry-After. */
const defaultMaxRetryAfterMs = 3600_000;
/** The number of infrastructure faults after which a job fails. */
export const maxFaults = 5;
/**
 * The number of crashes after which a job fails. It is high because a service may crash for other reasons. It is limited because the job may be the
 * cause.
 */
const maxCrashes = 20;
const crashedTooOften = new JobFailure(
  toFailure("service_crashed", `the service crashed ${maxCrashes} times during this job`),
  "never",
);
const maxCrashPauseMs = 60_000;

/** How a runner ends its jobs. */
export type Settlement = {
  ctx: Context;
  /** Handlers by job kind. */
  handlers: Record<string, JobHandler>;
  /** Called after the end of an attempt is stored, whatever the outcome. */
  onAttempt?: ((lease: Lease) => void) | undefined;
  /** Delay before the next attempt in milliseconds, by the number of failures of the same kind. */
  backoffMs?: ((failures: number) => number) | undefined;
  maxRetryAfterMs?: number | undefined;
};

/** Exponential backoff from 5 s with full jitter, between 1 s and 15 minutes. */
const defaultBackoff = (failures: number) =>
  Math.max(1_000, Math.random() * Math.min(15 * 60_000, 5_000 * 2 ** (failures - 1)));

/**
 * The same for infrastructure faults. From the second fault on, the delay is at least 15 s, and this minimum doubles each time. So five faults of one
 * outage, such as a restart of a server, take at least 106 s.
 */
const defaultFaultBackoff = (faults: number) =>
  Math.max(defaultBackoff(faults), faults === 1 ? 0 : 15_000 * 2 ** (faults - 2));

/** The handler for the kind of a job. Throws if there is none. */
export function handlerOf({ handlers }: Settlement, { kind }: Lease): JobHandler {
  const handler = handlers[kind];
  if (!handler) throw new Error(`There is no handler for jobs of kind ${kind}.`);
  return handler;
}

// All functions with a `tx` run in the caller's transaction and return whether the lease was still held.

/** Stores the result of a job. */
export function finishJob(settlement: Settlement, tx: Tx, lease: Lease, write: (tx: Tx) => void): boolean {
  const costUsd = handlerOf(settlement, lease).costOf(lease);
  const isHeld = settleJob(settlement.ctx, tx, lease, { state: "done", reason: null, costUsd });
  if (isHeld) write(tx);
  return isHeld;
}

/** Requeues the job of an exited process. From the second crash on it waits first, because the job may be what crashes the service. */
export function requeueLostJob(settlement: Settlement, tx: Tx, lease: Lease): boolean {
  if (lease.crashes + 1 >= maxCrashes) return failJob(settlement, tx, lease, crashedTooOften);
  const { backoffMs = defaultBackoff } = settlement;
  const delayMs = lease.crashes === 0 ? 0 : Math.min(backoffMs(lease.crashes), maxCrashPauseMs);
  const reason = "the process running the job exited";
  return requeue(settlement, tx, lease, { outcome: "lost", counter: "crashes", delayMs, reason });
}

/** Requeues a job after a failed attempt, or fails it if it may not be retried again. */
export function settleFailure(settlement: Settlement, tx: Tx, lease: Lease, failure: JobFailure): boolean {
  if (failure.retry === "wait") {
    const { retryAfterMs: delayMs, message: reason } = failure;
    return requeue(settlement, tx, lease, { outcome: "released", counter: null, delayMs, reason, isWaiting: true });
  }
  const isFault = failure.retry === "fault";
  const counter = isFault ? "faults" : "spent";
  const failures = lease[counter] + 1;
  const maxFailures = isFault ? maxFaults : lease.maxAttempts;
  if (failure.retry === "never" || failures >= maxFailures) return failJob(settlement, tx, lease, failure);
  const { maxRetryAfterMs = defaultMaxRetryAfterMs } = settlement;
  const { backoffMs = isFault ? defaultFaultBackoff : defaultBackoff } = settlement;
  const delayMs = Math.max(Math.min(failure.retryAfterMs, maxRetryAfterMs), backoffMs(failures));
  return requeue(settlement, tx, lease, { outcome: "retried", counter, delayMs, reason: failure.message });
}

/** Requeues a job because the service stops. This uses no attempt. */
export const releaseJob = (settlement: Settlement, tx: Tx, lease: Lease): boolean =>
  requeue(settlement, tx, lease, {
    outcome: "released",
    counter: null,
    delayMs: 0,
    reason: "the service was shut down",
  });

/** Stores how an attempt ended. Retries while the disk is full, until the lease ends or `stop` aborts. */
export async function storeEnd(
  { ctx, onAttempt }: Settlement,
  lease: Lease,
  stop: AbortSignal,
  write: (tx: Tx) => boolean,
): Promise<void> {
  const until = performance.now() + keepResultMs;
  for (;;) {
    try {
      if (await ctx.commit(write)) return onAttempt?.(lease);
      const { id, subject } = lease;
      return ctx.log.warn({ job: id, subject }, "result discarded: this process no longer holds the job");
    } catch (error) {
      ctx.disk.onError(error);
      if (diskFault(error) !== "full" || performance.now() > until || stop.aborted) throw error;
      await Bun.sleep(1_000);
    }
  }
}

function failJob(settlement: Settlement, tx: Tx, lease: Lease, { message, failure }: JobFailure): boolean {
  const handler = handlerOf(settlement, lease);
  const costUsd = handler.costOf(lease);
  const isHeld = settleJob(settlement.ctx, tx, lease, { state: "failed", reason: message, costUsd });
  if (isHeld) handler.onFailure(tx, lease, failure);
  return isHeld;
}

function requeue(
  settlement: Settlement,
  tx: Tx,
  lease: Lease,
  { isWaiting = false, ...change }: Omit<Requeue, "costUsd"> & { isWaiting?: boolean },
): boolean {
  const handler = handlerOf(settlement, lease);
  const isHeld = requeueJob(settlement.ctx, tx, lease, { ...change, costUsd: handler.costOf(lease) });
  if (isHeld) handler.onRequeue(tx, lease, isWaiting);
  return isHeld;
}
