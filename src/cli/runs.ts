import type { Command } from "commander";
import { agentLabel, scoreSummary, titleOf } from "../reports/labels.ts";
import type { Run } from "../runs/schema.ts";
import { findPromptId } from "./api.ts";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { print, sayRest, table, toJson, wholeNumber } from "./terminal.ts";

type RunFilter = ApiOptions & { prompt?: string; limit: number };

/** Adds `runs`: lists runs. */
export function addRuns(program: Command, useApi: UseApi): void {
  addApiOptions(
    program
      .command("runs")
      .description("List runs, newest first")
      .option("--prompt <prompt>", "Only runs of this prompt, by ID or title")
      .option("--limit <n>", "Maximum number of runs to list", wholeNumber(1, 1000), 20),
    "Print the list as JSON",
    'runs --prompt "First query"',
  ).action(({ prompt, limit, json, ...address }: RunFilter) =>
    useApi(address, async (api) => {
      const promptId = prompt === undefined ? undefined : await findPromptId(api, prompt, { archived: true });
      const runs = await api.list("GET /runs", { query: { promptId, limit } });
      print(
        json
          ? toJson(runs.items)
          : table([["RUN", "STATUS", "RESULT", "REPORT", "AGENT", "PROMPT", "REQUESTED"], ...runs.items.map(toRow)]),
      );
      sayRest(runs);
    }),
  );
}

function toRow({ runId, status, report, failure, failureReason, agent, prompt, createdAt }: Run): string[] {
  // Other servers with this API don't return the agent, and measure only goals.
  const result =
    report === null
      ? (failure?.title ?? failureReason)
      : (scoreSummary({ ...report, scope: report.scope ?? "goal" }) ?? report.nullNotice);
  const knownAgent: Run["agent"] | undefined = agent;
  const agentText = knownAgent ? agentLabel(knownAgent) : "";
  return [runId, status, result ?? "", report?.slug ?? "", agentText, titleOf(prompt), createdAt];
}
