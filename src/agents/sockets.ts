import { mkdtempSync, rmSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folderPattern = /^evald-(gateway|egress|program|site|checks)-/;
/** A folder must be at least this old to be removed, because the socket in a newer folder may not be open yet. */
const minAgeMs = 60_000;

/**
 * Creates a folder for one socket, a copy of the program, a site or checks. It is in the temporary folder instead of the data folder, because the
 * path of a socket can't have more than 107 characters.
 */
export function createTemporaryFolder(kind: "gateway" | "egress" | "program" | "site" | "checks"): {
  folder: string;
  socketPath: string;
} {
  const folder = mkdtempSync(join(tmpdir(), `evald-${kind}-`));
  return { folder, socketPath: join(folder, "socket") };
}

/** Removes folders of sockets that nobody listens on, and of old copies of the program. They are left if a service was killed. */
export async function removeUnusedSockets(): Promise<void> {
  // The times of files come from the clock of the machine.
  const now = performance.timeOrigin + performance.now();
  // The folder may have thousands of other entries.
  const entries = await readdir(tmpdir());
  for (const entry of entries.filter((each) => folderPattern.test(each))) {
    const folder = join(tmpdir(), entry);
    const state = await findState(join(folder, "socket"));
    try {
      const isOld = now - statSync(folder).mtimeMs > minAgeMs;
      if (state === "unused" || (state === "missing" && isOld)) rmSync(folder, { recursive: true, force: true });
    } catch {
      // Owned by another user, or already removed.
    }
  }
}

type SocketState = "used" | "unused" | "missing";
const stateByError: Record<string, SocketState> = { ECONNREFUSED: "unused", ENOENT: "missing" };

/** Whether somebody listens on a socket. */
async function findState(path: string): Promise<SocketState> {
  const { promise, resolve } = Promise.withResolvers<SocketState>();
  const socket = net.connect({ path });
  socket.on("connect", () => resolve("used"));
  socket.on("error", ({ code = "" }: NodeJS.ErrnoException) => resolve(stateByError[code] ?? "used"));
  const state = await promise;
  socket.destroy();
  return state;
}
