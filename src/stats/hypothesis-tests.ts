// Tests of whether two sides differ by more than chance. They assume no distribution, unless stated. Pure functions, each with its source.
import { lnChoose, tTail } from "./distributions.ts";
import { mean, standardDeviation, variance } from "./estimates.ts";
import { seeded } from "./random.ts";

/**
 * The result of a permutation test. `smallest`: the smallest p that is possible with this many values. `splits`: how many splits, or assignments of
 * signs, were evaluated. `seed`: the seed of the random draws; null: every split was evaluated.
 */
export type PermutationResult = { p: number; smallest: number; splits: number; seed: number | null };

/** Above this many splits, a random sample of them is used. */
const maxSplits = 50_000;
const resamples = 20_000;
const resampleSeed = 1;

/** Sums that differ only in their last bits, due to summation order, count as equal. */
const rounding = 1e-9;

/**
 * Two-sided permutation test of the difference of two means. p is the share of all ways to split the values into two sides that differ at least as
 * much. E. J. G. Pitman, Suppl. JRSS 4 (1937) 119–130. Above 50,000 splits, 20,000 are drawn with a fixed seed. Then p is (hits + 1) / (draws + 1).
 */
export function permutationTest(a: number[], b: number[]): PermutationResult {
  const all = [...a, ...b];
  const total = sumOf(all);
  const difference = (sumA: number) => Math.abs(sumA / a.length - (total - sumA) / b.length);
  const observed = difference(sumOf(a)) - rounding;
  const ways = Math.round(Math.exp(lnChoose(all.length, a.length)));
  // If both sides have the same size, each split has a mirror image that differs as much.
  const smallest = Math.min(1, (a.length === b.length ? 2 : 1) / ways);
  let hits = 0;
  if (ways <= maxSplits) {
    forEachSum(all, a.length, (sum) => {
      if (difference(sum) >= observed) hits++;
    });
    return { p: hits / ways, smallest, splits: ways, seed: null };
  }
  const random = seeded(resampleSeed);
  for (let draw = 0; draw < resamples; draw++) {
    if (difference(randomSum(all, a.length, random)) >= observed) hits++;
  }
  return sampledResult(hits, smallest);
}

/** Values of both sides that may be exchanged, because they have the same prompt and template arguments. */
export type Stratum = { a: number[]; b: number[]; weight: number };

/**
 * Two-sided permutation test of the weighted mean of the differences in several strata. Values are exchanged only
 * within their stratum, so that different levels of strata don't matter: P. I. Good, Permutation, Parametric and
 * Bootstrap Tests of Hypotheses (2005) §6. With one stratum, it equals `permutationTest`.
 */
export function stratifiedPermutationTest(strata: Stratum[]): PermutationResult {
  const [only] = strata;
  if (only && strata.length === 1) return permutationTest(only.a, only.b);
  const totals = strata.map(({ a, b }) => sumOf(a) + sumOf(b));
  const toDifference = (sumA: number, i: number) => {
    const { a, b, weight } = strata[i]!;
    return weight * ((totals[i]! - sumA) / b.length - sumA / a.length);
  };
  const observed = Math.abs(sumOf(strata.map(({ a }, i) => toDifference(sumOf(a), i)))) - rounding;
  const ways = strata.reduce((all, { a, b }) => all * Math.round(Math.exp(lnChoose(a.length + b.length, a.length))), 1);
  const isBalanced = strata.every(({ a, b }) => a.length === b.length);
  const smallest = Math.min(1, (isBalanced ? 2 : 1) / ways);
  const values = strata.map(({ a, b }) => [...a, ...b]);
  let hits = 0;
  if (ways <= maxSplits) {
    const differences = strata.map(({ a }, i) => {
      const ofStratum: number[] = [];
      forEachSum(values[i]!, a.length, (sum) => ofStratum.push(toDifference(sum, i)));
      return ofStratum;
    });
    forEachTotal(differences, (total) => {
      if (Math.abs(total) >= observed) hits++;
    });
    return { p: hits / ways, smallest, splits: ways, seed: null };
  }
  const random = seeded(resampleSeed);
  for (let draw = 0; draw < resamples; draw++) {
    let total = 0;
    for (let i = 0; i < strata.length; i++)
      total += toDifference(randomSum(values[i]!, strata[i]!.a.length, random), i);
    if (Math.abs(total) >= observed) hits++;
  }
  return sampledResult(hits, smallest);
}

/**
 * Two-sided p of Welch's t test that two means are equal: B. L. Welch, Biometrika 34 (1947) 28–35. p is 1 unless both sides have at least two values.
 * Unlike the permutation tests, this test takes the same time for any number of values.
 */
export function welchTest(a: number[], b: number[]): number {
  const sides = [a, b].map((values) => ({ n: values.length, squaredError: variance(values) / values.length }));
  if (sides.some(({ n }) => n < 2)) return 1;
  const difference = Math.abs(mean(b) - mean(a));
  const squaredErrors = sumOf(sides.map(({ squaredError }) => squaredError));
  if (difference <= rounding) return 1;
  if (squaredErrors <= rounding) return 0;
  const degreesOfFreedom = squaredErrors ** 2 / sumOf(sides.map(({ n, squaredError }) => squaredError ** 2 / (n - 1)));
  return tTail(difference / Math.sqrt(squaredErrors), degreesOfFreedom);
}

/** Two-sided p of Student's t test that the mean of paired differences is 0: Student, Biometrika 6 (1908) 1–25. p is 1 for a single difference. */
export function pairedTest(differences: number[]): number {
  const sd = standardDeviation(differences);
  const value = mean(differences);
  if (sd === null || Math.abs(value) <= rounding) return 1;
  return sd <= rounding ? 0 : tTail((Math.abs(value) / sd) * Math.sqrt(differences.length), differences.length - 1);
}

/** Above this many differences, a random sample of the sign assignments is used. */
const maxFlips = 32;

/**
 * Two-sided sign-flip test that the mean of paired differences is 0. p is the share of all sign assignments whose sum is at least as large. R. A.
 * Fisher, The Design of Experiments (1935) §21. For up to 32 differences, all assignments are counted, by the sums of both halves (E. Horowitz and S.
 * Sahni, J. ACM 21 (1974) 277–292). For more, 20,000 assignments are drawn with this seed.
 */
export function signFlipTest(differences: number[], seed = resampleSeed): PermutationResult {
  const n = differences.length;
  const observed = Math.abs(sumOf(differences)) - rounding;
  const ways = 2 ** n;
  const smallest = Math.min(1, 2 / ways);
  if (n <= maxFlips)
    return { p: Math.min(1, flipsBeyond(differences, observed) / ways), smallest, splits: ways, seed: null };
  const random = seeded(seed);
  let hits = 0;
  for (let draw = 0; draw < resamples; draw++) {
    let sum = 0;
    let bits = 0;
    for (let i = 0; i < n; i++) {
      // Each of the 32 bits of a random number decides one sign, the lowest first.
      bits = i % 32 === 0 ? Math.floor(random() * 2 ** 32) : bits >>> 1;
      sum += bits & 1 ? -differences[i]! : differences[i]!;
    }
    if (Math.abs(sum) >= observed) hits++;
  }
  return { ...sampledResult(hits, smallest), seed };
}

/** How many sign assignments have a sum of at least this size. */
function flipsBeyond(differences: number[], size: number): number {
  if (size <= 0) return 2 ** differences.length;
  const half = Math.floor(differences.length / 2);
  const [left, right] = [signedSums(differences.slice(0, half)), signedSums(differences.slice(half))];
  let hits = 0;
  // The index of the first right sum that is large enough together with a left sum. A larger left sum needs less, so the index never rises.
  let firstLargeEnough = right.length;
  for (const sum of left) {
    while (firstLargeEnough > 0 && sum + right[firstLargeEnough - 1]! >= size) firstLargeEnough--;
    hits += right.length - firstLargeEnough;
  }
  // With all signs reversed, each of these sums is as far below 0, so it counts twice.
  return 2 * hits;
}

/** The sums of all sign assignments, in ascending order. */
function signedSums(values: number[]): Float64Array {
  let sums = new Float64Array(1);
  for (const value of values) {
    const next = new Float64Array(2 * sums.length);
    sums.forEach((sum, i) => {
      next[2 * i] = sum - value;
      next[2 * i + 1] = sum + value;
    });
    sums = next;
  }
  return sums.sort();
}

/** The p values of one family, corrected for their number, in the given order: S. Holm, Scand. J. Stat. 6 (1979) 65–70. */
export function holm(ps: number[]): number[] {
  const order = ps.map((_, i) => i).sort((a, b) => ps[a]! - ps[b]!);
  const corrected: number[] = [];
  let largest = 0;
  order.forEach((index, rank) => {
    largest = Math.max(largest, Math.min(1, ps[index]! * (ps.length - rank)));
    corrected[index] = largest;
  });
  return corrected;
}

/** The p value of random draws, at least 1 / (draws + 1). */
const sampledResult = (hits: number, smallest: number): PermutationResult => ({
  p: (hits + 1) / (resamples + 1),
  smallest: Math.max(smallest, 1 / (resamples + 1)),
  splits: resamples,
  seed: resampleSeed,
});

const sumOf = (values: number[]): number => values.reduce((sum, value) => sum + value, 0);

/** The sum of k random values: the first steps of a Fisher–Yates shuffle, which reorders the values. */
function randomSum(values: number[], k: number, random: () => number): number {
  let sum = 0;
  for (let i = 0; i < k; i++) {
    const j = i + Math.floor(random() * (values.length - i));
    const value = values[j]!;
    values[j] = values[i]!;
    values[i] = value;
    sum += value;
  }
  return sum;
}

/** The sums of all choices of one value from each list. */
function forEachTotal(lists: number[][], visit: (total: number) => void, index = 0, total = 0): void {
  if (index === lists.length) visit(total);
  else for (const value of lists[index]!) forEachTotal(lists, visit, index + 1, total + value);
}

/** The sums of all choices of `k` values. */
function forEachSum(values: number[], k: number, visit: (sum: number) => void, from = 0, sum = 0): void {
  if (k === 0) visit(sum);
  else for (let i = from; i <= values.length - k; i++) forEachSum(values, k - 1, visit, i + 1, sum + values[i]!);
}
