import { accessSync, closeSync, constants, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

/** `full`: writes fail for now, reads still work. `broken`: the disk can no longer be trusted. */
export type DiskFault = "full" | "broken";

/**
 * The fault of the disk that caused an error, by SQLite's result codes; null: it has another cause. A failed fsync must not be tried again on the
 * same pages, so it counts as `broken`, like a failed read or write and a damaged file.
 */
export function diskFault(error: unknown): DiskFault | null {
  const code = codeOf(error);
  // Growing the WAL index in shared memory has no separate error code for a full disk.
  if (/^SQLITE_(FULL|READONLY|CANTOPEN|IOERR_SHM)/.test(code)) return "full";
  return /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(code) ? "broken" : null;
}

/** The name of an error or its cause by SQLite, such as `SQLITE_FULL`, or by the operating system, such as `ENOSPC`; empty if there is none. */
export function codeOf(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if ("code" in cause) return String(cause.code);
  return "";
}

/**
 * SQLite uses one code for a failed write and for one that the file system rejected because it is read-only or over
 * quota. Such an error is replaced by the result of a small test write to the same folder; others are returned as they
 * are.
 */
export function refineDiskError(error: unknown, folder: string): unknown {
  const refusal = codeOf(error) === "SQLITE_IOERR_WRITE" ? writeRefusal(folder) : null;
  if (refusal === null) return error;
  const [message, code] =
    refusal === "EROFS"
      ? ["the file system is read-only", "SQLITE_READONLY"]
      : ["the disk or its quota is full", "SQLITE_FULL"];
  return Object.assign(new Error(message, { cause: error }), { code });
}

/** Enough that a full disk has to refuse it. */
const probeBytes = 64 * 1024;

/** Why a small file cannot be written to a folder: EDQUOT, ENOSPC or EROFS; null if it can, or the write fails otherwise. */
function writeRefusal(folder: string): string | null {
  const path = join(folder, "evald.probe");
  try {
    const file = openSync(path, "w", 0o600);
    try {
      // SQLite also writes at a position, so this write gets the same answer.
      writeSync(file, new Uint8Array(probeBytes), 0, probeBytes, 0);
    } finally {
      closeSync(file);
      rmSync(path, { force: true });
    }
    return null;
  } catch (error) {
    return /^(EDQUOT|ENOSPC|EROFS)$/.test(codeOf(error)) ? codeOf(error) : null;
  }
}

/** Whether another connection held the database for longer than the busy timeout. */
export const isBusy = (error: unknown): boolean => codeOf(error).startsWith("SQLITE_BUSY");

/** Whether a folder is on a read-only file system, such as one remounted after kernel errors. */
export function isReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch (error) {
    return codeOf(error) === "EROFS";
  }
}

/** Other SQLite errors are temporary or end the service, but a rejected row will be rejected again. */
export const isTemporary = (error: unknown): boolean => /^SQLITE_(?!CONSTRAINT)/.test(codeOf(error));
