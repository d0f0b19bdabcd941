import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { findRunningService } from "./running.ts";
import { exits, print, toOwnUrl } from "./terminal.ts";

/** In the image of evald, Docker waits 3 seconds for the whole command. */
const timeoutMs = 2_000;

/** Adds `health`, which asks the service of this data directory whether it is ready. The command opens no file of the database. */
export function addHealth(program: Command, configOf: () => Config): void {
  program
    .command("health")
    .description("Ask the service on this machine whether it is ready; exit with 1 if it isn't")
    .addHelpText("after", "\nExample:\n  evald health --data /var/lib/evald")
    .action(async () => {
      const config = configOf();
      const url = findRunningService(config.dataDir)?.ownUrl ?? toOwnUrl(config);
      const { isReady, text } = await askReadiness(`${url}${config.basePath}/readyz`);
      print(text);
      process.exitCode = isReady ? exits.passed : exits.failed;
    });
}

/** The response of a service to `/readyz`, as one line for people. */
async function askReadiness(url: string): Promise<{ isReady: boolean; text: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: "error" });
    const { status, detail } = await response.json();
    if (status !== "ready" && status !== "not ready") throw new TypeError("Not an answer of evald.");
    return { isReady: response.ok, text: detail === undefined ? status : `${status}: ${detail}` };
  } catch (error) {
    const isSilent = error instanceof DOMException && error.name === "TimeoutError";
    const problem = isSilent ? `did not answer within ${timeoutMs / 1000} seconds` : "is not answered by evald";
    return { isReady: false, text: `not running: ${url} ${problem}` };
  }
}
