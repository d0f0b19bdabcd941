import { mean } from "../stats/estimates.ts";
import { threshold } from "../stats/power.ts";
import { round } from "../stats/repeats.ts";
import type { Evidence, Verdict } from "./evidence.ts";
import { dimensionNames, listLeftOut, type Pair, roundedMeans, type Sample, samplesOf, scoreOn } from "./samples.ts";

/** The dimension that depends on the time of day rather than the docs. Exact differences exclude it. */
const timedDimension = "Efficiency";

/**
 * Compares runs of an agent that always does the same on the same docs. Their difference is exact, and more runs add
 * nothing. Dimensions that measure time are excluded if there are others.
 */
export function verdictOfDeterministic(
  pairs: Pair[],
  names: string[] | null,
): { verdict: Verdict; evidence: Partial<Evidence> & { reason: string } } {
  const allNames = names ?? dimensionNames(pairs);
  const untimedNames = allNames.filter((name) => name !== timedDimension);
  const hasBoth = untimedNames.length > 0 && untimedNames.length < allNames.length;
  /** null: whole scores are compared. */
  const comparedNames = hasBoth ? untimedNames : names;
  const means = differenceOf(samplesOf(pairs, (run) => scoreOn(run, comparedNames)));
  const score = { ...roundedMeans(means.before, means.after), without: listLeftOut(pairs, comparedNames) };
  const value = round(score.after - score.before, 1);
  const direction = value < 0 ? "regressed" : "improved";
  return {
    verdict: Math.abs(value) >= threshold ? direction : "no_change",
    evidence: {
      reason: `${describeDifference(value)} (limit: ${threshold} points); this agent gives the same result on the same docs`,
      method: `exact difference, without a test${comparedNames === null ? "" : `, of ${comparedNames.join(" and ")}`}`,
      score,
      delta: { value, low: value, high: value },
    },
  };
}

/** "worse by 6.6 points" */
const describeDifference = (value: number): string =>
  value === 0 ? "the same score" : `${value < 0 ? "worse" : "better"} by ${Math.abs(value).toFixed(1)} points`;

/** The means of both sides; each prompt counts equally. */
function differenceOf(samples: Sample[]): { before: number; after: number } {
  const prompts = [...Map.groupBy(samples, ({ prompt }) => prompt).values()];
  const meanOf = (side: "before" | "after") =>
    mean(prompts.map((samples) => mean(samples.map(({ [side]: values }) => mean(values)))));
  return { before: meanOf("before"), after: meanOf("after") };
}
