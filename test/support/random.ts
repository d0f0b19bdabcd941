import { seeded } from "../../src/stats/hypothesis-tests.ts";

/** Random numbers from 0 to 1 that a seed repeats. */
export const randomOf = (seed: number): (() => number) => seeded(seed);

/** A normal number made of two of those: G. E. P. Box and M. E. Muller, Ann. Math. Stat. 29 (1958) 610–611. */
export const normal = (random: () => number, mean: number, sd: number): number =>
  mean + sd * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
