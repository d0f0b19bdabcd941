// Success in several strata, such as prompts: how much the shares of two sides differ. Pure functions, each with its source.
import { lnChoose, solve } from "./distributions.ts";
import { type Estimate, z95 } from "./estimates.ts";

/** k of n runs that succeeded. */
export type Share = { k: number; n: number };

/** Runs of both sides that may be exchanged, such as the runs of one prompt. Each side has at least one. */
export type ShareStratum = { a: Share; b: Share };

/**
 * Two-sided exact test that both sides succeed equally often within each stratum. Given the margins of each stratum, p is the probability of all
 * totals on side `b` that are at most as probable as the observed one. C. R. Mehta, N. R. Patel and R. Gray, JASA 80 (1985) 969–973; R calls it
 * `mantelhaen.test(exact = TRUE)`. `smallest`: the smallest p that is possible with these margins.
 */
export function stratifiedFisherTest(strata: ShareStratum[]): { p: number; smallest: number } {
  let chances = [1];
  for (const stratum of strata) chances = convolve(chances, chancesOf(stratum));
  const least = strata.reduce((sum, { a, b }) => sum + Math.max(0, a.k + b.k - a.n), 0);
  const observed = strata.reduce((sum, { b }) => sum + b.k, 0) - least;
  // Equal probabilities may differ in their last bits.
  const asRare = (chance: number) => {
    const limit = chance * (1 + 1e-7);
    const sum = chances.reduce((all, each) => (each <= limit ? all + each : all), 0);
    return Math.min(1, sum);
  };
  return { p: asRare(chances[observed]!), smallest: asRare(Math.min(...chances)) };
}

/** The same for a single stratum: R. A. Fisher, J. R. Stat. Soc. 85 (1922) 87–94. */
export const fisherTest = (a: Share, b: Share): number => stratifiedFisherTest([{ a, b }]).p;

/** The probability of each number of successes on side `b`, from its smallest one on: hypergeometric. */
function chancesOf({ a, b }: ShareStratum): number[] {
  const [n, k] = [a.n + b.n, a.k + b.k];
  const [from, to] = [Math.max(0, k - a.n), Math.min(b.n, k)];
  return Array.from({ length: to - from + 1 }, (_, i) =>
    Math.exp(lnChoose(b.n, from + i) + lnChoose(a.n, k - from - i) - lnChoose(n, k)),
  );
}

/** The distribution of the sum of two counts. */
function convolve(one: number[], other: number[]): number[] {
  const sums = new Array<number>(one.length + other.length - 1).fill(0);
  one.forEach((p, i) => {
    other.forEach((q, j) => {
      sums[i + j] = sums[i + j]! + p * q;
    });
  });
  return sums;
}

/**
 * How much more often side `b` succeeds than side `a`, from -1 to 1. This is the mean difference of the strata. There must be at least one stratum.
 * The 95 % interval has all differences that the stratified score test doesn't reject: O. Miettinen and M. Nurminen, Statistics in Medicine 4 (1985)
 * 213–226.
 */
export function shareDifference(strata: ShareStratum[]): Estimate {
  const isSingle = strata.length > 1 && strata.every(({ a, b }) => a.n === 1 && b.n === 1);
  // Strata of two runs say little about their spread, so intervals would contain the truth in 98 % of cases. Therefore all runs are taken as one
  // stratum.
  if (isSingle) return shareDifference([{ a: sumOf(strata, "a"), b: sumOf(strata, "b") }]);
  const value = strata.reduce((sum, { a, b }) => sum + b.k / b.n - a.k / a.n, 0) / strata.length;
  const errorAt = (difference: number) =>
    Math.sqrt(strata.reduce((sum, stratum) => sum + varianceAt(stratum, difference), 0)) / strata.length;
  // The error can be 0 at both ends. Then the end is the limit itself.
  const low = value - solve((by) => by - z95 * errorAt(value - by), value + 1);
  const high = value + solve((by) => by - z95 * errorAt(value + by), 1 - value);
  return { value, low: Math.max(-1, low), high: Math.min(1, high) };
}

const sumOf = (strata: ShareStratum[], side: "a" | "b"): Share => ({
  k: strata.reduce((sum, each) => sum + each[side].k, 0),
  n: strata.reduce((sum, each) => sum + each[side].n, 0),
});

/**
 * The variance of the difference of one stratum if the true difference is `difference`. It uses the most likely shares of both sides, and the factor
 * N / (N − 1).
 */
function varianceAt({ a, b }: ShareStratum, difference: number): number {
  const n = a.n + b.n;
  const [q, p] = likelyShares({ a, b }, difference);
  return ((p * (1 - p)) / b.n + (q * (1 - q)) / a.n) * (n / (n - 1));
}

/**
 * The most likely shares of sides `a` and `b` that differ by `difference`. This is the closed form in Miettinen and Nurminen's appendix, with the
 * names used there.
 */
function likelyShares({ a, b }: ShareStratum, difference: number): [a: number, b: number] {
  const n = a.n + b.n;
  const l2 = (a.n + n) * difference - n - a.k - b.k;
  const l1 = (a.n * difference - n - 2 * a.k) * difference + a.k + b.k;
  const l0 = a.k * difference * (1 - difference);
  const q = l2 ** 3 / (3 * n) ** 3 - (l1 * l2) / (6 * n ** 2) + l0 / (2 * n);
  const root = Math.sqrt(Math.max(0, l2 ** 2 / (3 * n) ** 2 - l1 / (3 * n)));
  const p = q < 0 ? -root : root;
  const angle = p === 0 ? 0 : (Math.PI + Math.acos(Math.max(-1, Math.min(1, q / p ** 3)))) / 3;
  const share = 2 * p * Math.cos(angle) - l2 / (3 * n);
  const shareOfA = Math.max(0, -difference, Math.min(1, 1 - difference, share));
  return [shareOfA, Math.max(0, Math.min(1, shareOfA + difference))];
}
