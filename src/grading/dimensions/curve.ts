import type { Curve } from "../grade.ts";
import { clamp } from "../methodology.ts";

/** A curve on which the score falls evenly from 100 at `best` to 0 at `worst`. */
export const linear = (best: number, worst: number): Curve => ({ best, worst, floor: 0, scale: "linear" });

/** A curve from 100 at `best` to `floor` at `worst` on which each doubling of the value costs the same. */
export const logarithmic = (best: number, worst: number, floor = 0): Curve => ({ best, worst, floor, scale: "log" });

/** 100 for all, 0 for none; the first failures cost the most. */
export const steepAtFirst: Curve = { best: 1, worst: 0, floor: 0, scale: "root" };

/** The score is the value in percent. */
export const proportional = linear(1, 0);

/** The score of a value on a curve, 0 to 100. The ends of a logarithmic curve must be above 0. */
export function scoreOn({ best, worst, floor, scale }: Curve, value: number): number {
  const lost =
    scale === "log"
      ? Math.log2(Math.max(value, best) / best) / Math.log2(worst / best)
      : (value - best) / (worst - best);
  const share = clamp(lost, 0, 1);
  return 100 - (100 - floor) * (scale === "root" ? Math.sqrt(share) : share);
}
