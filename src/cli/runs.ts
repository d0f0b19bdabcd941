import type { Command } from "commander";
import { agentLabel, scoreSummary } from "../reports/labels.ts";
import type { Run } from "../runs/schema.ts";
import { findPromptId } from "./api.ts";
import { addPlace, type Place, type UseApi } from "./connection.ts";
import { print, sayRest, table, wholeNumber } from "./terminal.ts";

type Options = Place & { prompt?: string; limit: number; json?: boolean };

/** Adds `runs`: lists runs. */
export function addRuns(program: Command, useApi: UseApi): void {
  const command = program
    .command("runs")
    .description("List runs, newest first")
    .option("--prompt <prompt>", "Only runs of this prompt, by ID or title")
    .option("--limit <n>", "Maximum number of runs to list", wholeNumber(1, 1000), 20)
    .option("--json", "Print the list as JSON");
  addPlace(command)
    .addHelpText("after", '\nExample:\n  evald runs --prompt "First query"')
    .action(
      async ({ prompt, limit, json, ...place }: Options) =>
        await useApi(place, async (api) => {
          const promptId = prompt === undefined ? undefined : await findPromptId(api, prompt, { archived: true });
          const found = await api.listRuns({ promptId, limit });
          print(
            json
              ? JSON.stringify(found.items)
              : table([
                  ["RUN", "STATUS", "RESULT", "REPORT", "AGENT", "PROMPT", "REQUESTED"],
                  ...found.items.map(toRow),
                ]),
          );
          sayRest(found);
        }),
    );
}

function toRow({ runId, status, report, failureReason, agent, prompt, createdAt }: Run): string[] {
  const result = report === null ? (failureReason ?? "") : (scoreSummary(report) ?? report.nullNotice ?? "");
  const what = [agentLabel(agent), cut(prompt.title ?? prompt.text)];
  return [runId, status, cut(result), report?.slug ?? "", ...what, createdAt];
}

const maxCell = 60;
const cut = (text: string): string => {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > maxCell ? `${line.slice(0, maxCell - 1)}…` : line;
};
