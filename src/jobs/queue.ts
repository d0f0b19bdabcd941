import { and, eq, gt, lte, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Db, Tx } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";
import { endedAt } from "../db/rows.ts";
import { jobs, type returnOutcomes } from "../db/tables/jobs.ts";
import { candidates, type Limits, type Pool } from "./claim-order.ts";

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

/** How an attempt ended after which the job is queued again. `counter`: the counter to increase; null for a release. */
export type Requeue = {
  outcome: (typeof returnOutcomes)[number];
  counter: "spent" | "faults" | "crashes" | null;
  delayMs: number;
  reason: string;
  costUsd: number | null;
};

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

/** The cost of an attempt in progress. */
type CostOf = (lease: Lease) => number | null;

// The states of a job: queued → running → done | failed, running → queued by `requeueJob`, queued ⇄ held, and queued | held | running → cancelled. A
// change under a lease is made in the caller's transaction, and returns whether the lease was still valid. The row of a job has its last attempt.
// `requeueJob` stores that among the earlier attempts. Most jobs end at their first attempt, so they write no history.

const queued = sql`${jobs.state} = 'queued'`;
const held = sql`${jobs.state} = 'held'`;
const running = sql`${jobs.state} = 'running'`;

/** A job to add. `subject`: the ID of the row that the job serves. `host`: the host for the limit of jobs per host; empty: none. */
export type NewJob = { pool: Pool; kind: string; subject: string; orgId: string; host: string; maxAttempts: number };

/** Call it in the transaction that creates the job's subject. */
export function enqueue(ctx: Context, _tx: Tx, { pool, kind, subject, orgId, host, maxAttempts }: NewJob): void {
  const now = ctx.now();
  statements(ctx.db).enqueue.run(ctx.newId(now), pool, kind, subject, orgId, host, maxAttempts, now);
}

/** Identifies a job. */
type JobKey = { kind: string; subject: string };

const ofSubject = ({ kind, subject }: JobKey) => and(eq(jobs.kind, kind), eq(jobs.subject, subject));

/** Holds the queued job of a subject back until it is freed. Does nothing in any other state. */
export const holdJob = (tx: Tx, key: JobKey): void =>
  void tx
    .update(jobs)
    .set({ state: "held" })
    .where(and(ofSubject(key), queued))
    .run();

/** Queues the held job of a subject again. It keeps its age. */
export const freeJob = (tx: Tx, key: JobKey): void =>
  void tx
    .update(jobs)
    .set({ state: "queued" })
    .where(and(ofSubject(key), held))
    .run();

type Claim = { pool: Pool; max: number; owner: string; leaseMs: number; limits: Limits };

/**
 * Takes up to `max` due jobs of a pool within the limits, in their order. `nextDueAt`: when the next job within the limits is due, epoch ms; null if
 * no job waits or if `max` jobs were taken.
 */
export function claimJobs(ctx: Context, _tx: Tx, { pool, max, owner, leaseMs, limits }: Claim) {
  const now = ctx.now();
  const leases: Lease[] = [];
  const queue = candidates(ctx.db, pool, now, limits);
  while (leases.length < max) {
    const next = queue.next().value;
    if (!next || next.availableAt > now) return { leases, nextDueAt: next?.availableAt ?? null };
    const lease = statements(ctx.db).claim.get(owner, now + leaseMs, now, next.id);
    if (!lease) throw new Error(`The queued job ${next.id} could not be claimed.`);
    leases.push(lease);
  }
  return { leases, nextDueAt: null };
}

/** Identifies an attempt of a job. */
export const attemptKey = ({ id, attempt }: Lease): string => `${id} ${attempt}`;

/** Whether the lease is still valid. */
export const isLeaseHeld = (ctx: Context, { id, attempt }: Lease): boolean =>
  statements(ctx.db).isHeld.get(id, attempt) !== null;

/** Extends a lease to `leaseMs` from now. */
export const extendLease = (ctx: Context, _tx: Tx, { id, attempt }: Lease, leaseMs: number): boolean =>
  statements(ctx.db).heartbeat.run(ctx.now() + leaseMs, id, attempt).changes > 0;

type JobEnd = { state: "done" | "failed"; reason: string | null; costUsd: number | null };

/** Ends a job for good. */
export const settleJob = (ctx: Context, _tx: Tx, { id, attempt }: Lease, { state, reason, costUsd }: JobEnd): boolean =>
  statements(ctx.db).settle.run(state, reason, costUsd, ctx.now(), id, attempt).changes > 0;

/** Requeues a job after `delayMs`; 0: immediately, even if the clock is set back. */
export function requeueJob(ctx: Context, _tx: Tx, { id, attempt }: Lease, change: Requeue): boolean {
  const { outcome, counter, delayMs, reason, costUsd } = change;
  const { keepAttempt, requeue } = statements(ctx.db);
  const now = ctx.now();
  if (keepAttempt.run(now, outcome, reason, costUsd, id, attempt).changes === 0) return false;
  const availableAt = delayMs > 0 ? now + Math.ceil(delayMs) : 0;
  const increase = (name: Requeue["counter"]) => (name === counter ? 1 : 0);
  requeue.run(availableAt, reason, increase("spent"), increase("faults"), increase("crashes"), id, attempt);
  return true;
}

/** Moves the due time of all waiting jobs of a pool forward by `ms`. */
export const bringJobsForward = (ctx: Context, tx: Tx, pool: Pool, ms: number): void =>
  tx.run(
    sql`update ${jobs} set available_at = available_at - ${ms} where ${queued} and ${eq(jobs.pool, pool)} and available_at > ${ctx.now()}`,
  );

/** Makes the waiting job of a subject due now, with all its attempts left. */
export const restartJob = (ctx: Context, tx: Tx, key: JobKey): void =>
  void tx
    .update(jobs)
    .set({ availableAt: 0, spent: 0 })
    .where(and(ofSubject(key), queued, gt(jobs.availableAt, ctx.now())))
    .run();

/** Cancels the job of a subject and ends it `at` this time, even if a process holds it. False if the job has already ended. */
export function cancelJob(
  tx: Tx,
  { reason, at, ...key }: JobKey & { reason: string; at: number },
  costOf: CostOf,
): boolean {
  const row = tx
    .select({ ...leaseColumns, state: jobs.state, completedAt: jobs.completedAt })
    .from(jobs)
    .where(ofSubject(key))
    .get();
  if (!row || row.completedAt !== null) return false;
  tx.update(jobs)
    .set({
      state: "cancelled",
      lastError: reason,
      leaseUntil: null,
      completedAt: endedAt(at, jobs.attemptStartedAt),
      costUsd: row.state === "running" ? costOf(row) : null,
    })
    .where(eq(jobs.id, row.id))
    .run();
  return true;
}

/** Jobs of a pool whose worker is gone: all running ones (`all`, at boot, under the data lock), or those with an expired lease. */
export function listOrphanedJobs(ctx: Context, pool: Pool, which: "all" | "expired"): Lease[] {
  const whereExpired = which === "all" ? undefined : lte(jobs.leaseUntil, ctx.now());
  return ctx.db
    .select(leaseColumns)
    .from(jobs)
    .where(and(running, eq(jobs.pool, pool), whereExpired))
    .all();
}

/** Raw SQL, because Drizzle takes longer to build these statements than SQLite takes to run them. The column `deaths` counts crashes. */
const statements = perConnection(({ $client }: Db) => {
  const whereHeld = "where id = ? and attempt = ? and state = 'running'";
  type LeaseKey = [id: string, attempt: number];
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
    isHeld: $client.prepare<{ id: string }, LeaseKey>(`select id from jobs ${whereHeld}`),
    heartbeat: $client.prepare<never, [leaseUntil: number, ...LeaseKey]>(
      `update jobs set lease_until = ? ${whereHeld}`,
    ),
    settle: $client.prepare<
      never,
      [state: string, reason: string | null, costUsd: number | null, at: number, ...LeaseKey]
    >(
      `update jobs set state = ?, last_error = ?, cost_usd = ?, lease_until = null, completed_at = max(?, coalesce(attempt_started_at, 0)) ${whereHeld}`,
    ),
    keepAttempt: $client.prepare<
      never,
      [at: number, outcome: Requeue["outcome"], reason: string, costUsd: number | null, ...LeaseKey]
    >(
      `insert into earlier_attempts (job_id, attempt, owner, started_at, completed_at, outcome, reason, cost_usd)
      select id, attempt, owner, attempt_started_at, max(?, attempt_started_at), ?, ?, ? from jobs ${whereHeld}`,
    ),
    requeue: $client.prepare<
      never,
      [availableAt: number, reason: string, spent: 0 | 1, faults: 0 | 1, crashes: 0 | 1, ...LeaseKey]
    >(
      `update jobs set state = 'queued', available_at = ?, last_error = ?, lease_until = null, attempt_started_at = null,
      spent = spent + ?, faults = faults + ?, deaths = deaths + ? ${whereHeld}`,
    ),
  };
});
