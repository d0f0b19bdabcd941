import { copyFileSync, existsSync, realpathSync, rmSync, statSync } from "node:fs";
import { createTemporaryFolder } from "../sockets.ts";

const selfPath = "/proc/self/exe";
let copy: string | null = null;

/**
 * The path of the file that this process runs. If the file was replaced or removed in the meantime, for example by an upgrade, it is the path of a
 * copy in the temporary folder. Another version can't take part in a run, and a removed file can't be mounted.
 */
export function ownExecutable(): string {
  if (isRunning(process.execPath)) return realpathSync(process.execPath);
  if (copy === null || !existsSync(copy)) {
    const { folder } = createTemporaryFolder("program");
    copy = `${folder}/evald`;
    copyFileSync(selfPath, copy);
    // If a process is killed, the next start of the service removes its copy.
    process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  }
  return copy;
}

function isRunning(path: string): boolean {
  const runningFile = statSync(selfPath, { throwIfNoEntry: false });
  const currentFile = statSync(path, { throwIfNoEntry: false });
  return runningFile === undefined || (runningFile.ino === currentFile?.ino && runningFile.dev === currentFile.dev);
}
