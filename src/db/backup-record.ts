import { statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Db } from "./open.ts";

const name = "evald.last-backup";

/** Records that the database of a data directory was backed up. A directory that this user can only read stays as it is. */
export function recordBackup(dataDir: string): void {
  try {
    // The modification time is the record: the clock of the disk, which the service also reads.
    writeFileSync(join(dataDir, name), "", { mode: 0o600 });
  } catch {}
}

/** When the database was last backed up, in epoch milliseconds; 0: never. */
export function lastBackupAt({ $client: { filename } }: Db): number {
  return statSync(join(dirname(filename), name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
