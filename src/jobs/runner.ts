import { hostname } from "node:os";
import type { Context } from "../context.ts";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { reasonOf } from "../errors.ts";
import { createPoll } from "../poll.ts";
import type { Limits } from "./claim-order.ts";
import { JobFailure } from "./handler.ts";
import {
  bringJobsForward,
  claimJobs,
  extendLease,
  isLeaseHeld,
  type Lease,
  listOrphanedJobs,
  type Pool,
} from "./queue.ts";
import {
  finishJob,
  handlerOf,
  releaseJob,
  requeueLostJob,
  type Settlement,
  settleFailure,
  storeEnd,
} from "./settlement.ts";

/** Maximum delay until jobs of another process, or free disk space, are noticed. */
const pollMs = 2_000;
/** Maximum delay until a job cancelled by another process is stopped. */
const watchMs = 500;
/** Smaller clock corrections are ignored, since they happen all the time. */
const clockStepMs = 60_000;
type Options = Omit<Settlement, "ctx"> & {
  pool: Pool;
  /** Jobs that may run at once, as of now. */
  concurrency: () => number;
  limits: Limits;
  /** How long a lease lasts without a heartbeat. */
  leaseMs?: number;
};

class ServiceStopping extends Error {}
class LeaseLost extends Error {}

const toFault = (detail: string) => new JobFailure({ cause: "infrastructure", detail }, "fault");

/** Claims jobs while fewer than `concurrency` run, runs them, and settles each in one transaction with its result. */
export function createRunner(ctx: Context, options: Options) {
  const { log, now, commit } = ctx;
  const { onError } = ctx.disk;
  const { pool, concurrency, limits, leaseMs = 30_000 } = options;
  const settlement: Settlement = { ctx, ...options };
  // This is stored for people who debug the table.
  const owner = `${hostname()} pid ${process.pid}`;
  const active = new Map<string, { lease: Lease; abort: AbortController; done: Promise<void> }>();
  let heartbeatTimer: ReturnType<typeof setInterval> | undefined;
  let leaseTimer: ReturnType<typeof setInterval> | undefined;
  /** In milliseconds of the monotonic clock. */
  let searchedAt = Number.NEGATIVE_INFINITY;
  /** Wall clock minus monotonic clock at the last check. */
  let clockLead = now() - performance.now();
  let state: "idle" | "serving" | "draining" = "idle";
  let problem: string | null = null;

  function launch(lease: Lease): void {
    const abort = new AbortController();
    const done = runJob(settlement, lease, abort.signal)
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
  async function requeueOrphans(which: "all" | "expired"): Promise<void> {
    const orphans = listOrphanedJobs(ctx, pool, which).filter((lease) => !active.has(keyOf(lease)));
    if (orphans.length === 0) return;
    const requeued = await commit((tx) => orphans.filter((lease) => requeueLostJob(settlement, tx, lease)));
    if (requeued.length > 0) log.warn({ taken: requeued.length }, "requeued jobs of a process that died");
    for (const lease of requeued) options.onAttempt?.(lease);
  }

  async function heartbeat(): Promise<void> {
    const held = [...active.values()];
    if (held.length === 0) return;
    try {
      await commit((tx) => held.map(({ lease }) => extendLease(ctx, tx, lease, leaseMs)));
    } catch (error) {
      onError(error);
      log.error({ err: error }, "could not write heartbeat");
    }
  }

  function stopLostJobs(): void {
    try {
      for (const { lease, abort } of active.values())
        if (!abort.signal.aborted && !isLeaseHeld(ctx, lease))
          abort.abort(new LeaseLost("this process no longer holds the job"));
    } catch (error) {
      onError(error);
    }
  }

  /** Claims as many jobs as may run. Returns the milliseconds until the next check. */
  async function claimWork(): Promise<number> {
    // This is checked here rather than by a timer, which a busy service would keep resetting.
    if (performance.now() - searchedAt >= pollMs) {
      searchedAt = performance.now();
      await requeueOrphans("expired");
    }
    const shift = now() - performance.now() - clockLead;
    // If the clock was set back, waiting jobs would wait longer by that amount.
    if (shift < -clockStepMs) await commit((tx) => bringJobsForward(ctx, tx, pool, Math.round(-shift)));
    clockLead += shift;
    const free = concurrency() - active.size;
    if (free <= 0) return pollMs;
    const { leases, nextDueAt } = await commit((tx) => {
      if (state !== "serving") return { leases: [], nextDueAt: null };
      const claimed = claimJobs(ctx, tx, { pool, max: free, owner, leaseMs, limits });
      for (const lease of claimed.leases) handlerOf(settlement, lease).onStart(tx, lease);
      return claimed;
    });
    for (const lease of leases) launch(lease);
    problem = null;
    return nextDueAt === null ? pollMs : Math.max(1, Math.min(pollMs, nextDueAt - now()));
  }

  const poll = createPoll({
    check: claimWork,
    onError(error) {
      onError(error);
      problem = reasonOf(error);
      log.error({ err: error }, "could not claim jobs");
    },
    retryMs: pollMs,
  });

  return {
    /** Requeues jobs that a previous process left behind, then starts serving. Call it under the data lock. */
    async start(): Promise<void> {
      await requeueOrphans("all");
      state = "serving";
      heartbeatTimer = setInterval(heartbeat, leaseMs / 3);
      leaseTimer = setInterval(stopLostJobs, watchMs);
      poll.start();
    },
    wake: poll.wake,
    /** Stops jobs that are no longer held. Call it after the transaction that cancelled them. */
    stopLostJobs,
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
      clearInterval(heartbeatTimer);
      clearInterval(leaseTimer);
    },
  };
}

const keyOf = ({ id, attempt }: Lease): string => `${id} ${attempt}`;

/** Runs a claimed job and stores how it ended. */
async function runJob(settlement: Settlement, lease: Lease, stop: AbortSignal): Promise<void> {
  const { log, disk } = settlement.ctx;
  let write: (tx: Tx) => void;
  try {
    write = await handlerOf(settlement, lease).run(lease, stop);
  } catch (error) {
    disk.onError(error);
    // The process that took the job recorded the reason.
    if (stop.reason instanceof LeaseLost) return;
    if (stop.aborted) return await storeEnd(settlement, lease, stop, (tx) => releaseJob(settlement, tx, lease));
    log.info({ job: lease.id, subject: lease.subject, attempt: lease.attempt, err: error }, "attempt failed");
    const failure = error instanceof JobFailure ? error : toFault(String(error));
    return await storeEnd(settlement, lease, stop, (tx) => settleFailure(settlement, tx, lease, failure));
  }
  try {
    await storeEnd(settlement, lease, stop, (tx) => finishJob(settlement, tx, lease, write));
  } catch (error) {
    if (diskFault(error) !== null) throw error;
    log.error({ job: lease.id, subject: lease.subject, err: error }, "could not store result");
    const failure = toFault(`the result could not be stored: ${String(error)}`);
    await storeEnd(settlement, lease, stop, (tx) => settleFailure(settlement, tx, lease, failure));
  }
}

/** Waits `drainMs` for jobs, stops those that are left, and waits for them. */
async function drain(jobs: { abort: AbortController; done: Promise<void> }[], drainMs: number): Promise<void> {
  const all = Promise.allSettled(jobs.map(({ done }) => done));
  let alarm: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => (alarm = setTimeout(resolve, drainMs, "late")));
  if ((await Promise.race([all, late])) === "late")
    for (const { abort } of jobs) abort.abort(new ServiceStopping("the service is stopping"));
  clearTimeout(alarm);
  await all;
}
