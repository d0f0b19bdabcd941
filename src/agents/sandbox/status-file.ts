import { closeSync, mkdtempSync, openSync, readSync, rmdirSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const maxBytes = 4096;

/** Opens a file that no folder lists. bubblewrap reports the exit code of a command to it (`--json-status-fd`). */
export function openStatusFile(): number {
  const folder = mkdtempSync(join(tmpdir(), "evald-status-"));
  const path = join(folder, "status");
  try {
    const file = openSync(path, "w+", 0o600);
    unlinkSync(path);
    return file;
  } finally {
    // Unlike a recursive removal, this needs no descriptor, so it works even if none are left.
    rmdirSync(folder);
  }
}

/**
 * Whether the command of a sandbox is known to have run to its end. If it did, the exit code is the command's own and not bubblewrap's. Closes the
 * file. Doesn't throw, because a disk that can't be read is also a fault of the machine.
 */
export function closeStatusFile(file: number): boolean {
  const bytes = Buffer.alloc(maxBytes);
  try {
    const length = readSync(file, bytes, 0, bytes.length, 0);
    return bytes.toString("utf8", 0, length).includes('"exit-code"');
  } catch {
    return false;
  } finally {
    closeSync(file);
  }
}
