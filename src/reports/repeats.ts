import { type Static, Type } from "@sinclair/typebox";
import { type Estimate, meanInterval, median, wilson } from "../grading/stats.ts";
import { Nullable } from "../schema.ts";
import type { Report } from "./schema.ts";

/** How one run of several ended: with a report, or with the reason why there is none. */
export type Ended = {
  failureReason: string | null;
  report: { outcome: Report["outcome"]; score: number | null; seconds: number | null; costUsd: number | null } | null;
};

const bound = Nullable(Type.Number());

/** What repeats of the same came to. */
export const Repeats = Type.Object({
  n: Type.Integer({ description: "Runs with a score" }),
  infraFailures: Type.Integer({ description: "Runs that could not be made" }),
  score: Nullable(
    Type.Object({ mean: Type.Number(), low: bound, high: bound }, { description: "Student's t 95 % interval" }),
  ),
  successRate: Nullable(
    Type.Object(
      { value: Type.Number(), low: bound, high: bound, of: Type.Integer() },
      {
        description: "Of judged runs; timeouts and budget stops count as failures. Wilson 95 % interval",
      },
    ),
  ),
  medianSeconds: bound,
  medianCostUsd: bound,
});
export type Repeats = Static<typeof Repeats>;

/** Sums up repeats. Who could not be evaluated is counted and left out; who ran out of time or money has not succeeded. */
export function sumUp(runs: Ended[]): Repeats {
  const made = runs.flatMap(({ report }) => (report === null ? [] : [report]));
  const scores = made.flatMap(({ score }) => (score === null ? [] : [score]));
  const failed = (causes: RegExp) => runs.filter(({ failureReason }) => causes.test(failureReason ?? "")).length;
  const successes = made.filter(({ outcome }) => outcome === "succeeded").length;
  const judged =
    successes +
    made.filter(({ outcome }) => outcome === "goal_not_met").length +
    failed(/^(timeout|budget|agent_crashed):/);
  const numbers = (name: "seconds" | "costUsd") => made.flatMap((report) => report[name] ?? []);
  return {
    n: scores.length,
    infraFailures: failed(/^(infrastructure|credentials):/),
    score: scores.length === 0 ? null : toScore(meanInterval(scores)),
    successRate: judged === 0 ? null : { ...rounded(wilson(successes, judged), 3), of: judged },
    medianSeconds: round(median(numbers("seconds")), 1),
    medianCostUsd: round(median(numbers("costUsd")), 4),
  };
}

const toScore = (estimate: Estimate) => {
  const { value, low, high } = rounded(estimate, 1);
  return { mean: value, low, high };
};

export const rounded = ({ value, low, high }: Estimate, digits: number): Estimate => ({
  value: Number(value.toFixed(digits)),
  low: round(low, digits),
  high: round(high, digits),
});

const round = (value: number | null, digits: number): number | null =>
  value === null ? null : Number(value.toFixed(digits));
