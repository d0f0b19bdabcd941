import { toIso } from "../schema.ts";

const dayMs = 24 * 3600_000;

/** The name of a scheduled backup that starts at a time, in epoch milliseconds. Names sort by time. */
export const backupName = (atMs: number): string => `evald-${toIso(atMs).slice(0, 19).replaceAll(":", "-")}Z.backup`;

/** Whether a file is named like a scheduled backup. */
export const isBackupName = (name: string): boolean => /^evald-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.backup$/.test(name);

type StartedBackup = { startedAt: number };

/**
 * The backups that are no longer kept. For each of the last `keepDaily` days and `keepWeekly` weeks with a backup, in UTC, the newest backup is kept.
 * Days without a backup don't count, so no backup expires just because time passes.
 */
export function listExpired<T extends StartedBackup>(
  all: T[],
  { keepDaily, keepWeekly }: Record<"keepDaily" | "keepWeekly", number>,
): T[] {
  const newestFirst = all.toSorted((a, b) => b.startedAt - a.startedAt);
  const dayOf = ({ startedAt }: StartedBackup) => Math.floor(startedAt / dayMs);
  // 1970-01-01 was a Thursday; weeks start on Monday.
  const weekOf = (backup: StartedBackup) => Math.floor((dayOf(backup) + 3) / 7);
  const kept = new Set([
    ...newestOfEach(newestFirst, dayOf).slice(0, keepDaily),
    ...newestOfEach(newestFirst, weekOf).slice(0, keepWeekly),
  ]);
  return newestFirst.filter((backup) => !kept.has(backup));
}

function newestOfEach<T>(newestFirst: T[], periodOf: (backup: T) => number): T[] {
  return [...Map.groupBy(newestFirst, periodOf).values()].flatMap(([newest]) => newest ?? []);
}
