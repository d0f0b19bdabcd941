// Estimates from a few repeats: centers, spreads and intervals. Pure functions, each with its source.
import { lnChoose, tQuantile } from "./distributions.ts";

/** A value with its confidence interval, 95 % unless stated otherwise; null for a single run. */
export type Estimate = { value: number; low: number | null; high: number | null };

/** The mean; NaN if there are no values. */
export const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The median; null if there are no values. */
export function median(values: number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  if (sorted.length === 0) return null;
  return sorted.length % 2 ? sorted[Math.floor(half)]! : mean(sorted.slice(half - 1, half + 1));
}

/**
 * The median with an interval between two of the values. The interval contains the true median in at least 95 % of cases, whatever the distribution:
 * W. R. Thompson, Ann. Math. Stat. 7 (1936) 122–128. There is no interval for fewer than six values. null: there are no values.
 */
export function medianInterval(values: number[]): Estimate | null {
  const value = median(values);
  if (value === null) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const n = sorted.length;
  // `below`: the probability that the true median is below `sorted[outside]`. The interval starts before the first value whose probability is above
  // 2.5 %.
  let outside = 0;
  let below = Math.exp(-n * Math.LN2);
  while (below <= 0.025) {
    outside++;
    below += Math.exp(lnChoose(n, outside) - n * Math.LN2);
  }
  if (outside === 0) return { value, low: null, high: null };
  return { value, low: sorted[outside - 1] ?? null, high: sorted[n - outside] ?? null };
}

/** Unbiased sample variance (n − 1) of two or more values. */
export const variance = (values: number[]): number => {
  const center = mean(values);
  return values.reduce((sum, value) => sum + (value - center) ** 2, 0) / (values.length - 1);
};

/** The variance within groups, weighted by their degrees of freedom; null if no group has two values. */
export function pooledVariance(groups: number[][]): number | null {
  const repeated = groups.filter((values) => values.length > 1);
  const degreesOfFreedom = repeated.reduce((sum, values) => sum + values.length - 1, 0);
  const squares = repeated.reduce((sum, values) => sum + variance(values) * (values.length - 1), 0);
  return degreesOfFreedom === 0 ? null : squares / degreesOfFreedom;
}

/** Sample standard deviation; null for fewer than two values. */
export const standardDeviation = (values: number[]): number | null =>
  values.length < 2 ? null : Math.sqrt(variance(values));

/** The mean of scores with Student's t 95 % interval, clipped to 0..100; without an interval for fewer than two runs. */
export const meanInterval = (scores: number[]): Estimate => tInterval(scores, 1 / scores.length);

/** Where one more run would be in 19 of 20 cases, clipped to 0..100. This is the t prediction interval around the mean. */
export const predictionInterval = (scores: number[]): Estimate => tInterval(scores, 1 + 1 / scores.length);

function tInterval(scores: number[], varianceFactor: number): Estimate {
  const value = mean(scores);
  if (scores.length < 2) return { value, low: null, high: null };
  const half = tQuantile(0.975, scores.length - 1) * Math.sqrt(variance(scores) * varianceFactor);
  return { value, low: Math.max(0, value - half), high: Math.min(100, value + half) };
}

/** The 97.5 % quantile of the normal distribution, for two-sided 95 % intervals. */
export const z95 = 1.959963984540054;

/** A share k of n with Wilson's 95 % score interval: E. B. Wilson, JASA 22 (1927) 209–212. n must be at least 1. */
export function wilson(k: number, n: number): Estimate {
  const share = k / n;
  const center = (share + z95 ** 2 / (2 * n)) / (1 + z95 ** 2 / n);
  const half = (z95 / (1 + z95 ** 2 / n)) * Math.sqrt((share * (1 - share)) / n + z95 ** 2 / (4 * n ** 2));
  return { value: share, low: Math.max(0, center - half), high: Math.min(1, center + half) };
}

/**
 * How much larger the mean of `b` is than the mean of `a`, with Welch's interval at level 1 - `alpha`: B. L. Welch, Biometrika 34 (1947)
 * 28–35. There is no interval unless both have at least two values.
 */
export const welch = (a: number[], b: number[], alpha = 0.05): Estimate =>
  stratifiedWelch([{ a, b, weight: 1 }], alpha);

/** Welch's interval of the weighted mean of the differences in several strata. */
export function stratifiedWelch(strata: { a: number[]; b: number[]; weight: number }[], alpha = 0.05): Estimate {
  const value = strata.reduce((sum, { a, b, weight }) => sum + weight * (mean(b) - mean(a)), 0);
  const sides = strata.flatMap(({ a, b, weight }) => [a, b].map((values) => ({ values, weight })));
  if (sides.some(({ values }) => values.length < 2)) return { value, low: null, high: null };
  const terms = sides.map(({ values, weight }) => ({
    squaredError: (weight ** 2 * variance(values)) / values.length,
    degreesOfFreedom: values.length - 1,
  }));
  const sum = terms.reduce((all, { squaredError }) => all + squaredError, 0);
  // Without any spread, the interval has no width, and the degrees of freedom don't matter.
  if (sum === 0) return { value, low: value, high: value };
  const degreesOfFreedom =
    sum ** 2 / terms.reduce((all, { squaredError, degreesOfFreedom }) => all + squaredError ** 2 / degreesOfFreedom, 0);
  const half = tQuantile(1 - alpha / 2, degreesOfFreedom) * Math.sqrt(sum);
  return { value, low: value - half, high: value + half };
}

/** The mean of paired differences, with the t interval at level 1 - `alpha`. */
export function pairedInterval(differences: number[], alpha = 0.05): Estimate {
  const value = mean(differences);
  const sd = standardDeviation(differences);
  if (sd === null) return { value, low: null, high: null };
  const half = tQuantile(1 - alpha / 2, differences.length - 1) * (sd / Math.sqrt(differences.length));
  return { value, low: value - half, high: value + half };
}
