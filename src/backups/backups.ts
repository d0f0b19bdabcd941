import { and, count, desc, eq, gt, inArray, isNotNull, isNull, lt, lte, min, ne, or } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import type { Context } from "../context.ts";
import { nextTime } from "../cron.ts";
import { transaction } from "../db/open.ts";
import { firstIdOf } from "../db/rows.ts";
import { backups } from "../db/tables/backups.ts";
import { type deletionKinds, deletions } from "../db/tables/deletions.ts";
import { conflict, notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import type { Backup } from "./schema.ts";

const minuteMs = 60_000;
/** The pause after a failed try doubles up to this. */
const longestWaitMs = 60 * minuteMs;
/** How long after its due time a missing backup is reported as late. */
const lateMs = 60 * minuteMs;
const keepRowsMs = 90 * 24 * 60 * minuteMs;

type BackupRow = typeof backups.$inferSelect;

/** Backups in a list. */
export const maxListed = 100;

function toBackup(ctx: Context, row: BackupRow): Backup {
  const { status, startedAt, removedAt } = row;
  const hasFile = status === "completed" && removedAt === null && startedAt !== null;
  return {
    id: row.id,
    requestedBy: row.requestedBy,
    status,
    location: row.location,
    bytes: row.bytes,
    runs: row.runs,
    failure: row.failure,
    createdAt: toIso(row.createdAt),
    startedAt: toIso(startedAt),
    completedAt: toIso(row.completedAt),
    removedAt: toIso(removedAt),
    deletedSince: hasFile ? countDeletedSince(ctx, startedAt) : null,
  };
}

/**
 * Counts the deleted organizations, prompts and runs that a backup of that time still contains: they existed and were not erased yet. A run counts
 * only if it was deleted on its own. Everything with an older ID counts as existing, even if it was imported later.
 */
function countDeletedSince({ db }: Context, atMs: number): NonNullable<Backup["deletedSince"]> {
  const existed = lt(deletions.subjectId, firstIdOf(atMs));
  const wasNotErased = or(isNull(deletions.completedAt), gt(deletions.completedAt, atMs));
  const rows = db
    .select({ kind: deletions.kind, n: count() })
    .from(deletions)
    .where(and(ne(deletions.status, "restored"), existed, wasNotErased))
    .groupBy(deletions.kind)
    .all();
  const countOf = (kind: (typeof deletionKinds)[number]) => rows.find((row) => row.kind === kind)?.n ?? 0;
  return { organizations: countOf("organization"), prompts: countOf("prompt"), runs: countOf("run") };
}

/** The newest try with a status. Tries that started in the future are left out: after the clock was set back, they would stop the schedule. */
const findNewest = (ctx: Context, status: "completed" | "failed"): BackupRow | undefined =>
  ctx.db
    .select()
    .from(backups)
    .where(and(eq(backups.status, status), lte(backups.startedAt, ctx.now())))
    .orderBy(desc(backups.startedAt))
    .limit(1)
    .get();

/** How many tries that started after a time have failed, and when the first of them ended. Times in epoch milliseconds. */
const countFailures = (ctx: Context, afterMs: number) =>
  ctx.db
    .select({ failures: count(), since: min(backups.completedAt) })
    .from(backups)
    .where(and(eq(backups.status, "failed"), gt(backups.startedAt, afterMs), lte(backups.startedAt, ctx.now())))
    .get() ?? { failures: 0, since: null };

/** The newest tries, the latest first. */
export const listBackups = (ctx: Context, limit: number): Backup[] =>
  ctx.db
    .select()
    .from(backups)
    .orderBy(desc(backups.createdAt), desc(backups.id))
    .limit(limit)
    .all()
    .map((row) => toBackup(ctx, row));

/** Throws not_found. */
export function getBackup(ctx: Context, id: string): Backup {
  const row = ctx.db.select().from(backups).where(eq(backups.id, id)).get();
  if (!row) throw notFound("The backup was not found.");
  return toBackup(ctx, row);
}

/** The completed backups whose files are kept. */
export const listKeptBackups = (ctx: Context): { id: string; name: string; startedAt: number }[] =>
  ctx.db
    .select({ id: backups.id, name: backups.name, startedAt: backups.startedAt })
    .from(backups)
    .where(and(eq(backups.status, "completed"), isNull(backups.removedAt), isNotNull(backups.name)))
    .all()
    .flatMap(({ id, name, startedAt }) => (name === null || startedAt === null ? [] : [{ id, name, startedAt }]));

/** The names of the files of all tries, so that backups of another service can be told apart. */
export const listBackupNames = (ctx: Context): string[] =>
  ctx.db
    .select({ name: backups.name })
    .from(backups)
    .all()
    .flatMap(({ name }) => name ?? []);

/**
 * Requests a backup of this service now. `requestedBy`: the name of the operator. If a backup waits already, it is returned. Throws conflict if the
 * service has no place for backups.
 */
export function backUpNow(ctx: Context, requestedBy: string): Backup {
  if (ctx.config.backups === null)
    throw conflict("The service has no place for backups. Set EVALD_BACKUP_TO, and restart it.");
  const queued = ctx.db.select().from(backups).where(eq(backups.status, "queued")).get();
  return queued ? toBackup(ctx, queued) : requestBackup(ctx, requestedBy);
}

/** Asks the service that runs on this database for a backup now. */
export function requestBackup(ctx: Context, requestedBy: string = ctx.operator ?? "operator"): Backup {
  const createdAt = ctx.now();
  const id = ctx.newId(createdAt);
  transaction(ctx.db, (tx) => {
    const values = { id, requestedBy, status: "queued", createdAt } as const;
    tx.insert(backups).values(values).run();
    recordAudit(ctx, null, "backup.created", { id });
  });
  return getBackup(ctx, id);
}

/** The state of scheduled backups. Times in epoch milliseconds. */
type BackupState = {
  /** Start of the newest completed backup; null: none. */
  lastAt: number | null;
  /** Size of that backup, and how long it took with its check. */
  bytes: number;
  durationMs: number;
  /** Tries that failed since then. */
  failures: number;
  /** Since when they fail; null: they don't. */
  failingSince: number | null;
  /** Why the newest of them failed. */
  failure: string | null;
  /** When the next try is due. */
  dueAt: number;
};

/** The state of scheduled backups; null: the service makes none. */
export function findBackupState(ctx: Context): BackupState | null {
  const settings = ctx.config.backups;
  if (settings === null) return null;
  const last = findNewest(ctx, "completed");
  const lastAt = last?.startedAt ?? null;
  const { failures, since } = countFailures(ctx, lastAt ?? 0);
  const newest = failures === 0 ? undefined : findNewest(ctx, "failed");
  // The first backup is due immediately, to show whether the settings work. After it there is always a next time, because the setting was checked.
  const scheduledAt =
    lastAt === null ? 0 : (nextTime({ frequency: settings.schedule, id: "", timeZone: "UTC" }, lastAt) ?? lastAt);
  const retryAt = newest ? (newest.completedAt ?? 0) + waitAfter(failures) : 0;
  return {
    lastAt,
    bytes: last?.bytes ?? 0,
    durationMs: last ? (last.completedAt ?? 0) - (last.startedAt ?? 0) : 0,
    failures,
    failingSince: since,
    failure: newest?.failure ?? null,
    dueAt: Math.max(scheduledAt, retryAt),
  };
}

const waitAfter = (failures: number): number => Math.min(longestWaitMs, minuteMs * 2 ** (failures - 1));

/** What is wrong with scheduled backups. `failure` null: the last one is late. */
type BackupProblem = { since: number; failures: number; failure: string | null; lastAt: number | null };

/** What is wrong with scheduled backups; null: they are in time, or there are none. */
export function findBackupProblem(ctx: Context): BackupProblem | null {
  const state = findBackupState(ctx);
  if (state === null) return null;
  const { lastAt, failures, failingSince, failure, dueAt } = state;
  if (failingSince !== null) return { since: failingSince, failures, failure, lastAt };
  // The first backup is never late: it is due immediately, and it fails or completes soon after the start.
  return lastAt !== null && ctx.now() - dueAt > lateMs ? { since: dueAt, failures: 0, failure: null, lastAt } : null;
}

/** The problem of `findBackupProblem` in a sentence, for operators; null: nothing is wrong. */
export function findBackupWarning(ctx: Context): string | null {
  const problem = findBackupProblem(ctx);
  if (problem === null) return null;
  const { since, failure, lastAt } = problem;
  const last = lastAt === null ? "there is none yet" : `the last one is from ${toIso(lastAt)}`;
  return failure === null
    ? `the scheduled backup of ${toIso(since)} is late; ${last}`
    : `scheduled backups have failed since ${toIso(since)}: ${failure} (${last})`;
}

/** Number of failed tries that are remembered. */
export const countFailedBackups = (ctx: Context): number =>
  ctx.db.select({ n: count() }).from(backups).where(eq(backups.status, "failed")).get()?.n ?? 0;

/** Marks tries as failed that are still marked as running: their process ended, or could not write. */
export function failInterruptedBackups(ctx: Context): void {
  const running = eq(backups.status, "running");
  if (!ctx.db.select({ id: backups.id }).from(backups).where(running).get()) return;
  const values = { status: "failed", completedAt: ctx.now(), failure: "The service stopped in between." } as const;
  transaction(ctx.db, (tx) => tx.update(backups).set(values).where(running).run());
}

/** Marks the due backup as running and returns its ID. The oldest request comes first, then the scheduled backup. null: none is due. */
export function startDueBackup(ctx: Context, name: string, location: string): string | null {
  const queued = ctx.db
    .select({ id: backups.id })
    .from(backups)
    .where(eq(backups.status, "queued"))
    .orderBy(backups.createdAt)
    .get();
  const now = ctx.now();
  const state = findBackupState(ctx);
  if (!queued && (state === null || state.dueAt > now)) return null;
  const id = queued?.id ?? ctx.newId(now);
  const values = { status: "running", startedAt: now, name, location } as const;
  transaction(ctx.db, (tx) =>
    queued
      ? tx.update(backups).set(values).where(eq(backups.id, id)).run()
      : tx
          .insert(backups)
          .values({ id, requestedBy: null, createdAt: now, ...values })
          .run(),
  );
  return id;
}

/** How a try ended. `removed`: IDs of earlier backups whose files were deleted. */
export type BackupEnd = { bytes: number; runs: number; removed: string[] } | { failure: string };

/** Stores how a try ended. If it succeeded, tries older than 90 days that failed or whose files were deleted are forgotten. */
export function endBackup(ctx: Context, id: string, end: BackupEnd): void {
  const completedAt = ctx.now();
  transaction(ctx.db, (tx) => {
    if ("failure" in end) {
      tx.update(backups).set({ status: "failed", completedAt, failure: end.failure }).where(eq(backups.id, id)).run();
      return;
    }
    const { bytes, runs, removed } = end;
    tx.update(backups).set({ status: "completed", completedAt, bytes, runs }).where(eq(backups.id, id)).run();
    tx.update(backups).set({ removedAt: completedAt }).where(inArray(backups.id, removed)).run();
    const old = lte(backups.createdAt, completedAt - keepRowsMs);
    tx.delete(backups)
      .where(and(old, ne(backups.id, id), or(eq(backups.status, "failed"), isNotNull(backups.removedAt))))
      .run();
  });
}
