import { readFileSync, renameSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Free space at a time, epoch milliseconds. */
type Sample = { at: number; freeBytes: number };

/** The file in the data directory. */
const fileName = "evald.disk";
const dayMs = 24 * 3600_000;
/** Age from which samples are dropped. */
const keepMs = 7 * dayMs;
/** Minimum time between two samples. */
const betweenMs = 20 * 3600_000;

/** The free space of the last days on the disk of a data directory, the oldest first; empty: unknown. */
export function readDiskHistory(dataDir: string): Sample[] {
  try {
    const samples = JSON.parse(readFileSync(join(dataDir, fileName), "utf8"));
    return Array.isArray(samples) ? samples.filter(({ at, freeBytes }) => at >= 0 && freeBytes >= 0) : [];
  } catch {
    return [];
  }
}

/**
 * Records today's free space. It has its own file, because a backup of the database may be restored to another disk. If the disk can't be written,
 * nothing is recorded.
 */
export function recordFreeSpace(dataDir: string, nowMs: number): void {
  const samples = readDiskHistory(dataDir).filter(({ at }) => at <= nowMs && at >= nowMs - keepMs);
  const newest = samples.at(-1);
  if (newest && nowMs - newest.at < betweenMs) return;
  try {
    const { bavail, bsize } = statfsSync(dataDir);
    const file = join(dataDir, fileName);
    writeFileSync(`${file}.new`, JSON.stringify([...samples, { at: nowMs, freeBytes: bavail * bsize }]), {
      mode: 0o600,
    });
    renameSync(`${file}.new`, file);
  } catch {}
}
