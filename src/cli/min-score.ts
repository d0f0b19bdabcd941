import { type Command, Option } from "commander";
import type { Scope } from "../grading/grade.ts";
import { scopes } from "../grading/kinds.ts";
import { notMeasured, scoreSummary } from "../reports/labels.ts";
import type { RunReport } from "../reports/schema.ts";
import { exits, parseScore, sayError } from "./terminal.ts";

/** A minimum score, and the scope whose score it applies to. */
export type MinScore = { minScore?: number; scope: Scope };

/** Adds the options of a minimum score. */
export const addMinScore = (command: Command): Command =>
  command
    .option("--min-score <n>", "Exit with 1 if the score is lower, and with 3 if it has another scope", parseScore)
    .addOption(
      new Option("--scope <scope>", "Scope of the score that --min-score checks").choices(scopes).default("goal"),
    );

/**
 * The exit code: `passed` without a minimum, or with a score of at least the minimum; `failed` below the minimum; `error` without a score of this
 * scope.
 */
export function checkMinScore(report: RunReport, { minScore, scope }: MinScore): number {
  if (minScore === undefined) return exits.passed;
  const { score, nullNotice } = report;
  if (score === null) {
    sayError(nullNotice ?? `${notMeasured}.`);
    return exits.error;
  }
  if (report.scope !== scope) {
    sayError(
      `Cannot check --min-score: it applies to scores of scope ${scope}, and this report has scope ${report.scope} (${scoreSummary(report)}). Pass --scope ${report.scope} to accept it.`,
    );
    return exits.error;
  }
  if (score >= minScore) return exits.passed;
  sayError(`The score ${score} is below the minimum of ${minScore}.`);
  return exits.failed;
}
