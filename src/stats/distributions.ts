// The distributions behind the tests and intervals, accurate to about 1e-12. Pure functions, each with its source.

/** A function of a number that computes each result once. */
export function cached<T>(compute: (key: number) => T): (key: number) => T {
  const values = new Map<number, T>();
  return (key) => {
    if (!values.has(key)) values.set(key, compute(key));
    return values.get(key) as T;
  };
}

/** The `p` quantile (0.5 to 1) of Student's t distribution, by bisection. */
export function tQuantile(p: number, degreesOfFreedom: number): number {
  // The result is cached, because the same few degrees of freedom are used again and again.
  const key = Number.isInteger(degreesOfFreedom) && degreesOfFreedom < 1000 ? `${p} ${degreesOfFreedom}` : null;
  const cachedQuantile = key === null ? undefined : quantiles.get(key);
  if (cachedQuantile !== undefined) return cachedQuantile;
  // Nearly all quantiles are below 8. With 8 as the upper bound, bisection takes fewer steps.
  const upper = tTail(8, degreesOfFreedom) / 2 < 1 - p ? 8 : 1e6;
  const quantile = solve((t) => 1 - tTail(t, degreesOfFreedom) / 2 - p, upper);
  if (key !== null) quantiles.set(key, quantile);
  return quantile;
}

const quantiles = new Map<string, number>();

/** P(|T| > t) of Student's t: I(ν / (ν + t²); ν/2, ½), Abramowitz & Stegun 26.7.1. */
export const tTail = (t: number, degreesOfFreedom: number): number =>
  incompleteBeta(degreesOfFreedom / (degreesOfFreedom + t * t), degreesOfFreedom / 2, 0.5);

/**
 * P(|T| > t) of the noncentral t. Its square is a noncentral F with 1 and ν degrees of freedom: a mixture of betas with Poisson weights of mean δ²/2
 * (Abramowitz & Stegun 26.6.20).
 */
export function noncentralTail(t: number, degreesOfFreedom: number, noncentrality: number): number {
  const x = (t * t) / (degreesOfFreedom + t * t);
  const half = (noncentrality * noncentrality) / 2;
  let below = 0;
  let totalWeight = 0;
  for (let j = 0; j < 10_000; j++) {
    // Without noncentrality, only the first weight isn't 0.
    const weight = Math.exp(j * Math.log(half || Number.MIN_VALUE) - half - lnGamma(j + 1));
    below += weight * incompleteBeta(x, j + 0.5, degreesOfFreedom / 2);
    totalWeight += weight;
    if (j > half && 1 - totalWeight < 1e-13) break;
  }
  return Math.max(0, 1 - below);
}

/** The root of an increasing function between 0 and `upper`, by bisection to the last bits; `upper` if there is none below it. */
export function solve(rising: (x: number) => number, upper: number): number {
  let [low, high] = [0, upper];
  for (let i = 0; i < 200 && high - low > 1e-15 * high; i++) {
    const middle = (low + high) / 2;
    if (rising(middle) < 0) low = middle;
    else high = middle;
  }
  return high;
}

/** The logarithm of the number of ways to choose k of n. */
export const lnChoose = (n: number, k: number): number => lnGamma(n + 1) - lnGamma(k + 1) - lnGamma(n - k + 1);

/** Regularized incomplete beta function, by the continued fraction of Abramowitz & Stegun 26.5.8 (Lentz's method). */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const tiny = 1e-300;
  let [c, d] = [1, 1 - ((a + b) * x) / (a + 1)];
  d = 1 / (Math.abs(d) < tiny ? tiny : d);
  let fraction = d;
  for (let m = 1; m <= 1000; m++) {
    for (let half = 0; half < 2; half++) {
      const term =
        half === 0
          ? (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m))
          : (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 + term * d;
      c = 1 + term / c;
      d = 1 / (Math.abs(d) < tiny ? tiny : d);
      c = Math.abs(c) < tiny ? tiny : c;
      fraction *= d * c;
    }
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return (Math.exp(a * Math.log(x) + b * Math.log1p(-x) + lnGamma(a + b) - lnGamma(a) - lnGamma(b)) * fraction) / a;
}

const lanczosCoefficients = [
  676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
  -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
];

/** ln Γ(x) for x > 0, by Lanczos' approximation (SIAM J. Numer. Anal. B 1 (1964) 86–96; coefficients g = 7, n = 9). */
function lnGamma(x: number): number {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - lnGamma(1 - x);
  const base = x + 6.5;
  let series = 0.99999999999980993;
  // A loop, because `reduce` took most of the time of every test.
  for (let i = 0; i < lanczosCoefficients.length; i++) series += lanczosCoefficients[i]! / (x + i);
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(base) - base + Math.log(series);
}
