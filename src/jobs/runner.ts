import { hostname } from "node:os";
import { toFailure } from "../agents/failure.ts";
import type { Context } from "../context.ts";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { settlesWithin } from "../deadline.ts";
import { reasonOf } from "../errors.ts";
import { createPoll } from "../poll.ts";
import type { Limits, Pool } from "./claim-order.ts";
import { JobFailure } from "./handler.ts";
import {
  attemptKey,
  bringJobsForward,
  claimJobs,
  extendLease,
  isLeaseHeld,
  type Lease,
  listOrphanedJobs,
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

/** Maximum delay until the runner notices jobs of another process or free disk space. */
const pollMs = 2_000;
/** How often running jobs are checked for a lost lease. A job that another process cancelled is stopped after this delay at the latest. */
const leaseCheckMs = 500;
/** Smaller clock corrections are ignored, since they happen all the time. */
const clockStepMs = 60_000;

/** How jobs of the runner are settled, and which jobs it claims. */
type RunnerOptions = Omit<Settlement, "ctx"> & {
  pool: Pool;
  /** Jobs that may run at once, as of now. */
  concurrency: () => number;
  limits: Limits;
  /** How long a lease lasts without a heartbeat. */
  leaseMs?: number | undefined;
};

type ActiveJob = { lease: Lease; abort: AbortController; done: Promise<void> };

type Runner = RunnerOptions & {
  ctx: Context;
  leaseMs: number;
  /** The running jobs, by their key. */
  active: Map<string, ActiveJob>;
  /** When orphaned jobs were last looked for, in milliseconds of the monotonic clock. */
  orphansCheckedAt: number;
  /** Wall clock minus monotonic clock at the last check. */
  clockLead: number;
  state: "idle" | "serving" | "draining";
  /** Why no jobs could be claimed at the last check; null if they could. */
  problem: string | null;
};

class ServiceStopping extends Error {}
class LeaseLost extends Error {}

const toFault = (detail: string, error: unknown) =>
  new JobFailure(toFailure(diskFault(error) === "full" ? "disk_full" : "internal_error", detail), "fault");

/** This is stored for people who debug the table. */
const owner = `${hostname()} pid ${process.pid}`;

/** Claims jobs while fewer than `concurrency` run, runs them, and settles each in one transaction with its result. */
export function createRunner(ctx: Context, { leaseMs = 30_000, ...options }: RunnerOptions) {
  const runner: Runner = {
    ctx,
    ...options,
    leaseMs,
    active: new Map(),
    orphansCheckedAt: Number.NEGATIVE_INFINITY,
    clockLead: ctx.now() - performance.now(),
    state: "idle",
    problem: null,
  };
  let timers: ReturnType<typeof setInterval>[] = [];
  const poll = createPoll({
    check: () => claimWork(runner, () => poll.wake()),
    onError(error) {
      ctx.disk.onError(error);
      runner.problem = reasonOf(error);
      ctx.log.error({ err: error }, "could not claim jobs");
    },
    retryMs: pollMs,
  });
  return {
    /** Requeues jobs that a previous process left behind, then starts serving. Call it under the data lock. */
    async start(): Promise<void> {
      await requeueOrphans(runner, "all");
      runner.state = "serving";
      timers = [
        setInterval(() => extendLeases(runner), leaseMs / 3),
        setInterval(() => stopLostJobs(runner), leaseCheckMs),
      ];
      poll.start();
    },
    wake: poll.wake,
    /** Stops jobs that are no longer held. Call it after the transaction that cancelled them. */
    stopLostJobs: (): void => stopLostJobs(runner),
    /** Why no jobs are claimed: `draining`, `idle` before the start, or a database error; null: jobs are claimed. */
    findProblem: (): string | null => (runner.state === "serving" ? runner.problem : runner.state),
    /** Stops claiming immediately, without waiting for running jobs. For a process that is about to exit. */
    halt(): void {
      runner.state = "draining";
      poll.stop();
    },
    /** Stops claiming and waits `drainMs` for running jobs. Then it requeues the other jobs without using an attempt. */
    async stop(drainMs: number): Promise<void> {
      runner.state = "draining";
      await poll.stop();
      await drain([...runner.active.values()], drainMs);
      for (const timer of timers) clearInterval(timer);
    },
  };
}

/** Claims as many jobs as may run. Returns the milliseconds until the next check. `onEnd`: called when one of the jobs has ended. */
async function claimWork(runner: Runner, onEnd: () => void): Promise<number> {
  const { ctx, pool, limits, leaseMs } = runner;
  // This is checked here rather than by a timer, which a busy service would keep resetting.
  if (performance.now() - runner.orphansCheckedAt >= pollMs) {
    runner.orphansCheckedAt = performance.now();
    await requeueOrphans(runner, "expired");
  }
  const shift = ctx.now() - performance.now() - runner.clockLead;
  // If the clock was set back, waiting jobs would wait longer by that amount.
  if (shift < -clockStepMs) await ctx.commit((tx) => bringJobsForward(ctx, tx, pool, Math.round(-shift)));
  runner.clockLead += shift;
  const free = runner.concurrency() - runner.active.size;
  if (free <= 0) return pollMs;
  const { leases, nextDueAt } = await ctx.commit((tx) => {
    if (runner.state !== "serving") return { leases: [], nextDueAt: null };
    const claim = claimJobs(ctx, tx, { pool, max: free, owner, leaseMs, limits });
    for (const lease of claim.leases) handlerOf(runner, lease).onStart(tx, lease);
    return claim;
  });
  for (const lease of leases) launchJob(runner, lease, onEnd);
  runner.problem = null;
  return nextDueAt === null ? pollMs : Math.max(1, Math.min(pollMs, nextDueAt - ctx.now()));
}

function launchJob(runner: Runner, lease: Lease, onEnd: () => void): void {
  const abort = new AbortController();
  const done = runJob(runner, lease, abort.signal)
    .catch((error) => {
      // The lease expires and the job is requeued, so nothing is lost.
      runner.ctx.log.error({ job: lease.id, subject: lease.subject, err: error }, "could not finish job");
    })
    .finally(() => {
      runner.active.delete(attemptKey(lease));
      onEnd();
    });
  runner.active.set(attemptKey(lease), { lease, abort, done });
}

/** Requeues orphaned jobs. Jobs that this process is running are never requeued, even if the clock was set. */
async function requeueOrphans(runner: Runner, which: "all" | "expired"): Promise<void> {
  const { ctx, pool, active, onAttempt } = runner;
  const orphans = listOrphanedJobs(ctx, pool, which).filter((lease) => !active.has(attemptKey(lease)));
  if (orphans.length === 0) return;
  const requeued = await ctx.commit((tx) => orphans.filter((lease) => requeueLostJob(runner, tx, lease)));
  if (requeued.length > 0) ctx.log.warn({ jobs: requeued.length }, "requeued jobs of a process that died");
  for (const lease of requeued) onAttempt?.(lease);
}

/** The heartbeat of the running jobs. */
async function extendLeases({ ctx, active, leaseMs }: Runner): Promise<void> {
  if (active.size === 0) return;
  const jobs = [...active.values()];
  try {
    await ctx.commit((tx) => jobs.map(({ lease }) => extendLease(ctx, tx, lease, leaseMs)));
  } catch (error) {
    ctx.disk.onError(error);
    ctx.log.error({ err: error }, "could not write heartbeat");
  }
}

function stopLostJobs({ ctx, active }: Runner): void {
  try {
    for (const { lease, abort } of active.values())
      if (!abort.signal.aborted && !isLeaseHeld(ctx, lease))
        abort.abort(new LeaseLost("this process no longer holds the job"));
  } catch (error) {
    ctx.disk.onError(error);
  }
}

/** Runs a claimed job and stores how it ended. */
async function runJob(runner: Runner, lease: Lease, stop: AbortSignal): Promise<void> {
  const { log, disk } = runner.ctx;
  let write: (tx: Tx) => void;
  try {
    write = await handlerOf(runner, lease).run(lease, stop);
  } catch (error) {
    disk.onError(error);
    // The process that took the job recorded the reason.
    if (stop.reason instanceof LeaseLost) return;
    if (stop.aborted) return await storeEnd(runner, lease, stop, (tx) => releaseJob(runner, tx, lease));
    log.info({ job: lease.id, subject: lease.subject, attempt: lease.attempt, err: error }, "attempt failed");
    const failure = error instanceof JobFailure ? error : toFault(String(error), error);
    return await storeEnd(runner, lease, stop, (tx) => settleFailure(runner, tx, lease, failure));
  }
  try {
    await storeEnd(runner, lease, stop, (tx) => finishJob(runner, tx, lease, write));
  } catch (error) {
    if (diskFault(error) !== null) throw error;
    log.error({ job: lease.id, subject: lease.subject, err: error }, "could not store result");
    const failure = toFault(`the result could not be stored: ${String(error)}`, error);
    await storeEnd(runner, lease, stop, (tx) => settleFailure(runner, tx, lease, failure));
  }
}

/** Waits `drainMs` for jobs, then stops the remaining ones and waits for them. */
async function drain(jobs: ActiveJob[], drainMs: number): Promise<void> {
  const ended = Promise.allSettled(jobs.map(({ done }) => done));
  if (!(await settlesWithin(ended, drainMs)))
    for (const { abort } of jobs) abort.abort(new ServiceStopping("the service is stopping"));
  await ended;
}
