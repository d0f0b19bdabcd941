import type { Command } from "commander";
import { AppError, conflict } from "../errors.ts";
import type { Run } from "../runs/schema.ts";
import type { Api } from "./api.ts";
import { addServiceOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { print, toJson } from "./terminal.ts";

/** Adds `cancel`: cancels a run, or all runs of a gate. */
export function addCancel(program: Command, useApi: UseApi): void {
  addServiceOptions(
    program
      .command("cancel <id>")
      .description("Cancel an unfinished run, or all unfinished runs of a gate, and print their IDs")
      .option("--json", "Print the cancelled runs as JSON"),
  )
    .addHelpText(
      "after",
      "\nA gate whose runs were cancelled ends without a verdict.\n\nExample:\n  evald cancel 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20",
    )
    .action((id: string, { json, ...address }: ServiceAddress & { json?: boolean }) =>
      useApi(address, async (api) => {
        const runs = await cancel(api, id);
        print(json ? toJson(runs, 2) : runs.map(({ runId }) => runId).join("\n"));
      }),
    );
}

async function cancel(api: Api, id: string): Promise<Run[]> {
  try {
    return [await api.request("POST /runs/{runId}/cancel", { path: { runId: id } })];
  } catch (error) {
    if (!isError(error, "not_found")) throw error;
  }
  const cancelled: Run[] = [];
  for (const runId of await unfinishedRunsOfGate(api, id)) {
    try {
      cancelled.push(await api.request("POST /runs/{runId}/cancel", { path: { runId } }));
    } catch (error) {
      // It ended in the meantime.
      if (!isError(error, "conflict")) throw error;
    }
  }
  if (cancelled.length === 0) throw conflict("No run of this gate is unfinished.");
  return cancelled;
}

const isError = (error: unknown, code: AppError["code"]): boolean => error instanceof AppError && error.code === code;

/** Throws not_found. */
async function unfinishedRunsOfGate(api: Api, gateId: string): Promise<string[]> {
  const gate = await api.request("GET /gates/{gateId}", { path: { gateId } }).catch((error) => {
    if (isError(error, "not_found")) throw new AppError("not_found", `No run or gate has the ID ${gateId}.`);
    throw error;
  });
  const requestIds = gate.prompts.flatMap(({ headRequestId, baseRequestId }) => [headRequestId, baseRequestId]);
  const runIds: string[] = [];
  for (const id of requestIds)
    if (id !== null) {
      const { runs } = await api.request("GET /eval-requests/{id}", { path: { id } });
      runIds.push(...runs.filter(({ status }) => ["pending", "running"].includes(status)).map(({ runId }) => runId));
    }
  return runIds;
}
