import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Counter as CounterMetric, Registry } from "prom-client";
import { version } from "../../package.json" with { type: "json" };
import { countFailedBackups, findBackupState } from "../backups/backups.ts";
import { listCheckStates } from "../checks/health-checks.ts";
import type { Context } from "../context.ts";
import { lastBackupAt } from "../db/backup-record.ts";
import type { Db } from "../db/open.ts";
import { timeOfId } from "../db/rows.ts";
import { jobPools } from "../db/tables/jobs.ts";
import { loadPromClient } from "../lazy-packages.ts";
import { workerStates } from "../places/messages.ts";
import type { WorkerExecutor } from "../places/worker-executor.ts";

function addGauge<L extends string = never>(registry: Registry, name: string, help: string, labelNames: L[] = []) {
  return new (loadPromClient().Gauge)({ name, help, labelNames, registers: [registry] });
}

const addCounter = (registry: Registry, name: string, help: string) =>
  new (loadPromClient().Counter)({ name, help, registers: [registry] });

/** Sets a counter whose total is known from elsewhere. */
function setTotal(counter: CounterMetric, total: number): void {
  counter.reset();
  counter.inc(total);
}

/** Registers metrics that are read from the database, the disk and the process at each scrape. Returns the function that reads them. */
export function addGauges(registry: Registry, ctx: Context, workers: WorkerExecutor | null): () => void {
  addGauge(registry, "evald_build_info", "Version of evald", ["version"]).set({ version }, 1);
  const readers = [
    addStoredMetrics(registry, ctx),
    addDiskGauges(registry, ctx),
    addCheckGauge(registry, ctx),
    addProcessMetrics(registry, ctx),
    ...(ctx.config.backups === null ? [] : [addBackupMetrics(registry, ctx)]),
    ...(workers === null ? [] : [addWorkerGauges(registry, workers)]),
  ];
  return () => {
    for (const read of readers) read();
  };
}

/** Registers metrics about all organizations in the database. Returns the function that reads them. */
function addStoredMetrics(registry: Registry, { db, now }: Context): () => void {
  const jobs = addGauge(
    registry,
    "evald_jobs",
    "Unfinished jobs by state: queued, delayed (to be retried later), held (paused by an operator) or running",
    ["pool", "state"],
  );
  const oldest = addGauge(
    registry,
    "evald_jobs_oldest_queued_seconds",
    "Age of the oldest queued job; 0 if none is queued",
    ["pool"],
  );
  const spendingHelp = "Known cost of model calls, judges included, in USD";
  const spending = addCounter(registry, "evald_model_spend_usd_total", spendingHelp);
  const unpriced = addCounter(registry, "evald_model_unpriced_calls_total", "Model calls of unknown cost");
  const readStored = createStoredReader(db, now);
  return () => {
    const { waiting, active, usd, calls } = readStored();
    for (const pool of jobPools) {
      for (const state of ["queued", "delayed", "held", "running"]) jobs.set({ pool, state }, 0);
      oldest.set({ pool }, 0);
    }
    for (const { pool, queued, delayed, oldestAt } of waiting) {
      jobs.set({ pool, state: "queued" }, queued);
      jobs.set({ pool, state: "delayed" }, delayed);
      if (oldestAt !== null) oldest.set({ pool }, Math.max(0, now() - oldestAt) / 1000);
    }
    for (const { pool, state, n } of active) jobs.set({ pool, state }, n);
    setTotal(spending, usd);
    setTotal(unpriced, calls);
  };
}

/** Registers the sizes of the files of the database, and their last backup. Returns the function that reads them. */
function addDiskGauges(registry: Registry, { db }: Context): () => void {
  const database = addGauge(registry, "evald_database_bytes", "Size of the database file");
  const wal = addGauge(registry, "evald_wal_bytes", "Size of the write-ahead log of the database");
  const free = addGauge(registry, "evald_disk_free_bytes", "Free space on the disk of the database");
  const backupHelp = "Time of the last evald backup, in seconds since 1970; 0: never";
  const backup = addGauge(registry, "evald_last_backup_timestamp_seconds", backupHelp);
  const { filename } = db.$client;
  return () => {
    database.set(sizeOf(filename));
    wal.set(sizeOf(`${filename}-wal`));
    const { bavail, bsize } = statfsSync(dirname(filename));
    free.set(bavail * bsize);
    backup.set(lastBackupAt(db) / 1000);
  };
}

const checkValues = { ok: 0, warning: 1, failed: 2 };

/** Registers the results of the checks of the installation. Returns the function that reads them. */
function addCheckGauge(registry: Registry, ctx: Context): () => void {
  const help = "Result of each check of the installation that applies: 0 ok, 1 warning, 2 failed";
  const checkStatus = addGauge(registry, "evald_check_status", help, ["check"]);
  return () => {
    checkStatus.reset();
    for (const [check, state] of listCheckStates(ctx))
      if (state !== "not_applicable") checkStatus.set({ check }, checkValues[state]);
  };
}

/** Registers metrics that the system has about this process. Returns the function that reads them. */
function addProcessMetrics(registry: Registry, { now }: Context): () => void {
  const start = addGauge(registry, "process_start_time_seconds", "Start of the process, in seconds since 1970");
  start.set(Math.round(now() / 1000));
  const memory = addGauge(registry, "process_resident_memory_bytes", "Resident memory of the process");
  const cpu = addCounter(registry, "process_cpu_seconds_total", "CPU time of the process");
  return () => {
    memory.set(process.memoryUsage.rss());
    const { user, system } = process.cpuUsage();
    setTotal(cpu, (user + system) / 1e6);
  };
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Registers metrics about scheduled backups. Returns the function that reads them. */
function addBackupMetrics(registry: Registry, ctx: Context): () => void {
  const lastHelp = "Start of the last scheduled or requested backup that was checked, in seconds since 1970; 0: never";
  const last = addGauge(registry, "evald_backup_last_success_timestamp_seconds", lastHelp);
  const bytes = addGauge(registry, "evald_backup_bytes", "Size of that backup");
  const duration = addGauge(registry, "evald_backup_duration_seconds", "How long that backup took with its check");
  const failures = addCounter(registry, "evald_backup_failures_total", "Failed tries to back up");
  const failedAtStart = countFailedBackups(ctx);
  return () => {
    const state = findBackupState(ctx);
    last.set((state?.lastAt ?? 0) / 1000);
    bytes.set(state?.bytes ?? 0);
    duration.set((state?.durationMs ?? 0) / 1000);
    // Old failures are forgotten, so the count can be less than at the start.
    setTotal(failures, Math.max(0, countFailedBackups(ctx) - failedAtStart));
  };
}

/** Registers metrics about workers. Returns the function that reads them. */
function addWorkerGauges(registry: Registry, workers: WorkerExecutor): () => void {
  const gauge = <L extends string>(name: string, help: string, label: L) => addGauge(registry, name, help, [label]);
  const states = gauge("evald_workers", "Connected workers by state: ready, not_ready, draining or refused", "state");
  const slots = gauge("evald_worker_slots", "Maximum concurrent sessions by host name of the worker", "worker");
  const sessions = gauge("evald_worker_sessions", "Active sessions by host name of the worker", "worker");
  const silenceHelp = "Time since the last message by host name of the worker";
  const silence = gauge("evald_worker_silent_seconds", silenceHelp, "worker");
  const waitingHelp = "Active runs that wait for a worker that has what they need, or for a slot on one that has it";
  const waiting = gauge("evald_runs_waiting", waitingHelp, "for");
  return () => {
    const all = workers.list();
    for (const each of [slots, sessions, silence]) each.reset();
    for (const state of workerStates) states.set({ state }, all.filter((each) => each.state === state).length);
    for (const { name: worker, ...each } of all) {
      slots.inc({ worker }, each.slots);
      sessions.inc({ worker }, each.runIds.length);
      silence.set({ worker }, each.silentMs / 1000);
    }
    const waitsFor = [...workers.waiting.values()];
    for (const what of ["worker", "slot"]) waiting.set({ for: what }, waitsFor.filter((each) => each === what).length);
  };
}

type WaitingJobs = { pool: string; queued: number; delayed: number; oldest: string | null };
type ActiveJobs = { pool: string; state: string; n: number };
type Spending = { usd: number | null; calls: number | null };

/** Milliseconds of an interval of the spending table. */
const intervalMs = 15 * 60_000;

/** Returns a function that reads unfinished jobs, and spending since this call, of all organizations. All queries use indexes. */
function createStoredReader({ $client }: Db, now: () => number) {
  // IDs of jobs are in order of creation.
  const waiting = $client.prepare<WaitingJobs, []>(
    `select pool, sum(available_at = 0) queued, sum(available_at > 0) delayed, min(iif(available_at = 0, id, null)) oldest
    from jobs where state = 'queued' group by pool`,
  );
  const active = $client.prepare<ActiveJobs, []>(
    `select pool, 'running' state, count(*) n from jobs where state = 'running' group by pool
    union all select pool, 'held', count(*) from jobs where state = 'held' group by pool`,
  );
  const spending = $client.prepare<Spending, [from: number]>(
    `select sum(s.usd) usd, sum(s.unpriced_calls) calls from orgs o
    cross join spending s on s.org_id = o.id and s."from" >= ?`,
  );
  const from = Math.floor(now() / intervalMs) * intervalMs;
  const readSpending = () => {
    const { usd, calls } = spending.get(from) ?? {};
    return { usd: usd ?? 0, calls: calls ?? 0 };
  };
  const spendingAtStart = readSpending();
  return () => {
    const { usd, calls } = readSpending();
    // Spending can be less than at the start, because an organization may have been erased.
    return {
      waiting: waiting
        .all()
        .map(({ oldest, ...rest }) => ({ ...rest, oldestAt: oldest === null ? null : timeOfId(oldest) })),
      active: active.all(),
      usd: Math.max(0, usd - spendingAtStart.usd),
      calls: Math.max(0, calls - spendingAtStart.calls),
    };
  };
}
