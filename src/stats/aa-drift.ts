// Whether an A/A test, which compares something with itself, got worse. Pure functions: blocks go in, what drifted comes out.
import { aaRate, type GateDesign, type NullBlock } from "./aa-rate.ts";
import { mean } from "./estimates.ts";
import { permutationTest } from "./hypothesis-tests.ts";
import { fisherTest } from "./proportions.ts";

/**
 * `rate`: the share of gates that find a change although there is none is above the level, or above the earlier share. `spread`: equal arms differ
 * more than earlier.
 */
export const driftKinds = ["rate", "spread"] as const;

/** The level of all tests together. */
const level = 0.05;

/**
 * What got worse with the newest blocks, compared with earlier ones; null: nothing did. Three tests share the level of 5 %:
 * - The exact binomial test compares the rate of false alarms with its level.
 * - Fisher's exact test compares this rate with the earlier one.
 * - A permutation test compares the absolute differences of the blocks. Only this test notices noise that affects both arms alike, because such noise
 *   leaves the rate at its level.
 */
export function driftOf(
  newest: NullBlock[],
  earlier: NullBlock[],
  design: GateDesign,
): (typeof driftKinds)[number] | null {
  const [now, before] = [aaRate(newest, design), aaRate(earlier, design)];
  if (now.excessP !== null && now.excessP < level / 3) return "rate";
  const [k, n] = [now.alarms, now.gates];
  const isHigher = n > 0 && before.gates > 0 && k / n > before.alarms / before.gates;
  if (isHigher && fisherTest({ k, n }, { k: before.alarms, n: before.gates }) < level / 3) return "rate";
  const distanceOf = ({ a, b }: NullBlock) => Math.abs(mean(b) - mean(a));
  const [wide, narrow] = [newest.map(distanceOf), earlier.map(distanceOf)];
  const isWider = wide.length > 0 && narrow.length > 0 && mean(wide) > mean(narrow);
  return isWider && permutationTest(wide, narrow).p < level / 3 ? "spread" : null;
}
