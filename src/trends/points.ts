import { type Static, Type } from "@sinclair/typebox";
import type { FailedRun, ScoreDay } from "../reports/score-days.ts";
import { Id, Time, toIso } from "../schema.ts";
import { type Estimate, mean, meanInterval, median, wilson } from "../stats/estimates.ts";
import { infraFailuresOf, Repeats, round, rounded, unsuccessfulOf } from "../stats/repeats.ts";

export const Points = Type.Array(
  Type.Object(
    {
      from: Time,
      evalRequestId: Type.Optional(Id),
      prompts: Type.Integer({ description: "Over several prompts: the mean of their means" }),
      ...Repeats.properties,
    },
    { title: "TrendPoint" },
  ),
  { description: "Published runs on live docs, oldest first, without empty intervals" },
);

type Point = Static<typeof Points>[number];

/** One point per interval in which runs ended, oldest first. `startOf` returns the start of the interval of a time. */
export function pointsOf(startOf: (at: number) => number, days: ScoreDay[], failed: FailedRun[]): Point[] {
  const daysByStart = Map.groupBy(days, ({ day }) => startOf(day));
  const failuresByStart = Map.groupBy(failed, ({ at }) => startOf(at));
  const starts = [...new Set([...daysByStart.keys(), ...failuresByStart.keys()])].sort((a, b) => a - b);
  return starts.map((at) => pointOf(at, daysByStart.get(at) ?? [], failuresByStart.get(at) ?? []));
}

function pointOf(at: number, days: ScoreDay[], failed: FailedRun[]): Point {
  const ids = [...new Set([...days, ...failed].map(({ promptId }) => promptId))];
  const results = ids.map((id) =>
    resultOf(
      days.filter(({ promptId }) => promptId === id),
      failed.filter(({ promptId }) => promptId === id),
    ),
  );
  const medianOf = (name: "seconds" | "costs") => median(results.flatMap((result) => median(result[name]) ?? []));
  return {
    from: toIso(at),
    prompts: ids.length,
    n: results.reduce((n, { scores }) => n + scores.length, 0),
    infraFailures: infraFailuresOf(failed),
    score: scoreOf(results),
    successRate: successRateOf(results),
    medianSeconds: round(medianOf("seconds"), 1),
    medianCostUsd: round(medianOf("costs"), 4),
  };
}

/** The runs of one prompt in an interval. */
type PromptResult = { scores: number[]; seconds: number[]; costs: number[]; succeeded: number; judged: number };

function resultOf(days: ScoreDay[], failed: FailedRun[]): PromptResult {
  const sumOf = (name: "succeeded" | "judged") => days.reduce((sum, day) => sum + day[name], 0);
  return {
    scores: days.flatMap(({ scores }) => scores),
    seconds: days.flatMap(({ seconds }) => seconds),
    costs: days.flatMap(({ costsUsd }) => costsUsd),
    succeeded: sumOf("succeeded"),
    judged: sumOf("judged") + unsuccessfulOf(failed),
  };
}

/**
 * The score of an interval. For a single prompt, it is the mean score of its runs. For several prompts, it is the mean of their means. null: there is
 * no score.
 */
function scoreOf(results: PromptResult[]): Point["score"] {
  const scored = results.map(({ scores }) => scores).filter((scores) => scores.length > 0);
  const [only, ...others] = scored;
  if (only === undefined) return null;
  const { value, low, high } = rounded(meanInterval(others.length === 0 ? only : scored.map(mean)), 1);
  return { mean: value, low, high };
}

/** The success rate of a single prompt, or the mean of the rates of several prompts; null: no run was judged. */
function successRateOf(results: PromptResult[]): Point["successRate"] {
  const judgedResults = results.filter(({ judged }) => judged > 0);
  const [only, ...others] = judgedResults;
  if (only === undefined) return null;
  // `meanInterval` expects scores from 0 to 100.
  const rate =
    others.length === 0
      ? wilson(only.succeeded, only.judged)
      : toShares(meanInterval(judgedResults.map(({ succeeded, judged }) => (100 * succeeded) / judged)));
  return { ...rounded(rate, 3), of: judgedResults.reduce((n, { judged }) => n + judged, 0) };
}

/** Turns an interval in percent into shares. */
const toShares = ({ value, low, high }: Estimate): Estimate => ({
  value: value / 100,
  low: low === null ? null : low / 100,
  high: high === null ? null : high / 100,
});
