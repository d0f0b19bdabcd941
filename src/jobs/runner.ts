import { hostname } from "node:os";
import type { Commit } from "../db/commit.ts";
import { diskFault } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import type { Deps } from "../deps.ts";
import type { Lease, Limits, Queue, Return } from "./queue.ts";

/** Work that another process enqueued is found this late at worst, and so is room on a disk that was full. */
const pollMs = 2_000;
/** A job that another process called off is stopped this late at worst. */
const watchMs = 500;
/** A result that a full disk refuses is kept in memory this long; then its job is begun anew. */
const keepResultMs = 60_000;
/** Less is not worth a write: clocks are set right by a little all the time. */
const clockStepMs = 60_000;
/** However long the other side asks to wait. */
const defaultMaxRetryAfterMs = 3600_000;
const maxFaults = 5;
/** High, for a service may be killed for reasons of its own; not endless, for a job may be the reason. */
const maxDeaths = 20;
/** The longest pause after one: a service that was killed for reasons of its own is not to keep people waiting. */
const maxDeathPauseMs = 60_000;

/** What keeps a job from being done this time: a fault around it, which spends none of its attempts, or its own failure, which does. */
export class JobFailure extends Error {
  override readonly name = "JobFailure";
  constructor(
    /** What remains if there is no next time. */
    message: string,
    readonly retry: "fault" | "attempt" | "never",
    readonly retryAfterMs = 0,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

/** What a feature does with its jobs. Everything that takes a `tx` happens in the very transaction that moves the job. */
export type JobHandler = {
  begun(tx: Tx, lease: Lease): void;
  /** Does the work and answers with what to write once the job is known to be still held. Stops when `signal` is aborted. Throws a JobFailure. */
  run(lease: Lease, signal: AbortSignal): Promise<(tx: Tx) => void>;
  /** It goes back to wait for its next attempt. */
  returned(tx: Tx, lease: Lease): void;
  failed(tx: Tx, lease: Lease, message: string): void;
  /** What an attempt has spent so far, in USD; null if that is not known. */
  costOf(lease: Lease): number | null;
};

type RunnerOptions = Pick<Deps, "log" | "now"> & {
  queue: Queue;
  commit: Commit;
  handlers: Record<string, JobHandler>;
  concurrency: number;
  limits: Limits;
  /** Hears of every error of the database. */
  onError?: (error: unknown) => void;
  /** Milliseconds before the next attempt, from the number of those that failed for the same reason. */
  backoffMs?: (failures: number) => number;
  maxRetryAfterMs?: number;
  /** How long a silent holder keeps its job. */
  leaseMs?: number;
};

/** Full jitter over 5 s doubled by each failure, 1 s at least and 15 minutes at most. */
const defaultBackoff = (failures: number) =>
  Math.max(1_000, Math.random() * Math.min(15 * 60_000, 5_000 * 2 ** (failures - 1)));

class Stopping extends Error {}
class Lost extends Error {}

/** Claims jobs as long as there are slots, runs them, and settles each one in one transaction with what it brought. */
export function createRunner(options: RunnerOptions) {
  const { log, now, queue, commit, handlers, concurrency, limits, onError = () => {} } = options;
  const { backoffMs = defaultBackoff, maxRetryAfterMs = defaultMaxRetryAfterMs, leaseMs = 30_000 } = options;
  // Who holds a job, for a person who looks at the table.
  const owner = `${hostname()} pid ${process.pid}`;
  const active = new Map<string, { lease: Lease; abort: AbortController; done: Promise<void> }>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let beat: ReturnType<typeof setInterval> | undefined;
  let watch: ReturnType<typeof setInterval> | undefined;
  /** The look for work that is under way, and whether another is wanted after it. */
  let look: Promise<void> | null = null;
  let again = false;
  /** Milliseconds of the monotonic clock, which no one sets. */
  let searchedAt = Number.NEGATIVE_INFINITY;
  /** The wall clock less the monotonic one, at the last look. */
  let lead = now() - performance.now();
  let state: "idle" | "serving" | "draining" = "idle";
  let trouble: string | null = null;

  const keyOf = ({ id, attempt }: Lease) => `${id} ${attempt}`;
  const handlerOf = (lease: Lease): JobHandler => {
    const handler = handlers[lease.kind];
    if (!handler) throw new Error(`no handler for jobs of kind ${lease.kind}`);
    return handler;
  };

  function fail(tx: Tx, lease: Lease, message: string): boolean {
    const handler = handlerOf(lease);
    const held = queue.settle(tx, lease, "failed", message, handler.costOf(lease));
    if (held) handler.failed(tx, lease, message);
    return held;
  }

  function putBack(tx: Tx, lease: Lease, how: Omit<Return, "costUsd">): boolean {
    const handler = handlerOf(lease);
    const held = queue.putBack(tx, lease, { ...how, costUsd: handler.costOf(lease) });
    if (held) handler.returned(tx, lease);
    return held;
  }

  /** The job of a holder that is gone is begun anew at once, the second time and later after a pause: it may be what brings the service down. */
  function takeBack(tx: Tx, lease: Lease): boolean {
    if (lease.deaths + 1 >= maxDeaths)
      return fail(tx, lease, `infrastructure: the service went away ${maxDeaths} times while this was under way`);
    const delayMs = lease.deaths === 0 ? 0 : Math.min(backoffMs(lease.deaths), maxDeathPauseMs);
    const reason = "the process that held it went away";
    return putBack(tx, lease, { ended: "lost", counts: "deaths", delayMs, reason });
  }

  function afterFailure(tx: Tx, lease: Lease, failure: JobFailure): boolean {
    const counts = failure.retry === "fault" ? "faults" : "spent";
    const before = counts === "faults" ? lease.faults : lease.spent;
    const most = counts === "faults" ? maxFaults : lease.maxAttempts;
    if (failure.retry === "never" || before + 1 >= most) return fail(tx, lease, failure.message);
    const delayMs = Math.max(Math.min(failure.retryAfterMs, maxRetryAfterMs), backoffMs(before + 1));
    return putBack(tx, lease, { ended: "retried", counts, delayMs, reason: failure.message });
  }

  /** Writes how an attempt ended. What a full disk refuses is tried again, as long as the lease counts and nobody wants to stop. */
  async function settle(lease: Lease, stop: AbortSignal, write: (tx: Tx) => boolean): Promise<void> {
    const until = performance.now() + keepResultMs;
    for (;;) {
      try {
        if (!(await commit(write)))
          log.warn({ job: lease.id, subject: lease.subject }, "result discarded: the job is held by nobody or another");
        return;
      } catch (error) {
        onError(error);
        if (diskFault(error) !== "full" || performance.now() > until || stop.aborted) throw error;
        await Bun.sleep(1_000);
      }
    }
  }

  async function work(lease: Lease, stop: AbortSignal): Promise<void> {
    const handler = handlerOf(lease);
    let finish: (tx: Tx) => void;
    try {
      finish = await handler.run(lease, stop);
    } catch (error) {
      onError(error);
      // Whoever took the job away has written down why.
      if (stop.reason instanceof Lost) return;
      const stopped = { ended: "released", counts: null, delayMs: 0, reason: "the service was stopped" } as const;
      if (stop.aborted) return await settle(lease, stop, (tx) => putBack(tx, lease, stopped));
      log.info({ job: lease.id, subject: lease.subject, attempt: lease.attempt, err: error }, "attempt failed");
      const failure = error instanceof JobFailure ? error : new JobFailure(`infrastructure: ${String(error)}`, "fault");
      return await settle(lease, stop, (tx) => afterFailure(tx, lease, failure));
    }
    try {
      await settle(lease, stop, (tx) => {
        const held = queue.settle(tx, lease, "done", null, handler.costOf(lease));
        if (held) finish(tx);
        return held;
      });
    } catch (error) {
      if (diskFault(error) !== null) throw error;
      log.error({ job: lease.id, subject: lease.subject, err: error }, "a result could not be stored");
      const failure = new JobFailure(`infrastructure: the result could not be stored: ${String(error)}`, "fault");
      await settle(lease, stop, (tx) => afterFailure(tx, lease, failure));
    }
  }

  function begin(lease: Lease): void {
    const abort = new AbortController();
    const done = work(lease, abort.signal)
      .catch((error) => {
        // The lease runs out and the job is taken back: nothing is lost, it only comes later.
        log.error({ job: lease.id, subject: lease.subject, err: error }, "a job could not be settled");
      })
      .finally(() => {
        active.delete(keyOf(lease));
        wake();
      });
    active.set(keyOf(lease), { lease, abort, done });
  }

  /** Holders that are known to be alive are never taken for silent, whatever the clock says. */
  async function takeBackOrphans(which: "all" | "expired"): Promise<void> {
    const orphans = queue.listOrphans(which).filter((lease) => !active.has(keyOf(lease)));
    if (orphans.length === 0) return;
    const taken = await commit((tx) => orphans.filter((lease) => takeBack(tx, lease)).length);
    if (taken > 0) log.warn({ taken }, "took back jobs whose holder is gone");
  }

  async function heartbeat(): Promise<void> {
    const held = [...active.values()];
    if (held.length === 0) return;
    try {
      await commit((tx) => held.map(({ lease }) => queue.heartbeat(tx, lease, leaseMs)));
    } catch (error) {
      onError(error);
      log.error({ err: error }, "a heartbeat could not be written");
    }
  }

  function dropLost(): void {
    try {
      for (const { lease, abort } of active.values())
        if (!abort.signal.aborted && !queue.holds(lease)) abort.abort(new Lost("the job is held by nobody or another"));
    } catch (error) {
      onError(error);
    }
  }

  /** Looks for work now; many calls of one moment are one look. */
  function wake(): void {
    if (state !== "serving") return;
    if (look) {
      again = true;
      return;
    }
    clearTimeout(timer);
    again = false;
    look = lookForWork().then((waitMs) => {
      look = null;
      if (again) wake();
      else if (state === "serving") timer = setTimeout(wake, waitMs);
    });
  }

  /** Fills the free slots. Answers with the time until the next look, in milliseconds. */
  async function lookForWork(): Promise<number> {
    try {
      // By the monotonic clock, and here: a busy service is woken so often that a timer of its own would never fire.
      if (performance.now() - searchedAt >= pollMs) {
        searchedAt = performance.now();
        await takeBackOrphans("expired");
      }
      const shift = now() - performance.now() - lead;
      // What waits for a moment would wait longer by as much as the clock was set back.
      if (shift < -clockStepMs) await commit((tx) => queue.bringForward(tx, Math.round(-shift)));
      lead += shift;
      const most = concurrency - active.size;
      if (most === 0) return pollMs;
      const { leases, nextDueAt } = await commit((tx) => {
        if (state !== "serving") return { leases: [], nextDueAt: null };
        const claimed = queue.claim(tx, most, owner, leaseMs, limits);
        for (const lease of claimed.leases) handlerOf(lease).begun(tx, lease);
        return claimed;
      });
      for (const lease of leases) begin(lease);
      trouble = null;
      return nextDueAt === null ? pollMs : Math.max(1, Math.min(pollMs, nextDueAt - now()));
    } catch (error) {
      onError(error);
      trouble = error instanceof Error ? error.message : String(error);
      log.error({ err: error }, "jobs cannot be claimed");
      return pollMs;
    }
  }

  return {
    /** Takes back what a former process left behind, then serves. Call it under the data lock. */
    async start(): Promise<void> {
      await takeBackOrphans("all");
      state = "serving";
      beat = setInterval(heartbeat, leaseMs / 3);
      watch = setInterval(dropLost, watchMs);
      wake();
    },
    wake,
    /** Stops at once what is no longer held: call it after the transaction that called jobs off. */
    dropLost,
    /** Why work is not being taken up: `draining`, `idle` before the start, or an error of the database; null if it is. */
    trouble: (): string | null => (state === "serving" ? trouble : state),
    /** Claims nothing more, at once. What runs is left to itself: the process is about to end. */
    halt(): void {
      state = "draining";
      clearTimeout(timer);
    },
    /** Claims nothing more, waits `drainMs` for what runs, then gives it back unfinished without spending its attempt. */
    async stop(drainMs: number): Promise<void> {
      state = "draining";
      clearTimeout(timer);
      await look;
      const all = Promise.allSettled([...active.values()].map(({ done }) => done));
      let alarm: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<"late">((resolve) => (alarm = setTimeout(resolve, drainMs, "late")));
      if ((await Promise.race([all, late])) === "late")
        for (const { abort } of active.values()) abort.abort(new Stopping("the service is stopping"));
      clearTimeout(alarm);
      await all;
      clearInterval(beat);
      clearInterval(watch);
    },
  };
}
