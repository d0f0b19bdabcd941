import pino from "pino";
import { readConfig } from "../../src/config/config.ts";
import { type Context, createContext } from "../../src/context.ts";
import type { Db, Tx } from "../../src/db/open.ts";
import type { Limits, Pool } from "../../src/jobs/claim-order.ts";
import * as jobs from "../../src/jobs/queue.ts";

/** A context with a test's own clock and IDs. */
export const queueContext = (db: Db, own: Pick<Context, "now" | "newId">): Context =>
  createContext({
    ...own,
    db,
    config: readConfig({ EVALD_LOG_LEVEL: "silent" }),
    log: pino({ level: "silent" }),
    agents: {},
    baseUrl: () => "http://localhost:3000",
  });

export const countUnfinishedJobs = ({ db }: Context, pool: Pool): number =>
  db.$client
    .query<{ n: number }, [Pool]>("select count(*) n from jobs where state in ('queued', 'running') and pool = ?")
    .get(pool)?.n ?? 0;

type Job = Omit<Parameters<typeof jobs.enqueue>[2], "pool">;

/** The queue of runs, with short calls. */
export const queueOf = (ctx: Context) => ({
  enqueue: (tx: Tx, job: Job) => jobs.enqueue(ctx, tx, { pool: "runs", ...job }),
  claim: (tx: Tx, most: number, owner: string, leaseMs: number, limits: Limits) =>
    jobs.claimJobs(ctx, tx, { pool: "runs", max: most, owner, leaseMs, limits }),
  holds: (lease: jobs.Lease) => jobs.isLeaseHeld(ctx, lease),
  heartbeat: (tx: Tx, lease: jobs.Lease, leaseMs: number) => jobs.extendLease(ctx, tx, lease, leaseMs),
  settle: (tx: Tx, lease: jobs.Lease, state: "done" | "failed", reason: string | null, costUsd: number | null) =>
    jobs.settleJob(ctx, tx, lease, { state, reason, costUsd }),
  putBack: (tx: Tx, lease: jobs.Lease, how: jobs.Requeue) => jobs.requeueJob(ctx, tx, lease, how),
  cancel: (tx: Tx, kind: string, subject: string, reason: string, costOf: (lease: jobs.Lease) => number | null) =>
    jobs.cancelJob(tx, { kind, subject, reason, at: ctx.now() }, costOf),
  bringForward: (tx: Tx, ms: number) => jobs.bringJobsForward(ctx, tx, "runs", ms),
  listOrphans: (which: "all" | "expired") => jobs.listOrphanedJobs(ctx, "runs", which),
  countUnfinished: () => countUnfinishedJobs(ctx, "runs"),
});
