import { mean } from "./estimates.ts";
import { seeded } from "./hypothesis-tests.ts";

/**
 * A position at which the level of a series changed: between `index` - 1 and `index`. `p`: how often a shuffled series
 * shows a change of this size anywhere.
 */
export type ChangePoint = { index: number; p: number; from: number; to: number; before: number[]; after: number[] };

/** Minimum number of values in the windows on either side of a change. */
const minWindow = 5;
const alpha = 0.05;
const shuffles = 299;
const maxChanges = 10;

/**
 * The positions at which the level of a series changed, in order. The split into two windows (at least 5 values each) whose means differ
 * most, weighted by their sizes, is compared with the best splits of 299 shuffles with a fixed seed, which corrects for testing every
 * position: at most 5 % of series without a change show one. Then each part is tested separately (binary segmentation; Matteson & James,
 * JASA 109 (2014) 334–345, describe the test, here on means).
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
    let hits = 0;
    for (let i = 0; i < shuffles; i++) if ((bestSplit(shuffle(window, random))?.size ?? 0) >= split.size - 1e-9) hits++;
    const p = (hits + 1) / (shuffles + 1);
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

function bestSplit(values: number[]): { index: number; size: number } | null {
  const n = values.length;
  const center = mean(values);
  let best: { index: number; size: number } | null = null;
  let sum = 0;
  for (let index = 1; index <= n - minWindow; index++) {
    sum += (values[index - 1] as number) - center;
    // After subtracting the mean, the sums of both sides are opposite: √(k(n−k)/n)·|m₁ − m₂| is |sum|·√(n / (k(n−k))).
    const size = Math.abs(sum) * Math.sqrt(n / (index * (n - index)));
    if (index >= minWindow && size > (best?.size ?? 1e-9)) best = { index, size };
  }
  return best;
}

function shuffle(values: number[], random: () => number): number[] {
  const shuffled = [...values];
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [shuffled[i], shuffled[j]] = [shuffled[j] as number, shuffled[i] as number];
  }
  return shuffled;
}
