import type { Command } from "commander";
import { describeFrequency } from "../prompts/frequency.ts";
import { findPromptId } from "./api.ts";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { print, say, sayRest, table, toJson, wholeNumber } from "./terminal.ts";

/** Adds the commands about schedules. */
export function addSchedule(program: Command, useApi: UseApi): void {
  const schedule = program.command("schedule").description("See, pause and resume schedules");
  addApiOptions(
    schedule
      .command("show <prompt>")
      .description("Show the schedule of a prompt and its next 20 times; by ID or title"),
    "Print the schedule as JSON",
    'schedule show "First query"',
  ).action((idOrTitle: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const promptId = await findPromptId(api, idOrTitle);
      const promptSchedule = await api.request("GET /prompts/{promptId}/schedule", { path: { promptId } });
      if (json) return print(toJson(promptSchedule));
      const { frequency, timeZone, pausedBy, catchUp, catchUpHours, overlap, nextTimes } = promptSchedule;
      say(frequency === null ? "The prompt has no schedule." : `${describeFrequency(frequency)} (${timeZone})`);
      say(`Catch-up: ${catchUp}${catchUpHours === null ? "" : ` of ${catchUpHours} h`}. Overlap: ${overlap}.`);
      if (pausedBy !== null) say(`Paused by the ${pausedBy}.`);
      for (const at of nextTimes) print(at);
    }),
  );
  addApiOptions(
    schedule
      .command("exceptions")
      .description("List scheduled evaluations that were missed, skipped or failed, wait, or ran late, newest first")
      .option("--limit <n>", "Maximum number to list", wholeNumber(1, 1000), 100),
    "Print the list as JSON",
    "schedule exceptions",
  ).action(({ json, limit, ...address }: ApiOptions & { limit: number }) =>
    useApi(address, async (api) => {
      const exceptions = await api.list("GET /schedules/exceptions", { query: { limit } });
      const rows = exceptions.items.map(({ scheduledAt, outcome, prompt, reason }) => [
        scheduledAt,
        outcome,
        prompt.title,
        reason ?? "",
      ]);
      print(json ? toJson(exceptions.items) : table([["SCHEDULED FOR", "OUTCOME", "PROMPT", "REASON"], ...rows]));
      sayRest(exceptions);
    }),
  );
  for (const [action, description] of [
    ["pause", "Pause all schedules of the organization"],
    ["resume", "Resume all schedules of the organization"],
  ] as const)
    addApiOptions(
      schedule.command(action).description(description),
      "Print the result as JSON",
      `schedule ${action}`,
    ).action(({ json, ...address }: ApiOptions) =>
      useApi(address, async (api) => {
        const state = await api.request(`POST /schedules/${action}`);
        print(json ? toJson(state) : `${state.schedules} schedules ${state.pausedAt === null ? "run" : "are paused"}.`);
      }),
    );
}
