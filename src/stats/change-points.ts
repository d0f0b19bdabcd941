import { cached } from "./distributions.ts";
import { mean } from "./estimates.ts";
import { seeded, shuffled } from "./random.ts";

/**
 * A position at which the level of a series changed: between `index` - 1 and `index`. `p`: how often a series without a change shows a change of this
 * size anywhere. `before`, `after`: the values between this change and its neighbors. `from`, `to`: the means of these values.
 */
export type ChangePoint = { index: number; p: number; from: number; to: number; before: number[]; after: number[] };

/** Minimum number of values in the windows on either side of a change. */
const minWindow = 5;
const alpha = 0.05;
const shuffles = 299;
const maxChanges = 10;

/** How many series are simulated for one length and autocorrelation. */
const simulations = 200;
const correlations = Array.from({ length: 10 }, (_, i) => i / 10);
/** Lengths of simulated series. A series is treated like the next shorter length, for which slightly more autocorrelation is assumed. */
const simulatedLengths = [10, 12, 14, 17, 20, 25, 30, 40, 50, 70, 100, 140, 200];
/** The assumed autocorrelation is the largest with which this share of simulated series have at most the observed one. */
const assumedQuantile = 0.2;

/**
 * The positions at which the level of a series changed, in order.
 * 1. It finds the best split of the series. This is the split into two windows of at least 5 values each whose means differ most. The difference is
 *    weighted by the sizes of the windows and measured in standard deviations of what is left.
 * 2. It compares this split with the best splits of 299 series without a change. This corrects for testing every position: at most 5 % of series
 *    without a change show one. The series are a seeded bootstrap that keeps the autocorrelation of the values (P. Bühlmann, Bernoulli 3 (1997)
 *    123–148), because neighboring values that resemble each other drift without any change.
 * 3. It tests each part in the same way (binary segmentation, as in Matteson & James, JASA 109 (2014) 334–345, here on means).
 */
export function changePoints(values: number[]): ChangePoint[] {
  const random = seeded(1);
  const changes: { index: number; p: number }[] = [];
  const parts: [from: number, to: number][] = [[0, values.length]];
  for (let part = parts.shift(); part && changes.length < maxChanges; part = parts.shift()) {
    const [from, to] = part;
    const window = values.slice(from, to);
    const split = bestSplit(window);
    if (!split) continue;
    const p = chanceOf(window, split, random);
    if (p >= alpha) continue;
    const index = from + split.index;
    changes.push({ index, p });
    parts.push([from, index], [index, to]);
  }
  const ordered = changes.sort((a, b) => a.index - b.index);
  return ordered.map(({ index, p }, i) => {
    const before = values.slice(ordered[i - 1]?.index ?? 0, index);
    const after = values.slice(index, ordered[i + 1]?.index ?? values.length);
    return { index, p, from: mean(before), to: mean(after), before, after };
  });
}

type Split = { index: number; size: number };

/** How often a series without a change, of the same length and autocorrelation, has a split of this size. */
function chanceOf(values: number[], split: Split, random: () => number): number {
  const rest = withoutSteps(values);
  const isExact = rest.every((value) => Math.abs(value) < 1e-9);
  const correlation = isExact ? 0 : assumedCorrelation(autocorrelationOf(rest), values.length);
  // Without any noise there is no standard deviation, so the values themselves are shuffled.
  const innovations = isExact ? values : innovationsOf(rest, correlation);
  const sizeOf = (series: number[], { size }: Split) =>
    isExact ? size : size / spreadOf(innovationsOf(withoutSteps(series), correlation));
  const observed = sizeOf(values, split) - 1e-9;
  let hits = 0;
  for (let i = 0; i < shuffles; i++) {
    const series = accumulate(shuffled(innovations, random), correlation);
    const best = bestSplit(series);
    if (best && sizeOf(series, best) >= observed) hits++;
  }
  return (hits + 1) / (shuffles + 1);
}

/**
 * The values without steps: the mean of its part is subtracted from each value. A series may have several changes, so it is split at the best split
 * and again at the best split of each side.
 */
function withoutSteps(values: number[], depth = 2): number[] {
  const index = depth === 0 ? undefined : bestSplit(values)?.index;
  if (index === undefined) {
    const center = mean(values);
    return values.map((value) => value - center);
  }
  return [values.slice(0, index), values.slice(index)].flatMap((side) => withoutSteps(side, depth - 1));
}

/** The correlation of each value with the previous one. */
function autocorrelationOf(values: number[]): number {
  const products = values.slice(1).reduce((sum, value, i) => sum + value * values[i]!, 0);
  return products / values.reduce((sum, value) => sum + value * value, 0);
}

/** In an autoregression of order 1, what each value adds to its share of the previous value. */
const innovationsOf = (values: number[], correlation: number): number[] =>
  values.map((value, i) => (i === 0 ? value * Math.sqrt(1 - correlation ** 2) : value - correlation * values[i - 1]!));

/** The series with these innovations. */
function accumulate(innovations: number[], correlation: number): number[] {
  let last = 0;
  return innovations.map((value, i) => {
    last = i === 0 ? value / Math.sqrt(1 - correlation ** 2) : correlation * last + value;
    return last;
  });
}

/** The standard deviation around zero. It is never quite zero. */
const spreadOf = (values: number[]): number =>
  Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length) + 1e-9;

/**
 * The autocorrelation to assume for a series if the series without its steps has the observed one. Removing steps hides most of the autocorrelation
 * of a short series. So the observed one is compared with simulated series of the same length. The largest autocorrelation is assumed with which a
 * fifth of them show no more than the observed one.
 */
function assumedCorrelation(observed: number, length: number): number {
  const quantiles = simulatedCorrelations(simulatedLengths.findLast((each) => each <= length) ?? length);
  const above = quantiles.findIndex((quantile) => observed <= quantile);
  if (above === 0) return 0;
  if (above < 0) return correlations.at(-1)!;
  const [from, to] = [correlations[above - 1]!, correlations[above]!];
  const [low, high] = [quantiles[above - 1]!, quantiles[above]!];
  return from + (to - from) * ((observed - low) / (high - low));
}

/** For each true autocorrelation, the observed one that a fifth of simulated series of this length don't exceed. The values never fall. */
const simulatedCorrelations = cached((length) => {
  const random = seeded(length);
  let last = Number.NEGATIVE_INFINITY;
  return correlations.map((correlation) => {
    const observed = Array.from({ length: simulations }, () => {
      const innovations = Array.from({ length }, () => standardNormal(random));
      const series = accumulate(innovations, correlation);
      return autocorrelationOf(withoutSteps(series));
    });
    last = Math.max(last, observed.sort((a, b) => a - b)[Math.floor(assumedQuantile * simulations)]!);
    return last;
  });
});

/** A normal random number, by the transform of G. E. P. Box and M. E. Muller, Annals of Mathematical Statistics 29 (1958) 610. */
const standardNormal = (random: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

function bestSplit(values: number[]): Split | null {
  const n = values.length;
  const center = mean(values);
  let best: Split | null = null;
  let sum = 0;
  for (let index = 1; index <= n - minWindow; index++) {
    sum += values[index - 1]! - center;
    // After subtracting the mean, the sums of both sides are opposite: √(k(n−k)/n)·|m₁ − m₂| is |sum|·√(n / (k(n−k))).
    const size = Math.abs(sum) * Math.sqrt(n / (index * (n - index)));
    if (index >= minWindow && size > (best?.size ?? 1e-9)) best = { index, size };
  }
  return best;
}
