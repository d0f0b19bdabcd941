import type { Curve } from "../grade.ts";
import { clamp } from "../methodology.ts";

export const linear = (best: number, worst: number, floor = 0): Curve => ({ best, worst, floor, scale: "linear" });
export const log = (best: number, worst: number, floor = 0): Curve => ({ best, worst, floor, scale: "log" });

/** 100 if all of something is in order, 0 if none. */
export const allOrNone = linear(1, 0);

/** What a value is worth on a curve, 0 to 100. The ends of a logarithmic curve are above 0. */
export function scoreOn({ best, worst, floor, scale }: Curve, value: number): number {
  const lost =
    scale === "log"
      ? Math.log2(Math.max(value, best) / best) / Math.log2(worst / best)
      : (value - best) / (worst - best);
  return 100 - (100 - floor) * clamp(lost, 0, 1);
}
