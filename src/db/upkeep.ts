import { statSync } from "node:fs";
import { and, eq, gt, inArray, lt, min, sql } from "drizzle-orm";
import type { Deps } from "../deps.ts";
import { tx } from "./open.ts";
import { firstIdOf } from "./rows.ts";
import { artefacts, runs, sessionEvents } from "./tables.ts";

const everyMs = 60_000;
const optimizeEveryMs = 24 * 3600_000;
const maxWalBytes = 64 * 1024 * 1024;
/** Events that are dropped in one transaction: some milliseconds. */
const batchRows = 50;

type Parts = { onError?: (error: unknown) => void };

/** What a database needs from time to time: sessions that are too old are dropped, the planner looks again, a long WAL is cut. */
export function createUpkeep(
  { db, config, log, now }: Pick<Deps, "db" | "config" | "log" | "now">,
  { onError }: Parts,
) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let working: Promise<void> | null = null;
  let state: "idle" | "serving" | "stopping" = "idle";
  const isStopping = () => state === "stopping";
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

  /** A batch at a time, and as much time for everything else between two. */
  async function dropSessions(): Promise<void> {
    if (config.keepSessionsMs === null) return;
    const before = now() - config.keepSessionsMs;
    // What was made later has not ended earlier.
    const end = firstIdOf(before);
    let dropped = 0;
    for (let run = next.get({ after: "", end })?.run; run && !isStopping(); run = next.get({ after: run, end })?.run) {
      if (!ended.get({ run, before })) continue;
      // Before the last event, by which the run is found again after a crash.
      tx(db, (t) => t.delete(artefacts).where(eq(artefacts.runId, run)).run());
      for (let rows = batchRows; rows === batchRows && !isStopping(); ) {
        const began = performance.now();
        rows = tx(db, () => dropBatch.all({ run }).length);
        await Bun.sleep(performance.now() - began);
      }
      dropped++;
    }
    if (dropped > 0) log.info({ sessions: dropped }, "dropped the events of sessions that are too old");
  }

  function optimize(): void {
    // A clock that was set back must not put it off.
    if (Math.abs(now() - optimizedAt) < optimizeEveryMs) return;
    optimizedAt = now();
    db.$client.run("pragma optimize");
  }

  /** Readers keep a WAL from being cut: then it is tried again later, for waiting would stop everything else. */
  function cutWal(): void {
    if ((statSync(`${db.$client.filename}-wal`, { throwIfNoEntry: false })?.size ?? 0) <= maxWalBytes) return;
    db.$client.run("pragma busy_timeout = 0");
    try {
      db.$client.run("pragma wal_checkpoint(truncate)");
    } finally {
      db.$client.run("pragma busy_timeout = 5000");
    }
  }

  /** Does what is due. Never throws: what fails is logged, and due again. */
  async function runOnce(): Promise<void> {
    for (const work of [dropSessions, optimize, cutWal]) {
      try {
        await work();
      } catch (error) {
        onError?.(error);
        log.error({ err: error }, "the upkeep of the database failed");
      }
    }
  }

  function wake(): void {
    working = runOnce().then(() => {
      if (state === "serving") timer = setTimeout(wake, everyMs);
    });
  }

  return {
    runOnce,
    start(): void {
      state = "serving";
      wake();
    },
    async stop(): Promise<void> {
      state = "stopping";
      clearTimeout(timer);
      await working;
    },
  };
}
