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

/** One interval: the runs of a single prompt, or the means of several prompts. */
function pointOf(at: number, days: ScoreDay[], failed: FailedRun[]): Point {
  const ids = [...new Set([...days, ...failed].map(({ promptId }) => promptId))];
  const promptResults = ids.map((id) => {
    const promptDays = days.filter(({ promptId }) => promptId === id);
    const unsuccessful = unsuccessfulOf(failed.filter(({ promptId }) => promptId === id));
    const sumOf = (name: "succeeded" | "judged") => promptDays.reduce((sum, day) => sum + day[name], 0);
    return {
      scores: promptDays.flatMap(({ scores }) => scores),
      seconds: promptDays.flatMap(({ seconds }) => seconds),
      costs: promptDays.flatMap(({ costsUsd }) => costsUsd),
      succeeded: sumOf("succeeded"),
      judged: sumOf("judged") + unsuccessful,
    };
  });
  const scoredPrompts = promptResults.filter(({ scores }) => scores.length > 0);
  const judgedPrompts = promptResults.filter((result) => result.judged > 0);
  const medianOf = (name: "seconds" | "costs") => median(promptResults.flatMap((result) => median(result[name]) ?? []));
  const [judgedPrompt, ...otherJudgedPrompts] = judgedPrompts;
  const scores =
    scoredPrompts.length === 1 ? (scoredPrompts[0]?.scores ?? []) : scoredPrompts.map((result) => mean(result.scores));
  const isSingle = judgedPrompt !== undefined && otherJudgedPrompts.length === 0;
  const rate = isSingle
    ? wilson(judgedPrompt.succeeded, judgedPrompt.judged)
    : toShares(meanInterval(judgedPrompts.map((result) => (100 * result.succeeded) / result.judged)));
  const { value, low, high } = rounded(
    scores.length === 0 ? { value: 0, low: null, high: null } : meanInterval(scores),
    1,
  );
  return {
    from: toIso(at),
    prompts: ids.length,
    n: scoredPrompts.reduce((n, result) => n + result.scores.length, 0),
    infraFailures: infraFailuresOf(failed),
    score: scores.length === 0 ? null : { mean: value, low, high },
    successRate:
      judgedPrompts.length === 0
        ? null
        : {
            ...rounded(rate, 3),
            of: judgedPrompts.reduce((n, result) => n + result.judged, 0),
          },
    medianSeconds: round(medianOf("seconds"), 1),
    medianCostUsd: round(medianOf("costs"), 4),
  };
}

/** An interval in percent as shares. */
const toShares = ({ value, low, high }: Estimate): Estimate => ({
  value: value / 100,
  low: low === null ? null : low / 100,
  high: high === null ? null : high / 100,
});
