import { sql } from "drizzle-orm";
import {
  check,
  index,
  integer,
  primaryKey,
  real,
  sqliteTable,
  sqliteView,
  text,
  unique,
} from "drizzle-orm/sqlite-core";
import { oneOf, timestamp } from "./columns.ts";

/** Jobs that share a runner. A delivery must neither wait for runs nor keep them waiting. */
export const jobPools = ["runs", "deliveries"] as const;
/** `held`: queued, but not to be started until it is released. */
const jobStates = ["queued", "held", "running", "done", "failed", "cancelled"] as const;
/** How an attempt that did not end its job ended. `retried`: will be retried; `released`: shutdown; `lost`: its process crashed. */
export const returnOutcomes = ["retried", "released", "lost"] as const;
export const attemptOutcomes = ["done", "failed", ...returnOutcomes, "cancelled"] as const;

/** Jobs for the runner. `subject` is the ID of the row that it serves; `attempt` fences off writes of an old lease. */
export const jobs = sqliteTable(
  "jobs",
  {
    id: text().primaryKey(),
    pool: text({ enum: jobPools }).notNull().default("runs"),
    kind: text().notNull(),
    subject: text().notNull(),
    /** The organization, and the first host that it requests: limits apply to these. */
    orgId: text("org_id").notNull(),
    host: text().notNull(),
    state: text({ enum: jobStates }).notNull(),
    /** 0: immediately, even if the clock is set back. */
    availableAt: timestamp("available_at").notNull(),
    /** Number of starts. */
    attempt: integer().notNull(),
    /** Attempts that count against `maxAttempts`. Faults and crashes are counted below, each with its own limit. */
    spent: integer().notNull(),
    maxAttempts: integer("max_attempts").notNull(),
    /** Infrastructure faults: network, model provider, disk. */
    faults: integer().notNull(),
    /** Crashes of its process. */
    crashes: integer("deaths").notNull(),
    owner: text(),
    leaseUntil: timestamp("lease_until"),
    lastError: text("last_error"),
    createdAt: timestamp("created_at").notNull(),
    /** Start of the first attempt. */
    startedAt: timestamp("started_at"),
    /** Start of the current attempt or, once the job has ended, of its last attempt; null: queued, or cancelled while queued. */
    attemptStartedAt: timestamp("attempt_started_at"),
    completedAt: timestamp("completed_at"),
    /** Model cost of the attempt that ended the job; null if unknown. */
    costUsd: real("cost_usd"),
  },
  (table) => [
    unique("jobs_subject").on(table.kind, table.subject),
    index("jobs_claim")
      .on(table.pool, table.orgId, table.host, table.availableAt, table.id)
      .where(sql`${table.state} = 'queued'`),
    index("jobs_waiting").on(table.availableAt).where(sql`${table.state} = 'queued' and ${table.availableAt} > 0`),
    index("jobs_held").on(table.orgId).where(sql`${table.state} = 'held'`),
    index("jobs_running").on(table.leaseUntil).where(sql`${table.state} = 'running'`),
    index("jobs_started").on(table.orgId, table.startedAt).where(sql`${table.startedAt} is not null`),
    check("jobs_state", oneOf(table.state, jobStates)),
    check("jobs_lease", sql`(${table.state} = 'running') = (${table.leaseUntil} is not null)`),
    check(
      "jobs_completed",
      sql`(${table.state} in ('done', 'failed', 'cancelled')) = (${table.completedAt} is not null)`,
    ),
  ],
);

/**
 * The attempts after which a job was queued again. Its table is WITHOUT ROWID, which Drizzle does not know: a migration that rebuilds it
 * must say so.
 */
export const earlierAttempts = sqliteTable(
  "earlier_attempts",
  {
    jobId: text("job_id").notNull(),
    attempt: integer().notNull(),
    owner: text().notNull(),
    startedAt: timestamp("started_at").notNull(),
    completedAt: timestamp("completed_at").notNull(),
    outcome: text({ enum: returnOutcomes }).notNull(),
    reason: text(),
    /** Model cost when it ended; null if unknown. */
    costUsd: real("cost_usd"),
  },
  (table) => [
    primaryKey({ columns: [table.jobId, table.attempt] }),
    check("earlier_attempts_outcome", oneOf(table.outcome, returnOutcomes)),
  ],
);

/**
 * All attempts of all jobs: the earlier ones, and from the row of each job the one in progress or the one that ended it.
 * Select them by the IDs of their jobs. For a join, SQLite reads the whole view.
 */
export const attempts = sqliteView("attempts", {
  jobId: text("job_id").notNull(),
  attempt: integer().notNull(),
  owner: text().notNull(),
  startedAt: timestamp("started_at").notNull(),
  completedAt: timestamp("completed_at"),
  outcome: text({ enum: attemptOutcomes }),
  reason: text(),
  costUsd: real("cost_usd"),
}).as(sql`
  select job_id, attempt, owner, started_at, completed_at, outcome, reason, cost_usd from earlier_attempts
  union all
  select id, attempt, owner, attempt_started_at, completed_at, iif(completed_at is null, null, state),
    iif(completed_at is null, null, last_error), cost_usd
  from jobs where attempt_started_at is not null`);
