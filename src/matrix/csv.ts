import { toCsv } from "../http/csv.ts";
import type { Cell, Matrix } from "./schema.ts";

const columns = [
  ...["promptId", "title", "agent", "model", "agentVersion", "scope", "standing", "n", "infraFailures"],
  ...["score", "scoreLow", "scoreHigh", "successRate", "successRateLow", "successRateHigh", "judged"],
  ...["seconds", "secondsLow", "secondsHigh", "costUsd", "costUsdLow", "costUsdHigh"],
];

/** One row per agent over all prompts, without promptId, then one per prompt and agent. Agents without runs on a prompt have empty fields, and `n` is 0. */
export function matrixCsv({ agents, prompts }: Matrix): string {
  const resultsOf = (cell: Cell | undefined) => {
    const { score, successRate, seconds, costUsd } = cell ?? {};
    return [
      ...[cell?.scope, cell?.standing, cell?.n ?? 0, cell?.infraFailures ?? 0, score?.mean, score?.low, score?.high],
      ...[successRate?.value, successRate?.low, successRate?.high, successRate?.of],
      ...[seconds?.value, seconds?.low, seconds?.high, costUsd?.value, costUsd?.low, costUsd?.high],
    ];
  };
  const summaries = agents.map(({ agent, model, results }) => toCsv(["", "", agent, model, "", ...resultsOf(results)]));
  const rows = prompts.flatMap(({ promptId, title, cells }) =>
    agents.map(({ agent, model }, i) => {
      const cell = cells[i] ?? undefined;
      return toCsv([promptId, title, agent, model, cell?.agentVersion, ...resultsOf(cell)]);
    }),
  );
  return [toCsv(columns), ...summaries, ...rows].join("");
}
