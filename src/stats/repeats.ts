import { type Static, Type } from "@sinclair/typebox";
import type { Outcome } from "../agents/agent.ts";
import type { EndCause } from "../agents/failure.ts";
import { Nullable } from "../schema.ts";
import { type Estimate, meanInterval, median, standardDeviation, wilson } from "./estimates.ts";
import { minRuns, smallestChange } from "./power.ts";

/** How one of several runs ended: with a report, or with a failure cause. */
type EndedRun = {
  failureCause: EndCause | null;
  report: { outcome: Outcome; score: number | null; seconds: number | null; costUsd: number | null } | null;
};

export const metricNames = ["timeSeconds", "errors", "toolCalls", "costUsd", "interruptions"] as const;

/** A run of a side. */
export type SideRun = EndedRun & {
  prompt: string;
  /** The prompt and its template arguments, by which runs of both sides are paired. */
  pairKey: string;
  /** Whether its agent always does the same on the same docs, so that one run is enough. */
  isDeterministic: boolean;
  /** If the judge left part of the goal unclear, the share that was proven; null: the outcome is clear, or it wasn't judged. */
  provenShare: number | null;
  dimensions: { name: string; weight: number; score: number }[];
  metrics: Record<(typeof metricNames)[number], number | null> | null;
};

const bound = Nullable(Type.Number());

/** A value with its 95% interval; null: there is no interval. */
export const Interval = Type.Object({ value: Type.Number(), low: bound, high: bound }, { title: "Interval" });

/** The combined results of repeated runs. */
export const Repeats = Type.Object({
  n: Type.Integer({ description: "Runs with a score" }),
  infraFailures: Type.Integer({ description: "Runs that failed" }),
  score: Nullable(
    Type.Object(
      { mean: Type.Number(), low: bound, high: bound },
      { title: "ScoreInterval", description: "Student's t 95% interval" },
    ),
  ),
  successRate: Nullable(
    Type.Object(
      { value: Type.Number(), low: bound, high: bound, of: Type.Integer() },
      {
        title: "SuccessRate",
        description: "Of judged runs; timeouts and used-up budgets count as failures. Wilson 95% interval",
      },
    ),
  ),
  medianSeconds: bound,
  medianCostUsd: bound,
});
export type Repeats = Static<typeof Repeats>;

/** The result of one evaluation: the combined results of its runs, their spread, and what this many runs can show. */
export const EvalResult = Type.Object(
  {
    ...Repeats.properties,
    label: Type.String({ description: "single run, or for example 5 runs" }),
    unfinished: Type.Integer({ description: "Runs that have not finished" }),
    sd: Nullable(Type.Number({ description: "Standard deviation of the scores" })),
    successes: Nullable(Type.Integer({ description: "Runs that reached the goal" })),
    smallestChange: Nullable(
      Type.Number({
        description: "Smallest change in points that 4 of 5 comparisons with this many runs per side would detect",
      }),
    ),
  },
  { title: "EvaluationResult" },
);
export type EvalResult = Static<typeof EvalResult>;

/** If a larger share of runs failed, the others aren't conclusive. */
const maxInfraShare = 0.2;

/** Whether so many runs failed that the others aren't conclusive. */
export const isInconclusive = (failed: number, total: number): boolean => failed > maxInfraShare * total;

type Failure = { failureCause: EndedRun["failureCause"] };

/** Whether a run failed for a reason that says nothing about the target. */
export const isInfraFailure = ({ failureCause }: Failure) =>
  failureCause === "infrastructure" || failureCause === "credentials";
/** Whether a run ended without success of its agent. */
const isUnsuccessful = ({ failureCause }: Failure) =>
  failureCause === "timeout" || failureCause === "budget" || failureCause === "agent_crashed";

/**
 * Combines the results of repeated runs. Failed runs are counted and excluded. A run that exceeded its time or spending limit counts as not
 * successful.
 */
export function summarizeRuns(runs: EndedRun[]): Repeats {
  const reports = runs.flatMap(({ report }) => (report === null ? [] : [report]));
  const scores = scoresOf(runs);
  const { successes, judged } = successesOf(runs);
  const numbers = (name: "seconds" | "costUsd") => reports.flatMap((report) => report[name] ?? []);
  return {
    n: scores.length,
    infraFailures: infraFailuresOf(runs),
    score: scores.length === 0 ? null : toScore(meanInterval(scores)),
    successRate: judged === 0 ? null : { ...rounded(wilson(successes, judged), 3), of: judged },
    medianSeconds: round(median(numbers("seconds")), 1),
    medianCostUsd: round(median(numbers("costUsd")), 4),
  };
}

/** The result of an evaluation. `unfinished`: how many of its runs have not ended. */
export function resultOf(runs: EndedRun[], unfinished: number): EvalResult {
  const scores = scoresOf(runs);
  const sd = standardDeviation(scores);
  const { successes, judged } = successesOf(runs);
  return {
    ...summarizeRuns(runs),
    label: scores.length === 1 && unfinished === 0 ? "single run" : `${scores.length} runs`,
    unfinished,
    sd: round(sd, 2),
    successes: judged === 0 ? null : successes,
    smallestChange: sd === null || scores.length < minRuns ? null : round(smallestChange(scores.length, sd), 1),
  };
}

/** How many runs reached the goal, of the runs for which this is known. */
function successesOf(runs: EndedRun[]): { successes: number; judged: number } {
  const count = (outcome: Outcome) => runs.filter(({ report }) => report?.outcome === outcome).length;
  const successes = count("succeeded");
  return { successes, judged: successes + count("goal_not_met") + unsuccessfulOf(runs) };
}

/** How a run counts for its goal; null: it failed or was cancelled. */
export function goalResultOf({ report, failureCause }: EndedRun): "met" | "missed" | "unclear" | "unfinished" | null {
  if (report === null) return isUnsuccessful({ failureCause }) ? "unfinished" : null;
  const ends: Partial<Record<Outcome, "met" | "missed" | "unclear">> = {
    succeeded: "met",
    goal_not_met: "missed",
    not_judged: "unclear",
  };
  return ends[report.outcome] ?? null;
}

/** Number of runs whose agent crashed or exceeded its time or spending limit. */
export const unsuccessfulOf = (runs: Failure[]): number => runs.filter(isUnsuccessful).length;

/** Number of runs that failed for a reason that says nothing about the target. */
export const infraFailuresOf = (runs: Failure[]): number => runs.filter(isInfraFailure).length;

/** A note about runs without a score because of time or spending limits. The other runs may have been the easier ones. */
export function unscoredWords(before: Failure[], after: Failure[]): string {
  if (unsuccessfulOf([...before, ...after]) === 0) return "";
  const countOf = (runs: Failure[]) => `${unsuccessfulOf(runs)} of ${runs.length}`;
  return `; runs not measured (timed out, over budget or crashed): ${countOf(before)} before, ${countOf(after)} after`;
}

const scoresOf = (runs: EndedRun[]): number[] => runs.flatMap(({ report }) => report?.score ?? []);

const toScore = (estimate: Estimate) => {
  const { value, low, high } = rounded(estimate, 1);
  return { mean: value, low, high };
};

/** An estimate with all its numbers rounded. */
export const rounded = ({ value, low, high }: Estimate, digits: number): Estimate => ({
  value: Number(value.toFixed(digits)),
  low: round(low, digits),
  high: round(high, digits),
});

/** A p value to four decimals, or to its first digit if it is smaller. */
export const roundP = (p: number): number => round(p, 4) || Number(p.toPrecision(1));

/** For example `p = 0.029` or `p < 0.001`. */
export const pWords = (p: number): string => (p < 0.001 ? "p < 0.001" : `p = ${p.toFixed(3)}`);

/** A number rounded to `digits` decimal places; null stays null. */
export const round = <T extends number | null>(value: T, digits: number): T =>
  (value === null ? null : Number(value.toFixed(digits))) as T;
