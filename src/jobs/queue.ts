import { and, count, eq, lte, sql } from "drizzle-orm";
import type { Tx } from "../db/open.ts";
import { preparedInsert } from "../db/rows.ts";
import { type attemptEnds, attempts, jobs } from "../db/tables.ts";
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

const value = sql.placeholder;
const set = (name: string) => sql`${sql.placeholder(name)}`;

export type Queue = ReturnType<typeof createQueue>;

/**
 * The states of a job: queued → running → done | failed, running → queued by `putBack`, and queued | running → cancelled. The port to what
 * stores them: each change is one fenced statement (and its line of history) in the caller's transaction, and tells whether it took place.
 */
export function createQueue({ db, now, newId }: Pick<Deps, "db" | "now" | "newId">) {
  const insert = preparedInsert(db, jobs);
  const insertAttempt = preparedInsert(db, attempts);
  const turns = createTurns({ db });
  const held = and(eq(jobs.id, value("id")), eq(jobs.attempt, value("attempt")), eq(jobs.state, "running"));
  const queued = eq(jobs.state, "queued");
  const running = eq(jobs.state, "running");
  const returned = { id: jobs.id };

  const statements = {
    claim: db
      .update(jobs)
      .set({
        state: "running",
        attempt: sql`${jobs.attempt} + 1`,
        owner: set("owner"),
        leaseUntil: set("leaseUntil"),
        firstBegunAt: sql`coalesce(${jobs.firstBegunAt}, ${value("at")})`,
      })
      .where(and(eq(jobs.id, value("id")), queued))
      .returning(leaseColumns)
      .prepare(),
    holds: db.select(returned).from(jobs).where(held).prepare(),
    heartbeat: db
      .update(jobs)
      .set({ leaseUntil: set("leaseUntil") })
      .where(held)
      .returning(returned)
      .prepare(),
    settle: db
      .update(jobs)
      .set({ state: set("state"), lastError: set("reason"), leaseUntil: null, endedAt: set("at") })
      .where(held)
      .returning(returned)
      .prepare(),
    putBack: db
      .update(jobs)
      .set({
        state: "queued",
        availableAt: set("availableAt"),
        lastError: set("reason"),
        leaseUntil: null,
        spent: sql`${jobs.spent} + (${value("counts")} is 'spent')`,
        faults: sql`${jobs.faults} + (${value("counts")} is 'faults')`,
        deaths: sql`${jobs.deaths} + (${value("counts")} is 'deaths')`,
      })
      .where(held)
      .returning(returned)
      .prepare(),
    endAttempt: db
      .update(attempts)
      .set({ ended: set("ended"), reason: set("reason"), costUsd: set("costUsd"), endedAt: set("at") })
      .where(and(eq(attempts.jobId, value("id")), eq(attempts.attempt, value("attempt"))))
      .prepare(),
  };

  function end(lease: Lease, ended: Ended, reason: string | null, costUsd: number | null): void {
    statements.endAttempt.run({ id: lease.id, attempt: lease.attempt, ended, reason, costUsd, at: now() });
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
      const leases: Lease[] = [];
      const order = turns(at, limits);
      while (leases.length < most) {
        const turn = order.next().value;
        if (!turn || turn.availableAt > at) return { leases, nextDueAt: turn?.availableAt ?? null };
        const lease = statements.claim.get({ id: turn.id, owner, leaseUntil: at + leaseMs, at });
        if (!lease) throw new Error(`the queued job ${turn.id} could not be claimed`);
        const { id: jobId, attempt } = lease;
        insertAttempt({ jobId, attempt, owner, begunAt: at, endedAt: null, ended: null, reason: null, costUsd: null });
        leases.push(lease);
      }
      return { leases, nextDueAt: null };
    },

    /** Whether the lease still counts. */
    holds: ({ id, attempt }: Lease): boolean => statements.holds.get({ id, attempt }) !== undefined,
    heartbeat: (_tx: Tx, { id, attempt }: Lease, leaseMs: number): boolean =>
      statements.heartbeat.get({ id, attempt, leaseUntil: now() + leaseMs }) !== undefined,

    /** Ends a job for good. */
    settle(_tx: Tx, lease: Lease, state: "done" | "failed", reason: string | null, costUsd: number | null): boolean {
      const { id, attempt } = lease;
      if (!statements.settle.get({ id, attempt, state, reason, at: now() })) return false;
      end(lease, state, reason, costUsd);
      return true;
    },

    /** Gives a job back to be begun again: after `delayMs`, or (0) at once, whatever the clock says. */
    putBack(_tx: Tx, lease: Lease, { ended, counts, delayMs, reason, costUsd }: Return): boolean {
      const { id, attempt } = lease;
      const availableAt = delayMs > 0 ? now() + Math.ceil(delayMs) : 0;
      if (!statements.putBack.get({ id, attempt, availableAt, reason, counts })) return false;
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

    countUnfinished: (): number =>
      db.select({ n: count() }).from(jobs).where(sql`${jobs.state} in ('queued', 'running')`).get()?.n ?? 0,
  };
}
