import type { Command } from "commander";
import { AppError } from "../errors.ts";
import type { Gate } from "../gates/schema.ts";
import type { Run } from "../runs/schema.ts";
import { type Api, isNotFound } from "./api.ts";
import { type ApiOptions, addServiceOptions, type UseApi } from "./connection.ts";
import { print, toJson } from "./terminal.ts";

/** Adds `cancel`: cancels a run, or all runs of a gate. */
export function addCancel(program: Command, useApi: UseApi): void {
  addServiceOptions(
    program
      .command("cancel <id>")
      .description("Cancel an unfinished run, or all unfinished runs of a gate, and print its ID")
      .option("--json", "Print the cancelled run or gate as JSON"),
  )
    .addHelpText(
      "after",
      "\nA gate whose runs were cancelled ends without a verdict.\n\nExample:\n  evald cancel 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20",
    )
    .action((id: string, { json, ...address }: ApiOptions) =>
      useApi(address, async (api) => {
        const cancelled = await cancel(api, id);
        const cancelledId = "runId" in cancelled ? cancelled.runId : cancelled.id;
        print(json ? toJson(cancelled, 2) : cancelledId);
      }),
    );
}

/** Throws not_found, and conflict for a run or gate that has ended. */
async function cancel(api: Api, id: string): Promise<Run | Gate> {
  try {
    return await api.request("POST /runs/{runId}/cancel", { path: { runId: id } });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  try {
    return await api.request("POST /gates/{gateId}/cancel", { path: { gateId: id } });
  } catch (error) {
    throw isNotFound(error) ? new AppError("not_found", `No run or gate has the ID ${id}.`) : error;
  }
}
