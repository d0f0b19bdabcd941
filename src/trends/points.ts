import { type Static, Type } from "@sinclair/typebox";
import type { FailedRun, ScoreDay } from "../reports/score-days.ts";
import { Id, Time, toIso } from "../schema.ts";
import { mean, meanInterval, median, wilson } from "../stats/estimates.ts";
import { infraFailuresOf, Repeats, rounded, unsuccessfulOf } from "../stats/repeats.ts";

export const Points = Type.Array(
  Type.Object({
    from: Time,
    evalRequestId: Type.Optional(Id),
    prompts: Type.Integer({ description: "Over several prompts: the mean of their means" }),
    ...Repeats.properties,
  }),
  { description: "Published runs on live docs, oldest first, without empty intervals" },
);

type Point = Static<typeof Points>[number];

/** One point per interval in which runs ended, oldest first. `startOf` returns the start of the interval of a time. */
export function pointsOf(startOf: (at: number) => number, days: ScoreDay[], failed: FailedRun[]): Point[] {
  const spans = Map.groupBy(days, ({ day }) => startOf(day));
  const misses = Map.groupBy(failed, ({ at }) => startOf(at));
  const starts = [...new Set([...spans.keys(), ...misses.keys()])].sort((a, b) => a - b);
  return starts.map((at) => pointOf(at, spans.get(at) ?? [], misses.get(at) ?? []));
}

/** One interval: the runs of a single prompt, or the means of several prompts. */
function pointOf(at: number, days: ScoreDay[], failed: FailedRun[]): Point {
  const ids = [...new Set([...days, ...failed].map(({ promptId }) => promptId))];
  const each = ids.map((id) => {
    const own = days.filter(({ promptId }) => promptId === id);
    const lost = unsuccessfulOf(failed.filter(({ promptId }) => promptId === id));
    const total = (name: "succeeded" | "judged") => own.reduce((sum, day) => sum + day[name], 0);
    return {
      scores: own.flatMap(({ scores }) => scores),
      seconds: own.flatMap(({ seconds }) => seconds),
      costs: own.flatMap(({ costsUsd }) => costsUsd),
      succeeded: total("succeeded"),
      judged: total("judged") + lost,
    };
  });
  const scored = each.filter(({ scores }) => scores.length > 0);
  const judged = each.filter((one) => one.judged > 0);
  const middle = (name: "seconds" | "costs") => median(each.flatMap((one) => median(one[name]) ?? []));
  const [only] = judged;
  const scores = scored.length === 1 ? (scored[0]?.scores ?? []) : scored.map((one) => mean(one.scores));
  const rate =
    only && judged.length === 1
      ? wilson(only.succeeded, only.judged)
      : meanInterval(judged.map((one) => (100 * one.succeeded) / one.judged));
  const share = judged.length === 1 ? 1 : 100;
  const { value, low, high } = rounded(
    scores.length === 0 ? { value: 0, low: null, high: null } : meanInterval(scores),
    1,
  );
  const part = (n: number | null) => (n === null ? null : n / share);
  return {
    from: toIso(at),
    prompts: ids.length,
    n: scored.reduce((n, one) => n + one.scores.length, 0),
    infraFailures: infraFailuresOf(failed),
    score: scores.length === 0 ? null : { mean: value, low, high },
    successRate:
      judged.length === 0
        ? null
        : {
            ...rounded({ value: rate.value / share, low: part(rate.low), high: part(rate.high) }, 3),
            of: judged.reduce((n, one) => n + one.judged, 0),
          },
    medianSeconds: fixed(middle("seconds"), 1),
    medianCostUsd: fixed(middle("costs"), 4),
  };
}

const fixed = (value: number | null, digits: number) => (value === null ? null : Number(value.toFixed(digits)));
