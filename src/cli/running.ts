import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "./files.ts";

const fileOf = (dataDir: string) => join(dataDir, "evald.url");

/** Publishes the URL of the running service to commands on its data directory. Returns a function that removes it. */
export function publishUrl(dataDir: string, url: string): () => void {
  const file = fileOf(dataDir);
  try {
    writeFileSync(file, `${process.pid} ${url}\n`, { mode: 0o600 });
  } catch {
    // The disk is full: commands print the default URL.
  }
  return () => rmSync(file, { force: true });
}

/** The URL of the service that is running on a data directory; null if there is none. */
export function findRunningUrl(dataDir: string): string | null {
  let text: string;
  try {
    text = readFileSync(fileOf(dataDir), "utf8");
  } catch {
    return null;
  }
  const [pid, url] = text.trim().split(" ");
  return url && isAlive(Number(pid)) ? url : null;
}
