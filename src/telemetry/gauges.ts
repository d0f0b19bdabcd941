import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Counter as CounterMetric, Registry } from "prom-client";
import { version } from "../../package.json" with { type: "json" };
import { countFailedBackups, findBackupState } from "../backups/backups.ts";
import { listCheckStates } from "../checks/health-checks.ts";
import type { Context } from "../context.ts";
import { lastBackupAt } from "../db/backup-record.ts";
import type { Db } from "../db/open.ts";
import { jobPools } from "../db/tables/jobs.ts";
import { loadPromClient } from "../lazy-packages.ts";
import { workerStates } from "../places/messages.ts";
import type { WorkerExecutor } from "../places/worker-executor.ts";

/** Registers what is read from the database, the disk and the process with each scrape. Returns the function that reads it. */
export function addGauges(registry: Registry, ctx: Context, workers: WorkerExecutor | null): () => void {
  const { db, now } = ctx;
  const { Counter, Gauge } = loadPromClient();
  const registers = [registry];
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  const counter = (name: string, help: string) => new Counter({ name, help, registers });

  new Gauge({ name: "evald_build_info", help: "Version of evald", labelNames: ["version"], registers }).set(
    { version },
    1,
  );
  gauge("process_start_time_seconds", "Start of the process, in seconds since 1970").set(Math.round(now() / 1000));
  const jobs = new Gauge({
    name: "evald_jobs",
    help: "Unfinished jobs by state: queued, delayed (to be retried later), held (paused by an operator) or running",
    labelNames: ["pool", "state"],
    registers,
  });
  const oldest = new Gauge({
    name: "evald_jobs_oldest_queued_seconds",
    help: "Age of the oldest queued job; 0 if none is queued",
    labelNames: ["pool"],
    registers,
  });
  const spending = counter("evald_model_spend_usd_total", "Known cost of model calls, judges included, in USD");
  const unpriced = counter("evald_model_unpriced_calls_total", "Model calls of unknown cost");
  const database = gauge("evald_database_bytes", "Size of the database file");
  const wal = gauge("evald_wal_bytes", "Size of the write-ahead log of the database");
  const free = gauge("evald_disk_free_bytes", "Free space on the disk of the database");
  const backup = gauge(
    "evald_last_backup_timestamp_seconds",
    "Time of the last evald backup, in seconds since 1970; 0: never",
  );
  const checkStatus = new Gauge({
    name: "evald_check_status",
    help: "Result of each check of the installation that applies: 0 ok, 1 warning, 2 failed",
    labelNames: ["check"],
    registers,
  });
  const memory = gauge("process_resident_memory_bytes", "Resident memory of the process");
  const cpu = counter("process_cpu_seconds_total", "CPU time of the process");

  const { filename } = db.$client;
  const readStored = createStoredReader(db, now);
  const readBackups = ctx.config.backups && addBackupMetrics(registry, ctx);
  const readWorkers = workers && addWorkerGauges(registry, workers);
  const setTotal = (total: CounterMetric, value: number) => {
    total.reset();
    total.inc(value);
  };

  return () => {
    readWorkers?.();
    readBackups?.();
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
    database.set(sizeOf(filename));
    wal.set(sizeOf(`${filename}-wal`));
    const { bavail, bsize } = statfsSync(dirname(filename));
    free.set(bavail * bsize);
    checkStatus.reset();
    for (const [check, state] of listCheckStates(ctx))
      if (state !== "not_applicable") checkStatus.set({ check }, checkValues[state]);
    backup.set(lastBackupAt(db) / 1000);
    memory.set(process.memoryUsage.rss());
    const { user, system } = process.cpuUsage();
    setTotal(cpu, (user + system) / 1e6);
  };
}

const checkValues = { ok: 0, warning: 1, failed: 2 };

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Registers what is known about scheduled backups. Returns the function that reads it. */
function addBackupMetrics(registry: Registry, ctx: Context): () => void {
  const { Counter, Gauge } = loadPromClient();
  const registers = [registry];
  const gauge = (name: string, help: string) => new Gauge({ name: `evald_backup_${name}`, help, registers });
  const last = gauge(
    "last_success_timestamp_seconds",
    "Start of the last scheduled or requested backup that was checked, in seconds since 1970; 0: never",
  );
  const bytes = gauge("bytes", "Size of that backup");
  const duration = gauge("duration_seconds", "How long that backup took with its check");
  const failures = new Counter({ name: "evald_backup_failures_total", help: "Failed tries to back up", registers });
  const failedAtStart = countFailedBackups(ctx);
  return () => {
    const state = findBackupState(ctx);
    last.set((state?.lastAt ?? 0) / 1000);
    bytes.set(state?.bytes ?? 0);
    duration.set((state?.durationMs ?? 0) / 1000);
    failures.reset();
    failures.inc(Math.max(0, countFailedBackups(ctx) - failedAtStart));
  };
}

/** Registers what is known about workers. Returns the function that reads it. */
function addWorkerGauges(registry: Registry, workers: WorkerExecutor): () => void {
  const { Gauge } = loadPromClient();
  const registers = [registry];
  const gauge = (name: string, help: string, label: string) =>
    new Gauge({ name: `evald_${name}`, help, labelNames: [label], registers });
  const states = gauge("workers", "Connected workers by state: ready, not_ready, draining or refused", "state");
  const slots = gauge("worker_slots", "Maximum concurrent sessions by host name of the worker", "worker");
  const sessions = gauge("worker_sessions", "Active sessions by host name of the worker", "worker");
  const silence = gauge("worker_silent_seconds", "Time since the last message by host name of the worker", "worker");
  const waiting = gauge(
    "runs_waiting",
    "Active runs that wait for a worker that has what they need, or for a slot on one that has it",
    "for",
  );
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

/** Creation time of a UUIDv7, in epoch milliseconds. */
const timeOf = (id: string): number => Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);

/** Returns a function that reads what the database knows about all organizations: unfinished jobs, and spending since this call. All by indexes. */
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
    return {
      waiting: waiting
        .all()
        .map(({ oldest, ...rest }) => ({ ...rest, oldestAt: oldest === null ? null : timeOf(oldest) })),
      active: active.all(),
      usd: Math.max(0, usd - spendingAtStart.usd),
      calls: Math.max(0, calls - spendingAtStart.calls),
    };
  };
}
