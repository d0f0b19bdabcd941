// Tests of whether two sides differ by more than chance. None assumes a distribution. Pure functions; where each comes from stands with it.
import { lnChoose } from "./statsdistributions.ts";

/** `smallest`: the least p that so many values could show, whatever they are. `seed`: of the draws; null where every split was looked at. */
export type Exact = { p: number; smallest: number; splits: number; seed: number | null };

/** More splits than this are not looked at one by one: so many are drawn. */
const maxSplits = 50_000;
const resamples = 20_000;
const resampleSeed = 1;

/** A sum that differs in its last bits, for it was made in another order, is the same. */
const rounding = 1e-9;

/**
 * Two-sided permutation test of the difference of two means: the share of all ways to split the values into two sides that differ at least as
 * much. E. J. G. Pitman, Suppl. JRSS 4 (1937) 119–130. Above 50,000 splits 20,000 drawn with a fixed seed; p is then (hits + 1) / (draws + 1).
 */
export function permutationTest(a: number[], b: number[]): Exact {
  const all = [...a, ...b];
  const total = sumOf(all);
  const difference = (sumA: number) => Math.abs(sumA / a.length - (total - sumA) / b.length);
  const observed = difference(sumOf(a)) - rounding;
  const ways = Math.round(Math.exp(lnChoose(all.length, a.length)));
  // Of sides of one size each split has a mirror image that differs as much.
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
    let sum = 0;
    // The first places of a Fisher–Yates shuffle.
    for (let i = 0; i < a.length; i++) {
      const j = i + Math.floor(random() * (all.length - i));
      const value = all[j] as number;
      all[j] = all[i] as number;
      all[i] = value;
      sum += value;
    }
    if (difference(sum) >= observed) hits++;
  }
  return drawn(hits, smallest);
}

/**
 * Two-sided sign-flip test that the mean of paired differences is 0: the share of all ways to turn signs whose sum is at least as large.
 * R. A. Fisher, The Design of Experiments (1935) §21. Above 50,000 ways (16 pairs and more) 20,000 drawn with a fixed seed.
 */
export function signFlipTest(differences: number[]): Exact {
  const n = differences.length;
  const observed = Math.abs(sumOf(differences)) - rounding;
  const ways = 2 ** n;
  const smallest = Math.min(1, 2 / ways);
  const isFar = (flip: (i: number) => boolean) =>
    Math.abs(differences.reduce((sum, value, i) => (flip(i) ? sum - value : sum + value), 0)) >= observed;
  let hits = 0;
  if (ways <= maxSplits) {
    for (let signs = 0; signs < ways; signs++) if (isFar((i) => ((signs >> i) & 1) === 1)) hits++;
    return { p: hits / ways, smallest, splits: ways, seed: null };
  }
  const random = seeded(resampleSeed);
  for (let draw = 0; draw < resamples; draw++) if (isFar(() => random() < 0.5)) hits++;
  return drawn(hits, smallest);
}

/**
 * Two-sided exact test of two shares, k of n each: the tables with the same sums that are at most as probable as this one. R. A. Fisher,
 * J. R. Stat. Soc. 85 (1922) 87–94.
 */
export function fisherTest(a: { k: number; n: number }, b: { k: number; n: number }): number {
  const [n, k] = [a.n + b.n, a.k + b.k];
  const chance = (inA: number) => Math.exp(lnChoose(a.n, inA) + lnChoose(b.n, k - inA) - lnChoose(n, k));
  // Chances that are equal differ in their last bits.
  const observed = chance(a.k) * (1 + 1e-7);
  let p = 0;
  for (let inA = Math.max(0, k - b.n); inA <= Math.min(a.n, k); inA++) {
    const each = chance(inA);
    if (each <= observed) p += each;
  }
  return Math.min(1, p);
}

/** p values of one family, corrected for their number, in their order: S. Holm, Scand. J. Stat. 6 (1979) 65–70. */
export function holm(ps: number[]): number[] {
  const order = ps.map((_, i) => i).sort((a, b) => (ps[a] as number) - (ps[b] as number));
  const corrected: number[] = [];
  let least = 0;
  order.forEach((at, rank) => {
    least = Math.max(least, Math.min(1, (ps[at] as number) * (ps.length - rank)));
    corrected[at] = least;
  });
  return corrected;
}

/** What draws tell: no p below 1 / (draws + 1). */
const drawn = (hits: number, smallest: number): Exact => ({
  p: (hits + 1) / (resamples + 1),
  smallest: Math.max(smallest, 1 / (resamples + 1)),
  splits: resamples,
  seed: resampleSeed,
});

const sumOf = (values: number[]): number => values.reduce((sum, value) => sum + value, 0);

/** The sum of each choice of `k` of the values. */
function forEachSum(values: number[], k: number, visit: (sum: number) => void, from = 0, sum = 0): void {
  if (k === 0) visit(sum);
  else
    for (let i = from; i <= values.length - k; i++)
      forEachSum(values, k - 1, visit, i + 1, sum + (values[i] as number));
}

/** Random numbers from 0 to 1, the same on every machine: mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
