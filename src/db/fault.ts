/** `full`: nothing can be written for now, all else goes on. `broken`: what the disk says can no longer be trusted. */
export type DiskFault = "full" | "broken";

/**
 * Whether an error comes from the disk under the database, by SQLite's result codes. A full or read-only file system passes; a failed read,
 * write or fsync, or a damaged file, does not: a failed fsync must not be tried again on the same pages.
 */
export function diskFault(error: unknown): DiskFault | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = "code" in cause ? String(cause.code) : "";
    // The index of the WAL is made longer in shared memory, for which a full disk has no code of its own.
    if (/^SQLITE_(FULL|READONLY|CANTOPEN|IOERR_SHM)/.test(code)) return "full";
    if (/^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(code)) return "broken";
  }
  return null;
}
