import type { Failure, FailureCause } from "../agents/failure.ts";
import type { Tx } from "../db/open.ts";
import type { Lease } from "./queue.ts";

/** The stored reason of a failed job. If the job is a run, it has a code. */
export type StoredReason = { cause: FailureCause; detail: string } & Partial<Pick<Failure, "code" | "subject">>;

/**
 * Why an attempt of a job failed. `fault`: an infrastructure fault, which uses no attempt. `attempt`: its own failure, which uses one. `wait`: it
 * must wait for others, no matter how often.
 */
export class JobFailure extends Error {
  override readonly name = "JobFailure";
  constructor(
    /** The failure that is stored if the job is not retried. */
    readonly failure: StoredReason,
    readonly retry: "fault" | "attempt" | "wait" | "never",
    readonly retryAfterMs = 0,
    cause?: unknown,
  ) {
    super(`${failure.cause}: ${failure.detail}`, { cause });
  }
}

/** How a feature handles its jobs. Functions that take a `tx` run in the transaction that changes the job's state. */
export type JobHandler = {
  onStart(tx: Tx, lease: Lease): void;
  /**
   * Does the work. Returns a function that writes the result, which is called if the lease is still held. Stops when `signal` aborts. Throws a
   * JobFailure.
   */
  run(lease: Lease, signal: AbortSignal): Promise<(tx: Tx) => void>;
  /** Called when the job is requeued. `isWaiting`: it is requeued because it must wait for others. */
  onRequeue(tx: Tx, lease: Lease, isWaiting: boolean): void;
  onFailure(tx: Tx, lease: Lease, failure: StoredReason): void;
  /** Cost of the attempt so far in USD; null if unknown. */
  costOf(lease: Lease): number | null;
};
