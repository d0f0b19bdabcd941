import { and, asc, count, eq, lte, min, sql } from "drizzle-orm";
import type { SQLiteUpdateSetSource } from "drizzle-orm/sqlite-core";
import type { Db, Tx } from "../db/open.ts";
import { preparedInsert } from "../db/rows.ts";
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
export function createQueue({ db, now, newId }: Pick<Deps, "db" | "now" | "newId">) {
  const insert = preparedInsert(db, jobs);
  const held = (lease: Lease) => and(eq(jobs.id, lease.id), eq(jobs.fence, lease.fence), eq(jobs.state, "running"));
  const write = (through: Db | Tx, lease: Lease, values: SQLiteUpdateSetSource<typeof jobs>): boolean =>
    through.update(jobs).set(values).where(held(lease)).returning({ id: jobs.id }).all().length === 1;

  return {
    /** Part of the transaction that makes the row which the job serves. */
    enqueue(_tx: Tx, job: { kind: string; subject: string; maxAttempts: number }): void {
      const createdAt = now();
      insert({
        ...job,
        id: newId(createdAt),
        state: "queued",
        availableAt: 0,
        attempt: 0,
        fence: 0,
        owner: null,
        leaseUntil: null,
        lastError: null,
        createdAt,
        endedAt: null,
      });
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
    holds: (lease: Lease): boolean => db.select({ id: jobs.id }).from(jobs).where(held(lease)).get() !== undefined,

    heartbeat: (lease: Lease, leaseMs: number): boolean => write(db, lease, { leaseUntil: now() + leaseMs }),

    /** Ends a job for good. */
    settle: (tx: Tx, lease: Lease, state: "done" | "failed", lastError: string | null): boolean =>
      write(tx, lease, { state, lastError, leaseUntil: null, endedAt: now() }),

    /** Puts a job back for later, the attempt spent. */
    retry: (lease: Lease, delayMs: number, lastError: string): boolean =>
      write(db, lease, { state: "queued", availableAt: now() + Math.ceil(delayMs), lastError, leaseUntil: null }),

    /** Gives a job back at once, as if it had not been begun. */
    release: (lease: Lease): boolean =>
      write(db, lease, { state: "queued", availableAt: 0, attempt: sql`${jobs.attempt} - 1`, leaseUntil: null }),

    /** Takes back jobs whose holder is gone: every running one (`all`, at boot, under the data lock), or those whose lease ran out. */
    rescue: (which: "all" | "expired"): number =>
      db
        .update(jobs)
        .set({ state: "queued", availableAt: 0, leaseUntil: null, lastError: "the process that held it went away" })
        .where(
          which === "all" ? eq(jobs.state, "running") : and(eq(jobs.state, "running"), lte(jobs.leaseUntil, now())),
        )
        .returning({ id: jobs.id })
        .all().length,

    /** When the next queued job is due, epoch ms (0: at once); null if none is queued. */
    nextDueAt: (): number | null =>
      db
        .select({ at: min(jobs.availableAt) })
        .from(jobs)
        .where(eq(jobs.state, "queued"))
        .get()?.at ?? null,

    countUnfinished: (): number =>
      db.select({ n: count() }).from(jobs).where(sql`${jobs.state} in ('queued', 'running')`).get()?.n ?? 0,
  };
}
