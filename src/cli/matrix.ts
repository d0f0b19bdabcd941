import { type Command, Option } from "commander";
import { dollars, duration, oneLine, percent } from "../grading/text.ts";
import { matrixCsv } from "../matrix/csv.ts";
import type { Cell, Matrix } from "../matrix/schema.ts";
import { scoreText } from "../reports/labels.ts";
import { findPromptId } from "./api.ts";
import { addServiceOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { print, say, table, toJson } from "./terminal.ts";

type MatrixFilter = ServiceAddress & {
  tag?: string;
  prompt?: string;
  eval?: string;
  since?: string;
  until?: string;
  csv?: boolean;
  json?: boolean;
};

/** The most prompts that a request returns. */
const maxPrompts = 1000;

/** Adds `matrix`: agents side by side on prompts. */
export function addMatrix(program: Command, useApi: UseApi): void {
  const command = program
    .command("matrix")
    .description("Compare agents side by side on prompts")
    .option("--tag <tag>", "Only prompts with this tag")
    .option("--prompt <prompt>", "ID or title of a prompt")
    .option("--eval <id>", "Only the runs of this evaluation")
    .option("--since <date>", "Only runs requested at or after this time (default: 30 days ago)")
    .option("--until <date>", "Only runs requested before this time")
    .addOption(new Option("--csv", "Print as CSV").conflicts("json"))
    .option("--json", "Print as JSON");
  addServiceOptions(command)
    .addHelpText("after", "\nExamples:\n  evald matrix --tag billing\n  evald matrix --csv > agents.csv")
    .action(async ({ org, url, prompt, eval: evalRequestId, csv, json, ...filter }: MatrixFilter) => {
      await useApi({ org, url }, async (api) => {
        const promptId = prompt === undefined ? undefined : await findPromptId(api, prompt);
        const query = { ...filter, promptId, evalRequestId, limit: maxPrompts };
        const matrix = await api.request("GET /matrix", { query });
        if (json) return print(toJson(matrix));
        if (csv) return print(matrixCsv(matrix).trimEnd());
        if (matrix.agents.length === 0) return say("No runs in this period.");
        print(toTable(matrix));
        say(
          "Ranges are 95% confidence intervals. --csv and --json contain success rate, time and cost of each prompt.",
        );
      });
    });
}

/** One line per prompt after the summary, one column per agent. */
function toTable({ agents, prompts }: Matrix): string {
  const lines: [string, (agent: Matrix["agents"][number]) => string][] = [
    ["ALL PROMPTS", ({ results }) => scoreOf(results)],
    ["  goal reached", ({ results: { successRate } }) => (successRate ? percent(successRate.value) : "not tested")],
    ["  median time", ({ results: { seconds } }) => (seconds ? duration(seconds.value) : "–")],
    ["  median agent cost", ({ results: { costUsd } }) => (costUsd ? dollars(costUsd.value) : "unknown")],
    ["  prompts", (each) => String(each.prompts)],
  ];
  return table([
    ["PROMPT", ...agents.map(({ agent, model }) => [agent, model].filter(Boolean).join(" "))],
    ...lines.map(([label, read]) => [label, ...agents.map(read)]),
    ...prompts.map(({ title, cells }) => [oneLine(title, 50), ...cells.map(scoreOf)]),
  ]);
}

function scoreOf(cell: Cell | null): string {
  if (cell === null) return "no runs";
  const { score, scope, standing } = cell;
  if (score === null || scope === null) return "no score";
  const range = score.low === null ? null : `(${score.low} to ${score.high})`;
  const mark = standing === "behind" ? null : standing?.replaceAll("_", " ");
  return [scoreText({ score: score.mean, scope }), range, mark].filter(Boolean).join(" ");
}
