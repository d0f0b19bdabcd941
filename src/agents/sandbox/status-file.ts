import { closeSync, mkdtempSync, openSync, readSync, rmdirSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const maxBytes = 4096;

/** Opens a file without a name, to which bubblewrap reports the exit code of a command (`--json-status-fd`). */
export function openStatusFile(): number {
  const folder = mkdtempSync(join(tmpdir(), "evald-status-"));
  const path = join(folder, "status");
  try {
    const file = openSync(path, "w+", 0o600);
    unlinkSync(path);
    return file;
  } finally {
    // Unlike a recursive removal, this needs no descriptor, so nothing is left if there are none.
    rmdirSync(folder);
  }
}

/**
 * Whether the command of a sandbox is known to have run to its end, so that the exit code is its own and not bubblewrap's. Closes the file. Doesn't
 * throw: a disk that can't be read is a fault of the machine, too.
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
