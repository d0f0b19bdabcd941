import { accessSync, constants } from "node:fs";

/** `full`: nothing can be written for now, all else goes on. `broken`: what the disk says can no longer be trusted. */
export type DiskFault = "full" | "broken";

/**
 * Whether an error comes from the disk under the database, by SQLite's result codes. A full or read-only file system passes; a failed read,
 * write or fsync, or a damaged file, does not: a failed fsync must not be tried again on the same pages.
 */
export function diskFault(error: unknown): DiskFault | null {
  const code = codeOf(error);
  // The index of the WAL is made longer in shared memory, for which a full disk has no code of its own.
  if (/^SQLITE_(FULL|READONLY|CANTOPEN|IOERR_SHM)/.test(code)) return "full";
  return /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(code) ? "broken" : null;
}

/** SQLite's name of an error or of what caused it, as `SQLITE_FULL`, or that of the operating system, as `ENOSPC`; empty if it has none. */
export function codeOf(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if ("code" in cause) return String(cause.code);
  return "";
}

/** Whether a folder lies on a file system that takes no writes at all, as one does that the kernel found errors on. */
export function isReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch (error) {
    return codeOf(error) === "EROFS";
  }
}
