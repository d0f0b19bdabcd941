import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AllowRule } from "../config/allow-rules.ts";
import { isAlive } from "./files.ts";

const fileOf = (dataDir: string) => join(dataDir, "evald.url");

/**
 * A running service. `url`: the URL for links. `ownUrl`: the URL at which this machine reaches the service, without a path. `allowPrivate`: the
 * private hosts that its runs may reach.
 */
export type RunningService = { url: string; ownUrl: string; allowPrivate: AllowRule[] };

/** Tells commands on the data directory that a service runs on it. Returns a function that withdraws this information. */
export function publishService(dataDir: string, { url, ownUrl, allowPrivate }: RunningService): () => void {
  const file = fileOf(dataDir);
  try {
    writeFileSync(file, `${process.pid} ${url} ${ownUrl}\n${JSON.stringify(allowPrivate)}\n`, { mode: 0o600 });
  } catch {
    // If the disk is full, commands use their own settings.
  }
  return () => rmSync(file, { force: true });
}

/** The service that is running on a data directory; null if there is none. */
export function findRunningService(dataDir: string): RunningService | null {
  let text: string;
  try {
    text = readFileSync(fileOf(dataDir), "utf8");
  } catch {
    return null;
  }
  const [urls = "", allowPrivate] = text.trim().split("\n");
  const [pid, url, ownUrl] = urls.split(" ");
  if (!url || !ownUrl || !allowPrivate || !isAlive(Number(pid))) return null;
  return { url, ownUrl, allowPrivate: JSON.parse(allowPrivate) };
}
