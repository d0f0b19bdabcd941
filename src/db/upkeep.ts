import { statSync } from "node:fs";
import { and, eq, gt, inArray, isNull, lt, min, ne, notExists, sql } from "drizzle-orm";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { createPoll } from "../poll.ts";
import type { DiskHealth } from "./disk-health.ts";
import { type Db, optimizePragma, type Tx, transaction } from "./open.ts";
import { statement } from "./prepared.ts";
import type { ProvenTime } from "./proven-time.ts";
import { firstIdOf } from "./rows.ts";
import { auditEntries, auditRetention } from "./tables/audit.ts";
import { earlierAttempts, jobs } from "./tables/jobs.ts";
import { usedTokens } from "./tables/keys.ts";
import { deliveries, deliveryTries, notifications } from "./tables/notifications.ts";
import { signInFailures, signIns, verifications } from "./tables/people.ts";
import { archives } from "./tables/prompts.ts";
import { artifacts, runs, sessionEvents, sessionPages } from "./tables/runs.ts";
import { untilUnlocked, withoutWaiting } from "./write-lock.ts";

const intervalMs = 60_000;
const maxWalBytes = 64 * 1024 * 1024;
/** Events or deliveries deleted per transaction, which takes milliseconds. */
const batchRows = 50;
/** Expired rows deleted per table and pass. */
const expiredRows = 1_000;
/** Sites are kept this long after their last run. */
const keepSitesMs = 7 * 24 * 3_600_000;
/** ID tokens of CI jobs are accepted this long after they expire, and failed sign-in attempts count this long. */
const graceMs = 15 * 60_000;

/** Deletes up to a batch of deliveries made before the ID `endId` and ended before `beforeMs`. Returns their number. */
function deleteDeliveryBatch(tx: Tx, endId: string, beforeMs: number): number {
  const ended = and(lt(deliveries.id, endId), lt(deliveries.completedAt, beforeMs));
  const batch = tx.select({ id: deliveries.id }).from(deliveries).where(ended).orderBy(deliveries.id).limit(batchRows);
  const ids = batch.all().map(({ id }) => id);
  const jobOfBatch = and(eq(jobs.kind, "delivery"), inArray(jobs.subject, ids));
  const jobIds = tx.select({ id: jobs.id }).from(jobs).where(jobOfBatch);
  tx.delete(deliveryTries).where(inArray(deliveryTries.deliveryId, ids)).run();
  tx.delete(earlierAttempts).where(inArray(earlierAttempts.jobId, jobIds)).run();
  tx.delete(jobs).where(jobOfBatch).run();
  tx.delete(deliveries).where(inArray(deliveries.id, ids)).run();
  return ids.length;
}

type Resources = { db: Db; config: Config; log: Logger; provenTime: ProvenTime; disk: DiskHealth };

const deleteEventBatch = statement((db) => {
  const batch = db
    .select({ rowid: sql`rowid` })
    .from(sessionEvents)
    .where(eq(sessionEvents.runId, sql.placeholder("run")))
    .orderBy(sessionEvents.attempt, sessionEvents.seq)
    .limit(batchRows);
  return db.delete(sessionEvents).where(inArray(sql`rowid`, batch)).returning({ seq: sessionEvents.seq });
});

/** The first run between the IDs `after` and `end` that still has events. */
const nextRunWithEvents = statement((db) =>
  db
    .select({ run: min(sessionEvents.runId) })
    .from(sessionEvents)
    .where(and(gt(sessionEvents.runId, sql.placeholder("after")), lt(sessionEvents.runId, sql.placeholder("end")))),
);

const runCompletedBefore = statement((db) =>
  db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.id, sql.placeholder("run")), lt(runs.completedAt, sql.placeholder("before")))),
);

/**
 * Deletes in batches. After each batch it pauses for as long as the batch took. `deleteBatch` returns the number of rows that it deleted. Returns the
 * total.
 */
async function deleteInBatches(db: Db, stop: AbortSignal, deleteBatch: (tx: Tx) => number): Promise<number> {
  let deleted = 0;
  while (!stop.aborted) {
    const startedAt = performance.now();
    const rows = transaction(db, deleteBatch);
    deleted += rows;
    await Bun.sleep(performance.now() - startedAt);
    if (rows < batchRows) break;
  }
  return deleted;
}

/** Deletes the events of old sessions. */
async function deleteOldSessions({ db, config, log, provenTime }: Resources, stop: AbortSignal): Promise<void> {
  if (config.keepSessionsMs === null) return;
  const beforeMs = provenTime.now() - config.keepSessionsMs;
  // Runs created after the cutoff cannot have ended before it.
  const endId = firstIdOf(beforeMs);
  const runAfter = (after: string) => nextRunWithEvents(db).get({ after, end: endId })?.run;
  let deleted = 0;
  for (let run = runAfter(""); run && !stop.aborted; run = runAfter(run)) {
    if (!runCompletedBefore(db).get({ run, before: beforeMs })) continue;
    // Events are deleted last. After a crash, the remaining events lead to the run again.
    transaction(db, (tx) => {
      for (const table of [artifacts, sessionPages]) tx.delete(table).where(eq(table.runId, run)).run();
    });
    await deleteInBatches(db, stop, () => deleteEventBatch(db).all({ run }).length);
    deleted++;
  }
  if (deleted > 0) log.info({ sessions: deleted }, "deleted events of old sessions");
}

/** Deletes expired sign-ins, old counts of failed attempts, and the records of used ID tokens that have expired. */
function deleteExpiredRows({ db, provenTime }: Resources): void {
  const nowMs = provenTime.now();
  for (const [table, whereExpired] of [
    [signIns, lt(signIns.expiresAt, new Date(nowMs))],
    [verifications, lt(verifications.expiresAt, new Date(nowMs))],
    [signInFailures, lt(signInFailures.since, nowMs - graceMs)],
    [usedTokens, lt(usedTokens.expiresAt, nowMs - graceMs)],
  ] as const) {
    const expired = db.select({ rowid: sql`rowid` }).from(table).where(whereExpired).limit(expiredRows);
    // Most passes find nothing, and need no transaction.
    if (expired.get()) transaction(db, (tx) => tx.delete(table).where(inArray(sql`rowid`, expired)).run());
  }
}

/** Deletes sites that no run has used for a week, and no active run needs. One at a time, because each is megabytes. */
async function deleteUnusedSites({ db, log, provenTime }: Resources, stop: AbortSignal): Promise<void> {
  const beforeMs = provenTime.now() - keepSitesMs;
  const runsThatNeedIt = db
    .select({ id: runs.id })
    .from(runs)
    .where(
      and(
        eq(runs.orgId, archives.orgId),
        inArray(runs.status, ["pending", "running"]),
        sql`json_extract(${runs.task}, '$.site.archiveId') = ${archives.id}`,
      ),
    );
  const nextUnused = db
    .select({ id: archives.id })
    .from(archives)
    .where(and(eq(archives.kind, "site"), lt(archives.usedAt, beforeMs), notExists(runsThatNeedIt)))
    .limit(1);
  let deleted = 0;
  for (let site = nextUnused.get(); site && !stop.aborted; site = nextUnused.get()) {
    const { id } = site;
    transaction(db, (tx) => tx.delete(archives).where(eq(archives.id, id)).run());
    deleted++;
    await Bun.sleep(0);
  }
  if (deleted > 0) log.info({ sites: deleted }, "deleted unused sites");
}

/**
 * Deletes old deliveries that have ended, and notifications without deliveries. The keys of notifications that are sent once stay, without
 * their data.
 */
async function deleteOldDeliveries({ db, config, log, provenTime }: Resources, stop: AbortSignal): Promise<void> {
  if (config.keepSessionsMs === null) return;
  const beforeMs = provenTime.now() - config.keepSessionsMs;
  const endId = firstIdOf(beforeMs);
  const deleted = await deleteInBatches(db, stop, (tx) => deleteDeliveryBatch(tx, endId, beforeMs));
  transaction(db, (tx) => {
    const sent = tx
      .select({ id: deliveries.id })
      .from(deliveries)
      .where(and(eq(deliveries.orgId, notifications.orgId), eq(deliveries.notificationId, notifications.id)));
    const unused = and(lt(notifications.id, endId), notExists(sent));
    tx.delete(notifications)
      .where(and(unused, isNull(notifications.onceKey)))
      .run();
    tx.update(notifications)
      .set({ data: {} })
      .where(and(unused, ne(notifications.data, {})))
      .run();
  });
  if (deleted > 0) log.info({ deliveries: deleted }, "deleted old deliveries");
}

/** Deletes old entries of the audit log. Triggers refuse to delete any that are newer than the stored `deleteBefore`. */
function deleteOldAuditEntries({ db, config, provenTime }: Resources): void {
  if (config.keepAuditLogMs === null) return;
  const deleteBefore = provenTime.now() - config.keepAuditLogMs;
  const old = db
    .select({ id: auditEntries.id })
    .from(auditEntries)
    .where(lt(auditEntries.id, firstIdOf(deleteBefore)));
  const batch = old.orderBy(auditEntries.id).limit(expiredRows);
  if (!batch.get()) return;
  transaction(db, (tx) => {
    const row = { id: 1, deleteBefore };
    tx.insert(auditRetention).values(row).onConflictDoUpdate({ target: auditRetention.id, set: row }).run();
    tx.delete(auditEntries).where(inArray(auditEntries.id, batch)).run();
  });
}

/**
 * Updates the planner statistics of tables that have grown tenfold; otherwise it does nothing, in a tenth of a millisecond. With the
 * statistics of a new database, the planner reads whole tables for each row of a list.
 */
function optimize({ db }: Resources): void {
  withoutWaiting(db, () => db.$client.run(optimizePragma));
}

/** Truncates the WAL. If readers block it, it retries later instead of blocking the service. */
function truncateWal({ db }: Resources): void {
  if ((statSync(`${db.$client.filename}-wal`, { throwIfNoEntry: false })?.size ?? 0) <= maxWalBytes) return;
  withoutWaiting(db, () => db.$client.run("pragma wal_checkpoint(truncate)"));
}

/**
 * Database maintenance: deletes events of old sessions and expired rows, updates planner statistics, and truncates a long WAL. `featureTasks`: the
 * tasks of features, which come first.
 */
export function createUpkeep(resources: Resources, featureTasks: ((stop: AbortSignal) => Promise<void>)[] = []) {
  const stopping = new AbortController();
  let wasAhead = false;

  /** Logs once if the clock moved too far to delete by it. Stores what is known about the clock. */
  function checkClock({ provenTime, log }: Resources): void {
    const aheadMs = provenTime.aheadMs();
    if (aheadMs > 0 && !wasAhead)
      log.warn(
        { aheadMs },
        "the clock moved forward by more than the time that passed; evald deletes nothing by it yet",
      );
    wasAhead = aheadMs > 0;
    provenTime.store();
  }

  const tasks = [
    checkClock,
    ...featureTasks.map((task) => (_: Resources, stop: AbortSignal) => task(stop)),
    deleteOldSessions,
    deleteOldDeliveries,
    deleteUnusedSites,
    deleteExpiredRows,
    deleteOldAuditEntries,
    optimize,
    truncateWal,
  ];

  /** Runs the maintenance that is due. Never throws: failures are logged and retried. */
  async function runOnce(): Promise<void> {
    for (const task of tasks) {
      try {
        await untilUnlocked(resources.db);
        await task(resources, stopping.signal);
      } catch (error) {
        resources.disk.onError(error);
        resources.log.error({ err: error }, "database maintenance failed");
      }
    }
  }

  const poll = createPoll({ check: () => runOnce().then(() => intervalMs), onError: () => {}, retryMs: intervalMs });

  return {
    runOnce,
    wake: poll.wake,
    start: poll.start,
    stop(): Promise<void> {
      stopping.abort();
      return poll.stop();
    },
  };
}
