import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../db/fault.ts";

const fileOf = (dataDir: string) => join(dataDir, "evald.url");

/** Publishes the URL of the running service to commands on its data directory. Returns a function that removes it. */
export function announce(dataDir: string, url: string): () => void {
  const file = fileOf(dataDir);
  try {
    writeFileSync(file, `${process.pid} ${url}\n`, { mode: 0o600 });
  } catch {
    // The disk is full: commands print the default URL.
  }
  return () => rmSync(file, { force: true });
}

/** The URL of the service that is running on a data directory; null if there is none. */
export function findRunning(dataDir: string): string | null {
  let text: string;
  try {
    text = readFileSync(fileOf(dataDir), "utf8");
  } catch {
    return null;
  }
  const [pid, url] = text.trim().split(" ");
  return url && isRunning(Number(pid)) ? url : null;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process belongs to another user.
    return codeOf(error) === "EPERM";
  }
}
