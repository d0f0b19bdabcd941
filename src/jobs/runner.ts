import { hostname } from "node:os";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { createPoll } from "../poll.ts";
import type { Limits } from "./claim-order.ts";
import { JobFailure } from "./handler.ts";
import type { Lease } from "./queue.ts";
import { createSettlement, type SettlementOptions } from "./settlement.ts";

/** Maximum delay until jobs of another process, or free disk space, are noticed. */
const pollMs = 2_000;
/** Maximum delay until a job cancelled by another process is stopped. */
const watchMs = 500;
/** Smaller clock corrections are ignored, since they happen all the time. */
const clockStepMs = 60_000;
type RunnerOptions = SettlementOptions & {
  /** Jobs that may run at once, as of now. */
  concurrency: () => number;
  limits: Limits;
  /** How long a lease lasts without a heartbeat. */
  leaseMs?: number;
};

class Stopping extends Error {}
class Lost extends Error {}

const toFault = (detail: string) => new JobFailure({ cause: "infrastructure", detail }, "fault");

/** Claims jobs while slots are free, runs them, and settles each in one transaction with its result. */
export function createRunner(options: RunnerOptions) {
  const { log, now, queue, commit, concurrency, limits, onAttempt = () => {}, onError = () => {} } = options;
  const { leaseMs = 30_000 } = options;
  const { handlerOf, settle, takeBack, finish, release, afterFailure } = createSettlement(options);
  // Stored for people who debug the table.
  const owner = `${hostname()} pid ${process.pid}`;
  const active = new Map<string, { lease: Lease; abort: AbortController; done: Promise<void> }>();
  let beat: ReturnType<typeof setInterval> | undefined;
  let watch: ReturnType<typeof setInterval> | undefined;
  /** In milliseconds of the monotonic clock. */
  let searchedAt = Number.NEGATIVE_INFINITY;
  /** Wall clock minus monotonic clock at the last check. */
  let lead = now() - performance.now();
  let state: "idle" | "serving" | "draining" = "idle";
  let problem: string | null = null;

  const keyOf = ({ id, attempt }: Lease) => `${id} ${attempt}`;
  async function work(lease: Lease, stop: AbortSignal): Promise<void> {
    let write: (tx: Tx) => void;
    try {
      write = await handlerOf(lease).run(lease, stop);
    } catch (error) {
      onError(error);
      // The process that took the job recorded the reason.
      if (stop.reason instanceof Lost) return;
      if (stop.aborted) return await settle(lease, stop, (tx) => release(tx, lease));
      log.info({ job: lease.id, subject: lease.subject, attempt: lease.attempt, err: error }, "attempt failed");
      const failure = error instanceof JobFailure ? error : toFault(String(error));
      return await settle(lease, stop, (tx) => afterFailure(tx, lease, failure));
    }
    try {
      await settle(lease, stop, (tx) => finish(tx, lease, write));
    } catch (error) {
      if (diskFault(error) !== null) throw error;
      log.error({ job: lease.id, subject: lease.subject, err: error }, "could not store result");
      const failure = toFault(`the result could not be stored: ${String(error)}`);
      await settle(lease, stop, (tx) => afterFailure(tx, lease, failure));
    }
  }

  function launch(lease: Lease): void {
    const abort = new AbortController();
    const done = work(lease, abort.signal)
      .catch((error) => {
        // The lease expires and the job is requeued, so nothing is lost.
        log.error({ job: lease.id, subject: lease.subject, err: error }, "could not finish job");
      })
      .finally(() => {
        active.delete(keyOf(lease));
        poll.wake();
      });
    active.set(keyOf(lease), { lease, abort, done });
  }

  /** Requeues orphaned jobs, but never those that this process is running, even if the clock was set. */
  async function takeBackOrphans(which: "all" | "expired"): Promise<void> {
    const orphans = queue.listOrphans(which).filter((lease) => !active.has(keyOf(lease)));
    if (orphans.length === 0) return;
    const taken = await commit((tx) => orphans.filter((lease) => takeBack(tx, lease)));
    if (taken.length > 0) log.warn({ taken: taken.length }, "requeued jobs of a process that died");
    for (const lease of taken) onAttempt(lease);
  }

  async function heartbeat(): Promise<void> {
    const held = [...active.values()];
    if (held.length === 0) return;
    try {
      await commit((tx) => held.map(({ lease }) => queue.heartbeat(tx, lease, leaseMs)));
    } catch (error) {
      onError(error);
      log.error({ err: error }, "could not write heartbeat");
    }
  }

  function dropLost(): void {
    try {
      for (const { lease, abort } of active.values())
        if (!abort.signal.aborted && !queue.holds(lease)) abort.abort(new Lost("this process no longer holds the job"));
    } catch (error) {
      onError(error);
    }
  }

  /** Fills the free slots. Returns the milliseconds until the next check. */
  async function lookForWork(): Promise<number> {
    // Checked here rather than by a timer, which a busy service would keep resetting.
    if (performance.now() - searchedAt >= pollMs) {
      searchedAt = performance.now();
      await takeBackOrphans("expired");
    }
    const shift = now() - performance.now() - lead;
    // If the clock was set back, waiting jobs would wait longer by that amount.
    if (shift < -clockStepMs) await commit((tx) => queue.bringForward(tx, Math.round(-shift)));
    lead += shift;
    const most = concurrency() - active.size;
    if (most <= 0) return pollMs;
    const { leases, nextDueAt } = await commit((tx) => {
      if (state !== "serving") return { leases: [], nextDueAt: null };
      const claimed = queue.claim(tx, most, owner, leaseMs, limits);
      for (const lease of claimed.leases) handlerOf(lease).started(tx, lease);
      return claimed;
    });
    for (const lease of leases) launch(lease);
    problem = null;
    return nextDueAt === null ? pollMs : Math.max(1, Math.min(pollMs, nextDueAt - now()));
  }

  const poll = createPoll({
    check: lookForWork,
    onError(error) {
      onError(error);
      problem = error instanceof Error ? error.message : String(error);
      log.error({ err: error }, "could not claim jobs");
    },
    retryMs: pollMs,
  });

  return {
    /** Requeues jobs that a previous process left behind, then starts serving. Call it under the data lock. */
    async start(): Promise<void> {
      await takeBackOrphans("all");
      state = "serving";
      beat = setInterval(heartbeat, leaseMs / 3);
      watch = setInterval(dropLost, watchMs);
      poll.start();
    },
    wake: poll.wake,
    /** Stops jobs that are no longer held. Call it after the transaction that cancelled them. */
    dropLost,
    /** Why no jobs are claimed: `draining`, `idle` before the start, or a database error; null if they are. */
    findProblem: (): string | null => (state === "serving" ? problem : state),
    /** Stops claiming immediately, without waiting for running jobs. For a process that is about to exit. */
    halt(): void {
      state = "draining";
      poll.stop();
    },
    /** Stops claiming, waits `drainMs` for running jobs, then requeues the rest without using an attempt. */
    async stop(drainMs: number): Promise<void> {
      state = "draining";
      await poll.stop();
      await drain([...active.values()], drainMs);
      clearInterval(beat);
      clearInterval(watch);
    },
  };
}

/** Waits `drainMs` for jobs, stops those that are left, and waits for them. */
async function drain(jobs: { abort: AbortController; done: Promise<void> }[], drainMs: number): Promise<void> {
  const all = Promise.allSettled(jobs.map(({ done }) => done));
  let alarm: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => (alarm = setTimeout(resolve, drainMs, "late")));
  if ((await Promise.race([all, late])) === "late")
    for (const { abort } of jobs) abort.abort(new Stopping("the service is stopping"));
  clearTimeout(alarm);
  await all;
}
