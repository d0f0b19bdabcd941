import { type Static, Type } from "@sinclair/typebox";
import type { Outcome } from "../agents/agent.ts";
import type { EndCause } from "../agents/failure.ts";
import { Nullable } from "../schema.ts";
import { deviation, type Estimate, meanInterval, median, wilson } from "./estimates.ts";
import { minRuns, smallestChange } from "./power.ts";

/** How one run of several ended: with a report, or with the cause why there is none. */
export type Ended = {
  failureCause: EndCause | null;
  report: { outcome: Outcome; score: number | null; seconds: number | null; costUsd: number | null } | null;
};

export const metricNames = ["timeSeconds", "errors", "toolCalls", "costUsd", "interruptions"] as const;

/** A run of a side. */
export type SideRun = Ended & {
  prompt: string;
  /** The prompt and its template arguments, by which runs of both sides are paired. */
  pairKey: string;
  /** Whether its agent does the same again on the same docs, so that one run says all. */
  isExact: boolean;
  /** The share of the goal that was proven, where a judge left the rest unclear; null: the outcome says it, or nobody judged. */
  provenShare: number | null;
  dimensions: { name: string; weight: number; score: number }[];
  metrics: Record<(typeof metricNames)[number], number | null> | null;
};

const bound = Nullable(Type.Number());

/** What repeats of the same came to. */
export const Repeats = Type.Object({
  n: Type.Integer({ description: "Runs with a score" }),
  infraFailures: Type.Integer({ description: "Runs that failed" }),
  score: Nullable(
    Type.Object({ mean: Type.Number(), low: bound, high: bound }, { description: "Student's t 95% interval" }),
  ),
  successRate: Nullable(
    Type.Object(
      { value: Type.Number(), low: bound, high: bound, of: Type.Integer() },
      {
        description: "Of judged runs; timeouts and used-up budgets count as failures. Wilson 95% interval",
      },
    ),
  ),
  medianSeconds: bound,
  medianCostUsd: bound,
});
export type Repeats = Static<typeof Repeats>;

/** The result of one evaluation: what its repeats came to, how much they scatter, and what so many of them could show. */
export const EvalResult = Type.Object({
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
});
export type EvalResult = Static<typeof EvalResult>;

/** Share of runs that could not be made above which the rest tells nothing. */
const maxInfraShare = 0.2;

/** Whether so many lost runs of all leave nothing to go by. */
export const isBroken = (lost: number, of: number): boolean => lost > maxInfraShare * of;

/** Whether a run could not be made, for a reason that says nothing about the target. */
const couldNotBeMade = ({ failureCause }: Failure) =>
  failureCause === "infrastructure" || failureCause === "credentials";
/** Whether a run ended with an agent that has not succeeded. */
const isUnsuccessful = ({ failureCause }: Failure) =>
  failureCause === "timeout" || failureCause === "budget" || failureCause === "agent_crashed";

/** Sums up repeats. Who could not be evaluated is counted and left out; who ran out of time or money has not succeeded. */
export function sumUp(runs: Ended[]): Repeats {
  const made = runs.flatMap(({ report }) => (report === null ? [] : [report]));
  const scores = scoresOf(runs);
  const { successes, judged } = successesOf(runs);
  const numbers = (name: "seconds" | "costUsd") => made.flatMap((report) => report[name] ?? []);
  return {
    n: scores.length,
    infraFailures: infraFailuresOf(runs),
    score: scores.length === 0 ? null : toScore(meanInterval(scores)),
    successRate: judged === 0 ? null : { ...rounded(wilson(successes, judged), 3), of: judged },
    medianSeconds: round(median(numbers("seconds")), 1),
    medianCostUsd: round(median(numbers("costUsd")), 4),
  };
}

/** Sums up an evaluation, of which so many runs have not ended. */
export function resultOf(runs: Ended[], unfinished: number): EvalResult {
  const scores = scoresOf(runs);
  const sd = deviation(scores);
  const { successes, judged } = successesOf(runs);
  return {
    ...sumUp(runs),
    label: scores.length === 1 && unfinished === 0 ? "single run" : `${scores.length} runs`,
    unfinished,
    sd: round(sd, 2),
    successes: judged === 0 ? null : successes,
    smallestChange: sd === null || scores.length < minRuns ? null : round(smallestChange(scores.length, sd), 1),
  };
}

/** Runs that reached the goal, of those of which it is known. */
function successesOf(runs: Ended[]): { successes: number; judged: number } {
  const count = (outcome: Outcome) => runs.filter(({ report }) => report?.outcome === outcome).length;
  const successes = count("succeeded");
  return { successes, judged: successes + count("goal_not_met") + unsuccessfulOf(runs) };
}

/** How a run ended, as far as its goal goes; null: it could not be made, or was taken back. */
export function endOf({ report, failureCause }: Ended): "met" | "missed" | "unclear" | "unfinished" | null {
  if (report === null) return isUnsuccessful({ failureCause }) ? "unfinished" : null;
  const ends: Partial<Record<Outcome, "met" | "missed" | "unclear">> = {
    succeeded: "met",
    goal_not_met: "missed",
    not_judged: "unclear",
  };
  return ends[report.outcome] ?? null;
}

type Failure = Pick<Ended, "failureCause">;

/** Runs whose agent ran out of time or money, or crashed. */
export const unsuccessfulOf = (runs: Failure[]): number => runs.filter(isUnsuccessful).length;

/** Runs that failed. */
export const infraFailuresOf = (runs: Failure[]): number => runs.filter(couldNotBeMade).length;

/** Tells of runs without a score for want of time or money: the scores are those of the others alone, which may have been the easier ones. */
export function unscoredWords(...sides: Failure[][]): string {
  if (sides.every((runs) => unsuccessfulOf(runs) === 0)) return "";
  const words = sides.map((runs) => `${unsuccessfulOf(runs)} of ${runs.length}`);
  return `; runs without a score (timed out, over budget or crashed): ${words.join(" before, ")} after`;
}

const scoresOf = (runs: Ended[]): number[] => runs.flatMap(({ report }) => report?.score ?? []);

const toScore = (estimate: Estimate) => {
  const { value, low, high } = rounded(estimate, 1);
  return { mean: value, low, high };
};

export const rounded = ({ value, low, high }: Estimate, digits: number): Estimate => ({
  value: Number(value.toFixed(digits)),
  low: round(low, digits),
  high: round(high, digits),
});

/** A p value to four places, or to its first digit where that would leave nothing of it. */
export const roundP = (p: number): number => round(p, 4) || Number(p.toPrecision(1));

/** As in `p 0.029` or `p < 0.001`. */
export const pWords = (p: number): string => (p < 0.001 ? "p < 0.001" : `p ${p.toFixed(3)}`);

export const round = <T extends number | null>(value: T, digits: number): T =>
  (value === null ? null : Number(value.toFixed(digits))) as T;
