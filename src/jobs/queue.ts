import { and, asc, count, eq, lte, min, sql } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { jobs } from "../db/tables.ts";
import type { Deps } from "../deps.ts";

/** A job in the hands of one worker. What is written under an old `fence` changes nothing. */
export type Lease = {
  id: string;
  kind: string;
  /** The id of the row that the job serves. */
  subject: string;
  fence: number;
  /** Which time it is begun, from 1. */
  attempt: number;
  maxAttempts: number;
};

const leaseColumns = {
  id: jobs.id,
  kind: jobs.kind,
  subject: jobs.subject,
  fence: jobs.fence,
  attempt: jobs.attempt,
  maxAttempts: jobs.maxAttempts,
};

export type Queue = ReturnType<typeof createQueue>;

/**
 * The states of a job as single statements: queued → running → done | failed, and running → queued by `retry`, `release` and `rescue`.
 * Every write of a holder is fenced: it tells whether the holder still held the job, and changes nothing if not.
 */
export function createQueue({ now, newId }: Pick<Deps, "now" | "newId">) {
  const held = (lease: Lease) => and(eq(jobs.id, lease.id), eq(jobs.fence, lease.fence), eq(jobs.state, "running"));
  const changed = (rows: unknown[]) => rows.length === 1;

  return {
    /** Part of the transaction that makes the row which the job serves. */
    enqueue(tx: Tx, job: { kind: string; subject: string; maxAttempts: number }): void {
      const createdAt = now();
      tx.insert(jobs)
        .values({ ...job, id: newId(createdAt), state: "queued", availableAt: 0, attempt: 0, fence: 0, createdAt })
        .run();
    },

    /** Takes the job that has been due for longest, if any is due. */
    claim(tx: Tx, owner: string, leaseMs: number): Lease | null {
      const at = now();
      const due = tx
        .select({ id: jobs.id })
        .from(jobs)
        .where(and(eq(jobs.state, "queued"), lte(jobs.availableAt, at)))
        .orderBy(asc(jobs.availableAt), asc(jobs.id))
        .limit(1);
      const row = tx
        .update(jobs)
        .set({
          state: "running",
          attempt: sql`${jobs.attempt} + 1`,
          fence: sql`${jobs.fence} + 1`,
          owner,
          leaseUntil: at + leaseMs,
        })
        .where(eq(jobs.id, due))
        .returning(leaseColumns)
        .get();
      return row ?? null;
    },

    /** Whether the lease still counts. */
    holds: (tx: Tx | Db, lease: Lease): boolean =>
      tx.select({ id: jobs.id }).from(jobs).where(held(lease)).get() !== undefined,

    heartbeat: (db: Db, lease: Lease, leaseMs: number): boolean =>
      changed(
        db
          .update(jobs)
          .set({ leaseUntil: now() + leaseMs })
          .where(held(lease))
          .returning({ id: jobs.id })
          .all(),
      ),

    /** Ends a job for good. */
    settle: (tx: Tx, lease: Lease, state: "done" | "failed", lastError: string | null): boolean =>
      changed(
        tx
          .update(jobs)
          .set({ state, lastError, leaseUntil: null, endedAt: now() })
          .where(held(lease))
          .returning({ id: jobs.id })
          .all(),
      ),

    /** Puts a job back for later, the attempt spent. */
    retry: (tx: Tx | Db, lease: Lease, delayMs: number, lastError: string): boolean =>
      changed(
        tx
          .update(jobs)
          .set({ state: "queued", availableAt: now() + delayMs, lastError, leaseUntil: null })
          .where(held(lease))
          .returning({ id: jobs.id })
          .all(),
      ),

    /** Gives a job back at once, as if it had not been begun. */
    release: (tx: Tx | Db, lease: Lease): boolean =>
      changed(
        tx
          .update(jobs)
          .set({ state: "queued", availableAt: 0, attempt: sql`${jobs.attempt} - 1`, leaseUntil: null })
          .where(held(lease))
          .returning({ id: jobs.id })
          .all(),
      ),

    /** Takes back jobs whose holder is gone: every running one (`all`, at boot, under the data lock), or those whose lease ran out. */
    rescue: (db: Db, which: "all" | "expired"): number =>
      db
        .update(jobs)
        .set({ state: "queued", availableAt: 0, leaseUntil: null, lastError: "the process that held it went away" })
        .where(
          which === "all" ? eq(jobs.state, "running") : and(eq(jobs.state, "running"), lte(jobs.leaseUntil, now())),
        )
        .returning({ id: jobs.id })
        .all().length,

    /** When the next queued job is due, epoch ms (0: at once); null if none is queued. */
    nextDueAt: (db: Db): number | null =>
      db
        .select({ at: min(jobs.availableAt) })
        .from(jobs)
        .where(eq(jobs.state, "queued"))
        .get()?.at ?? null,

    countUnfinished: (db: Db): number =>
      db.select({ n: count() }).from(jobs).where(sql`${jobs.state} in ('queued', 'running')`).get()?.n ?? 0,
  };
}
