import type { Tx } from "../db/open.ts";
import { tx } from "../db/open.ts";
import type { Deps } from "../deps.ts";
import type { Lease, Queue } from "./queue.ts";

const leaseMs = 30_000;
/** Work that another process enqueued is found this late at worst. */
const pollMs = 2_000;

/** A job that could not be done this time. `message` is what remains if there is no next time. */
export class JobFailure extends Error {
  override readonly name = "JobFailure";
  constructor(
    message: string,
    readonly retryable: boolean,
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

/** What a feature does with its jobs. Everything that takes a `tx` happens in the very transaction that moves the job. */
export type JobHandler = {
  begun(tx: Tx, lease: Lease): void;
  /** Does the work and answers with what to write once the job is known to be still held. Stops when `signal` is aborted. */
  run(lease: Lease, signal: AbortSignal): Promise<(tx: Tx) => void>;
  failed(tx: Tx, lease: Lease, message: string): void;
};

type RunnerOptions = Pick<Deps, "db" | "log" | "now"> & {
  queue: Queue;
  handlers: Record<string, JobHandler>;
  concurrency: number;
  /** Who this process is, for a person who looks at the table. */
  owner: string;
  /** Milliseconds before the next attempt, from the number of the last one. */
  backoffMs?: (attempt: number) => number;
};

/** Full jitter over 5 s doubled by each attempt, 15 minutes at most. */
const defaultBackoff = (attempt: number) => Math.random() * Math.min(15 * 60_000, 5_000 * 2 ** (attempt - 1));

/** Claims jobs as long as there are slots, runs them, and settles each one in one transaction with what it brought. */
export function createRunner({
  db,
  log,
  now,
  queue,
  handlers,
  concurrency,
  owner,
  backoffMs = defaultBackoff,
}: RunnerOptions) {
  const active = new Map<string, { abort: AbortController; done: Promise<void> }>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let woken = false;
  let rescuedAt = Number.NEGATIVE_INFINITY;
  let state: "idle" | "serving" | "draining" = "idle";
  let broken: string | null = null;

  const handlerOf = (lease: Lease): JobHandler => {
    const handler = handlers[lease.kind];
    if (!handler) throw new Error(`no handler for jobs of kind ${lease.kind}`);
    return handler;
  };

  function claimNext(): Lease | null {
    return tx(db, (t) => {
      const lease = queue.claim(t, owner, leaseMs);
      if (lease) handlerOf(lease).begun(t, lease);
      return lease;
    });
  }

  function fail(lease: Lease, message: string): void {
    tx(db, (t) => {
      if (queue.settle(t, lease, "failed", message)) handlerOf(lease).failed(t, lease, message);
    });
  }

  async function work(lease: Lease, abort: AbortController): Promise<void> {
    const beat = setInterval(() => {
      try {
        if (!queue.heartbeat(lease, leaseMs)) abort.abort(new Error("the job is held by another worker now"));
      } catch (error) {
        log.error({ job: lease.id, err: error }, "a heartbeat could not be written");
      }
    }, leaseMs / 3);
    try {
      if (lease.attempt > lease.maxAttempts) {
        fail(lease, `infrastructure: the service went away ${lease.maxAttempts} times while this run was under way`);
        return;
      }
      const commit = await handlerOf(lease).run(lease, abort.signal);
      tx(db, (t) => {
        if (queue.settle(t, lease, "done", null)) commit(t);
        else
          log.warn(
            { job: lease.id, subject: lease.subject },
            "result discarded: the job is held by another worker now",
          );
      });
    } catch (error) {
      if (abort.signal.aborted) {
        queue.release(lease);
        return;
      }
      const known = error instanceof JobFailure;
      const message = known
        ? error.message
        : `agent_crashed: ${error instanceof Error ? error.message : String(error)}`;
      log[known ? "info" : "error"](
        { job: lease.id, subject: lease.subject, attempt: lease.attempt, err: error },
        "attempt failed",
      );
      if ((!known || error.retryable) && lease.attempt < lease.maxAttempts) {
        const delayMs = Math.max(known ? (error.retryAfterMs ?? 0) : 0, backoffMs(lease.attempt));
        queue.retry(lease, delayMs, message);
      } else fail(lease, message);
    } finally {
      clearInterval(beat);
    }
  }

  function begin(lease: Lease): void {
    const abort = new AbortController();
    const holding = `${lease.id} ${lease.fence}`;
    const done = work(lease, abort)
      .catch((error) => {
        // The lease runs out and the job is taken back: nothing is lost, it only comes later.
        log.error({ job: lease.id, subject: lease.subject, err: error }, "a job could not be settled");
      })
      .finally(() => {
        active.delete(holding);
        wake();
      });
    active.set(holding, { abort, done });
  }

  function rescueSilent(): void {
    rescuedAt = now();
    try {
      const lost = queue.rescue("expired");
      if (lost > 0) log.warn({ lost }, "took back jobs whose holder has fallen silent");
    } catch (error) {
      log.error({ err: error }, "silent holders cannot be looked for");
    }
  }

  /** Many calls of one moment are one look. */
  function wake(): void {
    if (woken) return;
    woken = true;
    setImmediate(() => {
      woken = false;
      pump();
    });
  }

  function pump(): void {
    if (state !== "serving") return;
    clearTimeout(timer);
    // A busy service is woken so often that the timer never fires.
    if (now() - rescuedAt >= pollMs) rescueSilent();
    let waitMs = pollMs;
    try {
      while (active.size < concurrency) {
        const lease = claimNext();
        if (!lease) break;
        begin(lease);
      }
      const dueAt = active.size < concurrency ? queue.nextDueAt() : null;
      if (dueAt !== null) waitMs = Math.max(1, Math.min(pollMs, dueAt - now()));
      broken = null;
    } catch (error) {
      broken = error instanceof Error ? error.message : String(error);
      log.error({ err: error }, "jobs cannot be claimed");
    }
    timer = setTimeout(pump, waitMs);
  }

  return {
    /** Takes back what a former process left behind, then serves. Call it under the data lock. */
    start(): void {
      const orphans = queue.rescue("all");
      if (orphans > 0) log.warn({ orphans }, "took back jobs that a former process had begun");
      state = "serving";
      pump();
    },
    /** Looks for work now: call it after the transaction that enqueued some. */
    wake,
    /** Why work is not being taken up: `draining`, `idle` before the start, or an error of the database; null if it is. */
    trouble: (): string | null => (state === "serving" ? broken : state),
    /** Claims nothing more, waits `drainMs` for what runs, then takes it back unfinished without spending its attempt. */
    async stop(drainMs: number): Promise<void> {
      state = "draining";
      clearTimeout(timer);
      const all = Promise.allSettled([...active.values()].map(({ done }) => done));
      const late = Symbol();
      let alarm: ReturnType<typeof setTimeout> | undefined;
      const first = await Promise.race([all, new Promise((resolve) => (alarm = setTimeout(resolve, drainMs, late)))]);
      clearTimeout(alarm);
      if (first === late) for (const { abort } of active.values()) abort.abort(new Error("the service is stopping"));
      await all;
    },
  };
}
