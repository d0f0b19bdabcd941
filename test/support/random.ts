import { seeded } from "../../src/stats/random.ts";

/** Reproducible random numbers from 0 to 1. */
export const randomOf = (seed: number): (() => number) => seeded(seed);

/** A normally distributed number, from two of those random numbers: G. E. P. Box and M. E. Muller, Ann. Math. Stat. 29 (1958) 610–611. */
export const normal = (random: () => number, mean: number, sd: number): number =>
  mean + sd * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
