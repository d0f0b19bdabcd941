// What a number of runs can show: power, the minimum detectable change, and sequential tests. Pure functions, each with
// its source.
import { cached, lnChoose, noncentralTail, solve, tQuantile } from "./distributions.ts";
import type { Estimate } from "./estimates.ts";

const alpha = 0.05;
const targetPower = 0.8;

/** The smallest change of a score that matters, in points: a smaller one is never a regression. */
export const threshold = 5;

/**
 * Whether a change counts as better or worse. Its p must be below `level`, it must be at least `threshold` points, and its interval must be on one
 * side of 0. The interval is checked too, because it can disagree with the test if runs are few or skewed.
 */
export const isClearChange = ({ value, low, high }: Estimate, p: number, level: number): boolean =>
  p < level && (low ?? value) * (high ?? value) > 0 && Math.abs(value) >= threshold;

/** Minimum runs per side for a comparison: with 3 against 3, p is never below 0.1. */
export const minRuns = 4;

/**
 * The smallest possible p of a comparison, given the number of runs on both sides of each prompt. For a single prompt with fewer than `minRuns` runs,
 * it is 1.
 */
export function smallestP(sizes: { base: number; head: number }[]): number {
  if (sizes.length === 1 && sizes.some(({ base, head }) => Math.min(base, head) < minRuns)) return 1;
  // If there are enough prompts, the signs of their differences are flipped. Otherwise runs are exchanged within prompts.
  const byFlips = 2 ** (1 - sizes.length);
  if (byFlips < alpha) return byFlips;
  const lnWays = sizes.reduce((sum, { base, head }) => sum + lnChoose(base + head, head), 0);
  // If both sides have the same size, each split has a mirror image that differs as much.
  const isBalanced = sizes.every(({ base, head }) => base === head);
  return (isBalanced ? 2 : 1) / Math.exp(lnWays);
}

/**
 * The probability that n runs per side detect a change of `delta` at 5 %, two-sided, if runs have this standard deviation. It is exact, by the
 * noncentral t.
 */
export function powerOf(n: number, delta: number, sd: number): number {
  return powerOfDeviations(n, delta / sd);
}

/** The same for a change of this many standard deviations. */
const powerOfDeviations = (n: number, deviations: number): number =>
  powerOfErrors(deviations * Math.sqrt(n / 2), 2 * n - 2);

/** The probability that a two-sided t test detects a change of this many standard errors at `level`: exact, by the noncentral t. */
export const powerOfErrors = (errors: number, degreesOfFreedom: number, level = alpha): number =>
  noncentralTail(tQuantile(1 - level / 2, degreesOfFreedom), degreesOfFreedom, errors);

/** The standard error of the change in a planned test with n units, and its degrees of freedom. */
type PlannedTest = (n: number) => { error: number; degreesOfFreedom: number };

/** The smallest n, at least `from`, with which a t test detects a change of `delta` at `level` in 4 of 5 cases; null: more than 1,000. */
export function unitsToShow(delta: number, level: number, from: number, testOf: PlannedTest): number | null {
  const isEnough = (n: number) => {
    const { error, degreesOfFreedom } = testOf(n);
    const errors = delta / error;
    // Far beyond the critical value, power is certain, and computing it would take long.
    const isCertain = errors > 30 + 2 * tQuantile(1 - level / 2, degreesOfFreedom);
    return isCertain || powerOfErrors(errors, degreesOfFreedom, level) >= targetPower;
  };
  let [low, high] = [from, from];
  while (high < 1000 && !isEnough(high)) [low, high] = [high + 1, Math.min(1000, 2 * high)];
  if (high === 1000 && !isEnough(high)) return null;
  while (low < high) {
    const n = Math.floor((low + high) / 2);
    if (isEnough(n)) high = n;
    else low = n + 1;
  }
  return high;
}

/** The change that n runs per side (2 or more) detect in 4 of 5 comparisons. */
export const smallestChange = (n: number, sd: number): number => (sd === 0 ? 0 : sd * changeInDeviations(n));

/** The detectable change in standard deviations. It is cached for each n, because solving for it takes milliseconds. */
const changeInDeviations = cached((n) => solve((deviations) => powerOfDeviations(n, deviations) - targetPower, 10));

/** Runs per side needed to detect this change in 4 of 5 comparisons; null above 1,000. */
export function runsToShow(delta: number, sd: number): number | null {
  let [low, high] = [2, 1001];
  while (low < high) {
    const n = Math.floor((low + high) / 2);
    if (smallestChange(n, sd) <= delta) high = n;
    else low = n + 1;
  }
  return high > 1000 ? null : high;
}

/**
 * The numbers of runs per side at which an adaptive gate tests, each with the p below which a change is significant at that step. The false positive
 * rate of all steps together is at most 5 %. The levels come from error spending by K. K. G. Lan and D. L. DeMets, Biometrika 70 (1983) 659–663, with
 * their spending function α ln(1 + (e − 1)t) of Pocock's type. With 3 against 3, no p is that small. So nothing is spent there, and the step only
 * shows whether runs fail or cost too much.
 */
export const gateSteps = [
  { runs: 3, level: 0.02699 },
  { runs: 5, level: 0.02699 },
  { runs: 8, level: 0.01973 },
  { runs: 12, level: 0.02168 },
] as const;
