import { closeSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const maxBytes = 4096;

/** Opens a file without a name, to which bubblewrap reports the exit code of a command (`--json-status-fd`). */
export function openStatusFile(): number {
  const folder = mkdtempSync(join(tmpdir(), "evald-status-"));
  try {
    return openSync(join(folder, "status"), "w+", 0o600);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Whether the command of a sandbox ran to its end, so that the exit code is its own and not bubblewrap's. Closes the file. */
export function closeStatusFile(file: number): boolean {
  const bytes = Buffer.alloc(maxBytes);
  const length = readSync(file, bytes, 0, bytes.length, 0);
  closeSync(file);
  return bytes.toString("utf8", 0, length).includes('"exit-code"');
}
