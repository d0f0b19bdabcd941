import { mean } from "../stats/estimates.ts";
import { round } from "../stats/repeats.ts";
import { type Evidence, threshold, type Verdict } from "./evidence.ts";
import { type Pair, type Sample, samplesOf, scoreOn } from "./samples.ts";

/** What depends on the time of day beside the docs: an exact difference leaves it out. */
const timed = "Efficiency";

/**
 * Runs of an agent that does the same again on the same docs: how much further apart they are is a fact, and more runs say no more. Dimensions
 * that measure time are left out where there are others.
 */
export function judgeExact(
  pairs: Pair[],
  names: string[] | null,
): { verdict: Verdict; evidence: Partial<Evidence> & { reason: string } } {
  const all = names ?? [
    ...new Set(pairs.flatMap(({ before }) => before.flatMap(({ dimensions }) => dimensions.map(({ name }) => name)))),
  ];
  const kept = all.filter((name) => name !== timed);
  const isWhole = kept.length === 0 || (names === null && kept.length === all.length);
  const scores = samplesOf(pairs, (run) => scoreOn(run, isWhole ? names : kept));
  const { before, after } = differenceOf(scores);
  const value = round(after - before, 1);
  const verdict = value <= -threshold ? "regressed" : value >= threshold ? "improved" : "no_change";
  return {
    verdict,
    evidence: {
      reason: `${value > 0 ? "+" : ""}${value.toFixed(1)} points, by a deterministic agent; a change needs at least ${threshold} points`,
      method: `exact difference, without a test${isWhole ? "" : `, of ${kept.join(" and ")}`}`,
      delta: { value, low: value, high: value },
    },
  };
}

/** The means of both sides; each prompt counts the same. */
function differenceOf(samples: Sample[]): { before: number; after: number } {
  const prompts = [...Map.groupBy(samples, ({ prompt }) => prompt).values()];
  const of = (side: "before" | "after") =>
    mean(prompts.map((own) => mean(own.map(({ [side]: values }) => mean(values)))));
  return { before: of("before"), after: of("after") };
}
