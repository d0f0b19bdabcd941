import { and, count, eq, lte, or, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { type jobPools, jobs, type returnOutcomes } from "../db/tables/jobs.ts";
import { createClaimOrder, type Limits } from "./claim-order.ts";

/** A claimed job. `attempt` grows with every claim, so writes under an old lease have no effect. */
export type Lease = {
  id: string;
  kind: string;
  /** The id of the row that the job serves. */
  subject: string;
  /** Number of the attempt, from 1. */
  attempt: number;
  /** Attempts before this one that count against `maxAttempts`. */
  spent: number;
  maxAttempts: number;
  /** Infrastructure faults and process crashes so far. */
  faults: number;
  crashes: number;
};

/** How an attempt ended without settling its job, and the counter to increase; null for a release. */
export type Return = {
  outcome: (typeof returnOutcomes)[number];
  counts: "spent" | "faults" | "crashes" | null;
  delayMs: number;
  reason: string;
  costUsd: number | null;
};

export type Pool = (typeof jobPools)[number];

const leaseColumns = {
  id: jobs.id,
  kind: jobs.kind,
  subject: jobs.subject,
  attempt: jobs.attempt,
  spent: jobs.spent,
  maxAttempts: jobs.maxAttempts,
  faults: jobs.faults,
  crashes: jobs.crashes,
};

export type Queue = ReturnType<typeof createQueue>;

/** The cost of an attempt in progress. */
type CostOf = (lease: Lease) => number | null;

/**
 * The states of a job: queued → running → done | failed, running → queued by `putBack`, and queued | running → cancelled. The port to what
 * stores them: each change is fenced by its lease, in the caller's transaction, and returns whether it applied. The row of a job has its last
 * attempt; `putBack` keeps it among the earlier ones, so that most jobs, which end at their first attempt, write no history.
 * A queue sees only the jobs of its pool.
 */
export function createQueue({ db, now, newId }: Pick<Context, "db" | "now" | "newId">, pool: Pool = "runs") {
  const claimOrder = createClaimOrder({ db }, pool);
  const own = eq(jobs.pool, pool);
  const queued = and(sql`${jobs.state} = 'queued'`, own);
  const running = and(sql`${jobs.state} = 'running'`, own);

  const statements = prepareStatements(db);

  return {
    /** Call it in the transaction that creates the job's subject. */
    enqueue(_tx: Tx, job: { kind: string; subject: string; orgId: string; host: string; maxAttempts: number }): void {
      const { kind, subject, orgId, host, maxAttempts } = job;
      const at = now();
      statements.enqueue.run(newId(at), pool, kind, subject, orgId, host, maxAttempts, at);
    },

    /**
     * Takes up to `most` due jobs within the limits, in their order. `nextDueAt`: when the next one within the limits is due, epoch ms; null if
     * none waits, or if `most` were taken.
     */
    claim(
      _tx: Tx,
      most: number,
      owner: string,
      leaseMs: number,
      limits: Limits,
    ): { leases: Lease[]; nextDueAt: number | null } {
      const at = now();
      const leases: Lease[] = [];
      const order = claimOrder(at, limits);
      while (leases.length < most) {
        const next = order.next().value;
        if (!next || next.availableAt > at) return { leases, nextDueAt: next?.availableAt ?? null };
        const lease = statements.claim.get(owner, at + leaseMs, at, next.id);
        if (!lease) throw new Error(`the queued job ${next.id} could not be claimed`);
        leases.push(lease);
      }
      return { leases, nextDueAt: null };
    },

    /** Whether the lease still counts. */
    holds: ({ id, attempt }: Lease): boolean => statements.holds.get(id, attempt) !== null,

    heartbeat: (_tx: Tx, { id, attempt }: Lease, leaseMs: number): boolean =>
      statements.heartbeat.run(now() + leaseMs, id, attempt).changes > 0,

    /** Ends a job for good. */
    settle: (
      _tx: Tx,
      { id, attempt }: Lease,
      state: "done" | "failed",
      reason: string | null,
      costUsd: number | null,
    ): boolean => statements.settle.run(state, reason, costUsd, now(), id, attempt).changes > 0,

    /** Requeues a job after `delayMs`; 0: immediately, even if the clock is set back. */
    putBack(_tx: Tx, { id, attempt }: Lease, { outcome, counts, delayMs, reason, costUsd }: Return): boolean {
      const at = now();
      if (statements.keepAttempt.run(at, outcome, reason, costUsd, id, attempt).changes === 0) return false;
      const availableAt = delayMs > 0 ? at + Math.ceil(delayMs) : 0;
      const adds = (["spent", "faults", "crashes"] as const).map((counter) => (counts === counter ? 1 : 0));
      statements.putBack.run(availableAt, reason, ...adds, id, attempt);
      return true;
    },

    /** Moves the due time of all waiting jobs forward. */
    bringForward: (tx: Tx, ms: number): void =>
      tx.run(sql`update ${jobs} set available_at = available_at - ${ms} where ${queued} and available_at > ${now()}`),

    /** Cancels the job of a subject that ended `at`, even if a process holds it. False if the job has ended. */
    cancel(tx: Tx, kind: string, subject: string, reason: string, costOf: CostOf, at = now()): boolean {
      const row = tx
        .select({ ...leaseColumns, state: jobs.state })
        .from(jobs)
        .where(and(eq(jobs.kind, kind), eq(jobs.subject, subject)))
        .get();
      if (!row || !(row.state === "queued" || row.state === "running")) return false;
      tx.update(jobs)
        .set({
          state: "cancelled",
          lastError: reason,
          leaseUntil: null,
          completedAt: at,
          costUsd: row.state === "running" ? costOf(row) : null,
        })
        .where(eq(jobs.id, row.id))
        .run();
      return true;
    },

    /** Jobs whose worker is gone: all running ones (`all`, at boot, under the data lock), or those with an expired lease. */
    listOrphans: (which: "all" | "expired"): Lease[] =>
      db
        .select(leaseColumns)
        .from(jobs)
        .where(which === "all" ? running : and(running, lte(jobs.leaseUntil, now())))
        .all(),

    countUnfinished: (): number => db.select({ n: count() }).from(jobs).where(or(queued, running)).get()?.n ?? 0,
  };
}

/** Raw SQL: Drizzle needs longer to build these statements than SQLite to run them. */
function prepareStatements({ $client }: Context["db"]) {
  const held = "where id = ? and attempt = ? and state = 'running'";
  type Held = [id: string, attempt: number];
  return {
    enqueue: $client.prepare<
      never,
      [
        id: string,
        pool: Pool,
        kind: string,
        subject: string,
        orgId: string,
        host: string,
        maxAttempts: number,
        at: number,
      ]
    >(
      `insert into jobs (id, pool, kind, subject, org_id, host, state, available_at, attempt, spent, max_attempts, faults, deaths, created_at)
      values (?, ?, ?, ?, ?, ?, 'queued', 0, 0, 0, ?, 0, 0, ?)`,
    ),
    claim: $client.prepare<Lease, [owner: string, leaseUntil: number, at: number, id: string]>(
      `update jobs set state = 'running', attempt = attempt + 1, owner = ?1, lease_until = ?2, attempt_started_at = ?3,
      started_at = coalesce(started_at, ?3) where id = ?4 and state = 'queued'
      returning id, kind, subject, attempt, spent, max_attempts maxAttempts, faults, deaths crashes`,
    ),
    holds: $client.prepare<{ id: string }, Held>(`select id from jobs ${held}`),
    heartbeat: $client.prepare<never, [leaseUntil: number, ...Held]>(`update jobs set lease_until = ? ${held}`),
    settle: $client.prepare<never, [state: string, reason: string | null, costUsd: number | null, at: number, ...Held]>(
      `update jobs set state = ?, last_error = ?, cost_usd = ?, lease_until = null, completed_at = ? ${held}`,
    ),
    keepAttempt: $client.prepare<
      never,
      [at: number, outcome: Return["outcome"], reason: string, costUsd: number | null, ...Held]
    >(
      `insert into earlier_attempts (job_id, attempt, owner, started_at, completed_at, outcome, reason, cost_usd)
      select id, attempt, owner, attempt_started_at, ?, ?, ?, ? from jobs ${held}`,
    ),
    putBack: $client.prepare<never, [availableAt: number, reason: string, ...(0 | 1)[], ...Held]>(
      `update jobs set state = 'queued', available_at = ?, last_error = ?, lease_until = null, attempt_started_at = null,
      spent = spent + ?, faults = faults + ?, deaths = deaths + ? ${held}`,
    ),
  };
}
