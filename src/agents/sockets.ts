import { mkdtempSync, rmSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folderPattern = /^evald-(gateway|egress|program|site|checks)-/;
/** The socket in a newer folder may not be open yet. */
const minAgeMs = 60_000;

/**
 * Creates a folder for one socket, a copy of the program, a site or checks. It is in the temporary folder rather than the data folder, because a socket path has
 * at most 107 characters.
 */
export function createTemporaryFolder(kind: "gateway" | "egress" | "program" | "site" | "checks"): {
  folder: string;
  socketPath: string;
} {
  const folder = mkdtempSync(join(tmpdir(), `evald-${kind}-`));
  return { folder, socketPath: join(folder, "socket") };
}

/** Removes the folders of sockets that nobody listens on, and of old copies of the program, because their service was killed. */
export async function removeUnusedSockets(): Promise<void> {
  // Times of files are compared with the clock of the machine.
  const now = performance.timeOrigin + performance.now();
  // The folder may have thousands of other entries.
  const entries = await readdir(tmpdir());
  for (const entry of entries.filter((each) => folderPattern.test(each))) {
    const folder = join(tmpdir(), entry);
    const isUnused = await isDead(join(folder, "socket"));
    try {
      if (isUnused === true || (isUnused === null && now - statSync(folder).mtimeMs > minAgeMs))
        rmSync(folder, { recursive: true, force: true });
    } catch {
      // Owned by another user, or already removed.
    }
  }
}

/** Whether nobody listens on a socket; null if there is none. */
async function isDead(path: string): Promise<boolean | null> {
  const { promise, resolve } = Promise.withResolvers<boolean | null>();
  const socket = net.connect({ path });
  socket.on("connect", () => resolve(false));
  socket.on("error", ({ code }: NodeJS.ErrnoException) =>
    resolve(code === "ECONNREFUSED" ? true : code === "ENOENT" ? null : false),
  );
  const answer = await promise;
  socket.destroy();
  return answer;
}
