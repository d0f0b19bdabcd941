import { toCsv } from "../http/csv.ts";
import type { ExperimentRun } from "./schema.ts";

const columns = [
  "promptId",
  "block",
  "arm",
  "score",
  "success",
  "costUsd",
  "seconds",
  "excluded",
  "used",
  "agent",
  "shouldTrigger",
  "triggered",
  "runId",
] as const;

/** The ended runs of an experiment, one per line, to compute its numbers again. */
export const runsCsv = (runs: Omit<ExperimentRun, "offered" | "slug">[]): string => {
  const cell = (value: string | number | boolean | null) => (typeof value === "boolean" ? String(value) : value);
  return [toCsv(columns), ...runs.map((run) => toCsv(columns.map((column) => cell(run[column]))))].join("");
};
