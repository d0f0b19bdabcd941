import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const name = /^evald-(gateway|egress)-/;
/** A folder that is younger may be one whose socket is not open yet. */
const youngMs = 60_000;

/** A new folder for one socket, among the temporary files and not with the data: the path of a socket is at most 107 characters long. */
export function makeSocketFolder(of: "gateway" | "egress"): { folder: string; socketPath: string } {
  const folder = mkdtempSync(join(tmpdir(), `evald-${of}-`));
  return { folder, socketPath: join(folder, "socket") };
}

/** Removes the folders of sockets at which nobody listens any more: their service was killed. */
export async function sweepSockets(now: number): Promise<void> {
  for (const entry of readdirSync(tmpdir()).filter((each) => name.test(each))) {
    const folder = join(tmpdir(), entry);
    const isLeft = await isDead(join(folder, "socket"));
    try {
      if (isLeft === true || (isLeft === null && now - statSync(folder).mtimeMs > youngMs))
        rmSync(folder, { recursive: true, force: true });
    } catch {
      // Another user's, or gone already.
    }
  }
}

/** Whether nobody listens at a socket; null if there is none. */
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
