import type { Command } from "commander";
import { addServiceOptions, type ServiceAddress, type UseApi, withExecution } from "./connection.ts";
import { addRunResult, finishRuns, type RunResult, runResultHelp, waitsForReport } from "./run-result.ts";

/** Adds `rerun`, which starts a run again with the same hosts and template values. */
export function addRerun(program: Command, useApi: UseApi): void {
  const command = program
    .command("rerun <run>")
    .description("Start a run again, with its hosts and template values, and print the ID of the new run");
  addServiceOptions(addRunResult(command))
    .addHelpText("after", `${runResultHelp}\n\nExample:\n  evald rerun 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20 --wait`)
    .action(async (runId: string, { url, org, ...result }: ServiceAddress & RunResult) => {
      process.exitCode = await useApi(
        { url, org },
        async (api) => {
          const path = { runId };
          const response = await api.request("POST /runs/{runId}/rerun", { path, idempotencyKey: crypto.randomUUID() });
          return await finishRuns(api, response, result);
        },
        waitsForReport(result) ? withExecution : {},
      );
    });
}
