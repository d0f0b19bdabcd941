import { statSync } from "node:fs";
import { and, eq, gt, inArray, lt, min, sql } from "drizzle-orm";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { createPoll } from "../poll.ts";
import { type Db, tx } from "./open.ts";
import { firstIdOf } from "./rows.ts";
import { artefacts, runs, sessionEvents } from "./tables.ts";

const everyMs = 60_000;
const optimizeEveryMs = 24 * 3600_000;
const maxWalBytes = 64 * 1024 * 1024;
/** Events deleted per transaction, which takes milliseconds. */
const batchRows = 50;

type Parts = { db: Db; config: Config; log: Logger; now: () => number };
type Options = { onError?: (error: unknown) => void };

/** Database maintenance: deletes events of old sessions, updates planner statistics, truncates a long WAL. */
export function createUpkeep({ db, config, log, now }: Parts, { onError }: Options) {
  let isStopping = false;
  let optimizedAt = now();

  const batch = db
    .select({ rowid: sql`rowid` })
    .from(sessionEvents)
    .where(eq(sessionEvents.runId, sql.placeholder("run")))
    .orderBy(sessionEvents.attempt, sessionEvents.seq)
    .limit(batchRows);
  const dropBatch = db
    .delete(sessionEvents)
    .where(inArray(sql`rowid`, batch))
    .returning({ seq: sessionEvents.seq })
    .prepare();

  /** The first run after another one, made before the id `end`, that still has events. */
  const next = db
    .select({ run: min(sessionEvents.runId) })
    .from(sessionEvents)
    .where(and(gt(sessionEvents.runId, sql.placeholder("after")), lt(sessionEvents.runId, sql.placeholder("end"))))
    .prepare();
  const ended = db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.id, sql.placeholder("run")), lt(runs.completedAt, sql.placeholder("before"))))
    .prepare();

  /** Deletes in batches, with pauses as long as the batches in between. */
  async function dropSessions(): Promise<void> {
    if (config.keepSessionsMs === null) return;
    const before = now() - config.keepSessionsMs;
    // Runs created after the cutoff cannot have ended before it.
    const end = firstIdOf(before);
    let dropped = 0;
    for (let run = next.get({ after: "", end })?.run; run && !isStopping; run = next.get({ after: run, end })?.run) {
      if (!ended.get({ run, before })) continue;
      // Artefacts first: after a crash the run is found by its remaining events.
      tx(db, (t) => t.delete(artefacts).where(eq(artefacts.runId, run)).run());
      for (let rows = batchRows; rows === batchRows && !isStopping; ) {
        const began = performance.now();
        rows = tx(db, () => dropBatch.all({ run }).length);
        await Bun.sleep(performance.now() - began);
      }
      dropped++;
    }
    if (dropped > 0) log.info({ sessions: dropped }, "deleted events of old sessions");
  }

  function optimize(): void {
    // A clock set back must not delay maintenance.
    if (Math.abs(now() - optimizedAt) < optimizeEveryMs) return;
    optimizedAt = now();
    db.$client.run("pragma optimize");
  }

  /** Truncates the WAL. If readers block it, it retries later instead of blocking the service. */
  function cutWal(): void {
    if ((statSync(`${db.$client.filename}-wal`, { throwIfNoEntry: false })?.size ?? 0) <= maxWalBytes) return;
    db.$client.run("pragma busy_timeout = 0");
    try {
      db.$client.run("pragma wal_checkpoint(truncate)");
    } finally {
      db.$client.run("pragma busy_timeout = 5000");
    }
  }

  /** Runs the maintenance that is due. Never throws: failures are logged and retried. */
  async function runOnce(): Promise<void> {
    for (const work of [dropSessions, optimize, cutWal]) {
      try {
        await work();
      } catch (error) {
        onError?.(error);
        log.error({ err: error }, "database maintenance failed");
      }
    }
  }

  const poll = createPoll({ check: () => runOnce().then(() => everyMs), onError: () => {}, retryMs: everyMs });

  return {
    runOnce,
    start: poll.start,
    stop(): Promise<void> {
      isStopping = true;
      return poll.stop();
    },
  };
}
