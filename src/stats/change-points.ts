import { mean } from "./estimates.ts";
import { seeded } from "./hypothesis-tests.ts";

/** A place in a series at which its level changed: between `index` - 1 and `index`. `p`: how often a shuffled series shows as much anywhere. */
export type ChangePoint = { index: number; p: number; from: number; to: number; before: number[]; after: number[] };

/** Values that a window on either side of a change needs. */
const leastWindow = 5;
const alpha = 0.05;
const shuffles = 299;
const maxChanges = 10;

/**
 * Where the level of a series changed, in order. The split into two windows (5 values or more each) whose means differ most, weighted by their
 * sizes, is held against the best splits of 299 shuffles with a fixed seed, so that looking everywhere costs nothing: a series without a change
 * shows one in 5 % at most. Then each part by itself (binary segmentation; the test is the one of Matteson & James, JASA 109 (2014) 334–345, on means).
 */
export function changePoints(values: number[]): ChangePoint[] {
  const random = seeded(1);
  const found: { index: number; p: number }[] = [];
  const parts: [from: number, to: number][] = [[0, values.length]];
  for (let part = parts.shift(); part && found.length < maxChanges; part = parts.shift()) {
    const [from, to] = part;
    const own = values.slice(from, to);
    const best = bestSplit(own);
    if (!best) continue;
    let hits = 0;
    for (let i = 0; i < shuffles; i++) if ((bestSplit(shuffle(own, random))?.size ?? 0) >= best.size - 1e-9) hits++;
    const p = (hits + 1) / (shuffles + 1);
    if (p >= alpha) continue;
    const index = from + best.at;
    found.push({ index, p });
    parts.push([from, index], [index, to]);
  }
  const ordered = found.sort((a, b) => a.index - b.index);
  return ordered.map(({ index, p }, i) => {
    const before = values.slice(ordered[i - 1]?.index ?? 0, index);
    const after = values.slice(index, ordered[i + 1]?.index ?? values.length);
    return { index, p, from: mean(before), to: mean(after), before, after };
  });
}

function bestSplit(values: number[]): { at: number; size: number } | null {
  const n = values.length;
  const centre = mean(values);
  let best: { at: number; size: number } | null = null;
  let sum = 0;
  for (let at = 1; at <= n - leastWindow; at++) {
    sum += (values[at - 1] as number) - centre;
    // With the mean taken off, the sums of both sides are opposite: √(k(n−k)/n)·|m₁ − m₂| is |sum|·√(n / (k(n−k))).
    const size = Math.abs(sum) * Math.sqrt(n / (at * (n - at)));
    if (at >= leastWindow && size > (best?.size ?? 1e-9)) best = { at, size };
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
