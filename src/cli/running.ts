import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "./files.ts";

const fileOf = (dataDir: string) => join(dataDir, "evald.url");

/** `url`: for links. `ownUrl`: what this machine reaches the service at, without a path. */
export type RunningUrls = { url: string; ownUrl: string };

/** Publishes the URLs of the running service to commands on its data directory. Returns a function that removes them. */
export function publishUrls(dataDir: string, { url, ownUrl }: RunningUrls): () => void {
  const file = fileOf(dataDir);
  try {
    writeFileSync(file, `${process.pid} ${url} ${ownUrl}\n`, { mode: 0o600 });
  } catch {
    // The disk is full: commands print the default URL.
  }
  return () => rmSync(file, { force: true });
}

/** The URLs of the service that is running on a data directory; null if there is none. */
export function findRunningUrls(dataDir: string): RunningUrls | null {
  let text: string;
  try {
    text = readFileSync(fileOf(dataDir), "utf8");
  } catch {
    return null;
  }
  const [pid, url, ownUrl] = text.trim().split(" ");
  return url && ownUrl && isAlive(Number(pid)) ? { url, ownUrl } : null;
}
