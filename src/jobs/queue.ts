import { and, count, eq, lte, or, sql } from "drizzle-orm";
import type { Tx } from "../db/open.ts";
import { preparedInsert } from "../db/rows.ts";
import { type attemptEnds, jobs } from "../db/tables.ts";
import type { Deps } from "../deps.ts";
import { createTurns } from "./turns.ts";

/** A job in the hands of one worker. `attempt` grows with every claim: what is written under an old one changes nothing. */
export type Lease = {
  id: string;
  kind: string;
  /** The id of the row that the job serves. */
  subject: string;
  /** Which time it is begun, from 1. */
  attempt: number;
  /** Attempts before this one that count against `maxAttempts`. */
  spent: number;
  maxAttempts: number;
  /** Faults of what lies around it, and ends of its process, so far. */
  faults: number;
  deaths: number;
};

/** How an attempt ended that did not settle its job, and which counter it adds to; a release adds to none. */
export type Return = {
  ended: "retried" | "released" | "lost";
  counts: "spent" | "faults" | "deaths" | null;
  delayMs: number;
  reason: string;
  costUsd: number | null;
};

/** What an organisation may have: jobs at once and jobs begun within 24 hours. null: as many as there are. */
export type OrgLimits = { atOnce: number | null; aDay: number | null };
/** What the claim heeds. `host`: jobs at once that load one host. */
export type Limits = { org: (orgId: string) => OrgLimits; host: number };

type Ended = (typeof attemptEnds)[number];

const leaseColumns = {
  id: jobs.id,
  kind: jobs.kind,
  subject: jobs.subject,
  attempt: jobs.attempt,
  spent: jobs.spent,
  maxAttempts: jobs.maxAttempts,
  faults: jobs.faults,
  deaths: jobs.deaths,
};

export type Queue = ReturnType<typeof createQueue>;

/**
 * The states of a job: queued → running → done | failed, running → queued by `putBack`, and queued | running → cancelled. The port to what
 * stores them: each change is one fenced statement (and its line of history) in the caller's transaction, and tells whether it took place.
 */
export function createQueue({ db, now, newId }: Pick<Deps, "db" | "now" | "newId">) {
  const insert = preparedInsert(db, jobs);
  const turns = createTurns({ db });
  const queued = sql`${jobs.state} = 'queued'`;
  const running = sql`${jobs.state} = 'running'`;

  const { $client } = db;
  const held = "where id = ? and attempt = ? and state = 'running'";
  type Held = [id: string, attempt: number];
  // By hand and not by Drizzle, whose way to a statement takes longer than SQLite takes for it.
  const statements = {
    comeDue: $client.prepare<never, [at: number]>(
      "update jobs set available_at = 0 where state = 'queued' and available_at > 0 and available_at <= ?",
    ),
    claim: $client.prepare<Lease, [owner: string, leaseUntil: number, at: number, id: string]>(
      `update jobs set state = 'running', attempt = attempt + 1, owner = ?, lease_until = ?, first_begun_at = coalesce(first_begun_at, ?)
      where id = ? and state = 'queued'
      returning id, kind, subject, attempt, spent, max_attempts maxAttempts, faults, deaths`,
    ),
    begin: $client.prepare<never, [id: string, attempt: number, owner: string, at: number]>(
      "insert into attempts (job_id, attempt, owner, begun_at) values (?, ?, ?, ?)",
    ),
    holds: $client.prepare<{ id: string }, Held>(`select id from jobs ${held}`),
    heartbeat: $client.prepare<never, [leaseUntil: number, ...Held]>(`update jobs set lease_until = ? ${held}`),
    settle: $client.prepare<never, [state: string, reason: string | null, at: number, ...Held]>(
      `update jobs set state = ?, last_error = ?, lease_until = null, ended_at = ? ${held}`,
    ),
    putBack: $client.prepare<never, [availableAt: number, reason: string, ...(0 | 1)[], ...Held]>(
      `update jobs set state = 'queued', available_at = ?, last_error = ?, lease_until = null,
      spent = spent + ?, faults = faults + ?, deaths = deaths + ? ${held}`,
    ),
    end: $client.prepare<
      never,
      [ended: Ended, reason: string | null, costUsd: number | null, at: number, id: string, attempt: number]
    >("update attempts set ended = ?, reason = ?, cost_usd = ?, ended_at = ? where job_id = ? and attempt = ?"),
  };

  function end(lease: Lease, ended: Ended, reason: string | null, costUsd: number | null): void {
    statements.end.run(ended, reason, costUsd, now(), lease.id, lease.attempt);
  }

  return {
    /** Part of the transaction that makes the row which the job serves. */
    enqueue(_tx: Tx, job: { kind: string; subject: string; orgId: string; host: string; maxAttempts: number }): void {
      const createdAt = now();
      insert({
        ...job,
        id: newId(createdAt),
        state: "queued",
        availableAt: 0,
        attempt: 0,
        spent: 0,
        faults: 0,
        deaths: 0,
        owner: null,
        leaseUntil: null,
        lastError: null,
        createdAt,
        firstBegunAt: null,
        endedAt: null,
      });
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
      // Come due, a job has its place by its age again: behind what is new for ever, it might never be begun.
      statements.comeDue.run(at);
      const leases: Lease[] = [];
      const order = turns(at, limits);
      while (leases.length < most) {
        const turn = order.next().value;
        if (!turn || turn.availableAt > at) return { leases, nextDueAt: turn?.availableAt ?? null };
        const lease = statements.claim.get(owner, at + leaseMs, at, turn.id);
        if (!lease) throw new Error(`the queued job ${turn.id} could not be claimed`);
        statements.begin.run(lease.id, lease.attempt, owner, at);
        leases.push(lease);
      }
      return { leases, nextDueAt: null };
    },

    /** Whether the lease still counts. */
    holds: ({ id, attempt }: Lease): boolean => statements.holds.get(id, attempt) !== null,

    heartbeat: (_tx: Tx, { id, attempt }: Lease, leaseMs: number): boolean =>
      statements.heartbeat.run(now() + leaseMs, id, attempt).changes > 0,

    /** Ends a job for good. */
    settle(_tx: Tx, lease: Lease, state: "done" | "failed", reason: string | null, costUsd: number | null): boolean {
      if (statements.settle.run(state, reason, now(), lease.id, lease.attempt).changes === 0) return false;
      end(lease, state, reason, costUsd);
      return true;
    },

    /** Gives a job back to be begun again: after `delayMs`, or (0) at once, whatever the clock says. */
    putBack(_tx: Tx, lease: Lease, { ended, counts, delayMs, reason, costUsd }: Return): boolean {
      const availableAt = delayMs > 0 ? now() + Math.ceil(delayMs) : 0;
      const adds = (["spent", "faults", "deaths"] as const).map((counter) => (counts === counter ? 1 : 0));
      if (statements.putBack.run(availableAt, reason, ...adds, lease.id, lease.attempt).changes === 0) return false;
      end(lease, ended, reason, costUsd);
      return true;
    },

    /** Has every job that waits for a moment come due so much sooner. */
    bringForward: (tx: Tx, ms: number): void =>
      tx.run(sql`update ${jobs} set available_at = available_at - ${ms} where ${queued} and available_at > ${now()}`),

    /** Calls off the job of a subject, whoever holds it. `costOf` tells what the attempt in progress, if any, has spent. False if it has ended. */
    cancel(tx: Tx, kind: string, subject: string, reason: string, costOf: (lease: Lease) => number | null): boolean {
      const own = and(eq(jobs.kind, kind), eq(jobs.subject, subject));
      const row = tx
        .select({ ...leaseColumns, state: jobs.state })
        .from(jobs)
        .where(own)
        .get();
      if (!row || !(row.state === "queued" || row.state === "running")) return false;
      tx.update(jobs)
        .set({ state: "cancelled", lastError: reason, leaseUntil: null, endedAt: now() })
        .where(eq(jobs.id, row.id))
        .run();
      if (row.state === "running") end(row, "cancelled", reason, costOf(row));
      return true;
    },

    /** Jobs whose holder is gone: every running one (`all`, at boot, under the data lock), or those whose lease ran out. */
    listOrphans: (which: "all" | "expired"): Lease[] =>
      db
        .select(leaseColumns)
        .from(jobs)
        .where(which === "all" ? running : and(running, lte(jobs.leaseUntil, now())))
        .all(),

    countUnfinished: (): number => db.select({ n: count() }).from(jobs).where(or(queued, running)).get()?.n ?? 0,
  };
}
