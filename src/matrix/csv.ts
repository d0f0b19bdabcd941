import { toCsv } from "../http/csv.ts";
import type { Cell, Matrix } from "./schema.ts";

type Value = string | number | null | undefined;

/** The columns of results, in order. */
const resultColumns: [name: string, read: (cell: Cell | undefined) => Value][] = [
  ["scope", (cell) => cell?.scope],
  ["standing", (cell) => cell?.standing],
  ["n", (cell) => cell?.n ?? 0],
  ["infraFailures", (cell) => cell?.infraFailures ?? 0],
  ["score", (cell) => cell?.score?.mean],
  ["scoreLow", (cell) => cell?.score?.low],
  ["scoreHigh", (cell) => cell?.score?.high],
  ["successRate", (cell) => cell?.successRate?.value],
  ["successRateLow", (cell) => cell?.successRate?.low],
  ["successRateHigh", (cell) => cell?.successRate?.high],
  ["judged", (cell) => cell?.successRate?.of],
  ["seconds", (cell) => cell?.seconds?.value],
  ["secondsLow", (cell) => cell?.seconds?.low],
  ["secondsHigh", (cell) => cell?.seconds?.high],
  ["costUsd", (cell) => cell?.costUsd?.value],
  ["costUsdLow", (cell) => cell?.costUsd?.low],
  ["costUsdHigh", (cell) => cell?.costUsd?.high],
];

/**
 * First one row per agent over all prompts, without promptId. Then one row per prompt and agent. If an agent has no runs on a prompt, the fields are
 * empty and `n` is 0.
 */
export function matrixCsv({ agents, prompts }: Matrix): string {
  const header = ["promptId", "title", "agent", "model", "agentVersion", ...resultColumns.map(([name]) => name)];
  const resultsOf = (cell: Cell | undefined) => resultColumns.map(([, read]) => read(cell));
  const summaries = agents.map(({ agent, model, results }) => toCsv(["", "", agent, model, "", ...resultsOf(results)]));
  const rows = prompts.flatMap(({ promptId, title, cells }) =>
    agents.map(({ agent, model }, i) => {
      const cell = cells[i] ?? undefined;
      return toCsv([promptId, title, agent, model, cell?.agentVersion, ...resultsOf(cell)]);
    }),
  );
  return [toCsv(header), ...summaries, ...rows].join("");
}
