// Statistics of a few repeats. Pure functions; where each comes from stands with it.

/** A value with the interval that holds it with 95 % confidence; null where one run cannot tell. */
export type Estimate = { value: number; low: number | null; high: number | null };

export const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The middle value, or the mean of the two in the middle; null of nothing. */
export function median(values: number[]): number | null {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length / 2;
  if (sorted.length === 0) return null;
  return sorted.length % 2 ? (sorted[Math.floor(half)] as number) : mean([...sorted.slice(half - 1, half + 1)]);
}

/** Unbiased sample variance (n − 1). */
const variance = (values: number[]): number => {
  const centre = mean(values);
  return values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (values.length - 1);
};

/** The mean of scores with Student's t 95 % interval, clipped to 0..100; without an interval below two runs. */
export function meanInterval(scores: number[]): Estimate {
  const value = mean(scores);
  if (scores.length < 2) return { value, low: null, high: null };
  const half = tQuantile(0.975, scores.length - 1) * Math.sqrt(variance(scores) / scores.length);
  return { value, low: Math.max(0, value - half), high: Math.min(100, value + half) };
}

/** A share k of n with Wilson's 95 % score interval: E. B. Wilson, JASA 22 (1927) 209–212. */
export function wilson(k: number, n: number): Estimate {
  const z = 1.959963984540054;
  const share = k / n;
  const centre = (share + z ** 2 / (2 * n)) / (1 + z ** 2 / n);
  const half = (z / (1 + z ** 2 / n)) * Math.sqrt((share * (1 - share)) / n + z ** 2 / (4 * n ** 2));
  return { value: share, low: Math.max(0, centre - half), high: Math.min(1, centre + half) };
}

/** How much larger the mean of `b` is than that of `a`, with Welch's 95 % interval: B. L. Welch, Biometrika 34 (1947) 28–35. Both need two values. */
export function welch(a: number[], b: number[]): Estimate {
  const value = mean(b) - mean(a);
  const [va, vb] = [variance(a) / a.length, variance(b) / b.length];
  // Without any spread the interval has no width, and no degrees of freedom are needed.
  if (va + vb === 0) return { value, low: value, high: value };
  const freedom = (va + vb) ** 2 / (va ** 2 / (a.length - 1) + vb ** 2 / (b.length - 1));
  const half = tQuantile(0.975, freedom) * Math.sqrt(va + vb);
  return { value, low: value - half, high: value + half };
}

/** `smallest`: the least p that so many values could show, whatever they are. `exact`: every split was looked at. */
export type Permutation = { p: number; smallest: number; exact: boolean; splits: number };

const maxSplits = 50_000;
const resamples = 20_000;

/**
 * Two-sided permutation test of the difference of two means: the share of all ways to split the values into two sides that differ at least as
 * much. E. J. G. Pitman, Suppl. JRSS 4 (1937) 119–130. Above 50,000 splits 20,000 drawn with a fixed seed; p is then (hits + 1) / (draws + 1).
 */
export function permutationTest(a: number[], b: number[]): Permutation {
  const all = [...a, ...b];
  const total = all.reduce((sum, value) => sum + value, 0);
  const difference = (sumA: number) => Math.abs(sumA / a.length - (total - sumA) / b.length);
  // Sums in another order differ in their last bits.
  const observed = difference(a.reduce((sum, value) => sum + value, 0)) - 1e-9;
  const ways = choose(all.length, a.length);
  // Of sides of one size each split has a mirror image that differs as much.
  const smallest = (a.length === b.length ? 2 : 1) / ways;
  if (ways <= maxSplits) {
    let hits = 0;
    forEachSum(all, a.length, (sum) => {
      if (difference(sum) >= observed) hits++;
    });
    return { p: hits / ways, smallest, exact: true, splits: ways };
  }
  const random = seeded(1);
  let hits = 0;
  for (let draw = 0; draw < resamples; draw++) {
    let sum = 0;
    // The first places of a Fisher–Yates shuffle.
    for (let i = 0; i < a.length; i++) {
      const j = i + Math.floor(random() * (all.length - i));
      [all[i], all[j]] = [all[j] as number, all[i] as number];
      sum += all[i] as number;
    }
    if (difference(sum) >= observed) hits++;
  }
  return { p: (hits + 1) / (resamples + 1), smallest, exact: false, splits: resamples };
}

function choose(n: number, k: number): number {
  let ways = 1;
  for (let i = 1; i <= k; i++) ways = (ways * (n - k + i)) / i;
  return Math.round(ways);
}

/** The sum of each choice of `k` of the values. */
function forEachSum(values: number[], k: number, visit: (sum: number) => void, from = 0, sum = 0): void {
  if (k === 0) visit(sum);
  else
    for (let i = from; i <= values.length - k; i++)
      forEachSum(values, k - 1, visit, i + 1, sum + (values[i] as number));
}

/** mulberry32: the same numbers on every machine. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** The value below which Student's t with so many degrees of freedom lies with probability `p` (0.5 to 1), by bisection. */
export function tQuantile(p: number, freedom: number): number {
  let [low, high] = [0, 1000];
  while (high - low > 1e-10 * high) {
    const t = (low + high) / 2;
    // P(T > t) = I(ν / (ν + t²); ν/2, ½) / 2: Abramowitz & Stegun 26.7.1.
    const below = 1 - incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2;
    if (below < p) low = t;
    else high = t;
  }
  return high;
}

/** Regularised incomplete beta function, by the continued fraction of Abramowitz & Stegun 26.5.8 (Lentz's method). */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const tiny = 1e-300;
  let [c, d] = [1, 1 - ((a + b) * x) / (a + 1)];
  d = 1 / (Math.abs(d) < tiny ? tiny : d);
  let fraction = d;
  for (let m = 1; m <= 300; m++) {
    for (const term of [
      (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
      (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
    ]) {
      d = 1 + term * d;
      c = 1 + term / c;
      d = 1 / (Math.abs(d) < tiny ? tiny : d);
      c = Math.abs(c) < tiny ? tiny : c;
      fraction *= d * c;
    }
    if (Math.abs(d * c - 1) < 1e-14) break;
  }
  return (Math.exp(a * Math.log(x) + b * Math.log1p(-x) + lnGamma(a + b) - lnGamma(a) - lnGamma(b)) * fraction) / a;
}

/** ln Γ(x) for x > 0, by Lanczos' approximation (SIAM J. Numer. Anal. B 1 (1964) 86–96; coefficients g = 7, n = 9). */
function lnGamma(x: number): number {
  const coefficients = [
    676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
    -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
  ];
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - lnGamma(1 - x);
  const base = x + 6.5;
  const series = coefficients.reduce((sum, value, i) => sum + value / (x + i), 0.99999999999980993);
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(base) - base + Math.log(series);
}
