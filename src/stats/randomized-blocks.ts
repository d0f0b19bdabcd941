// Tests of designs in which the order of the sides is drawn within blocks. Pure functions, each with its source.
import { tQuantile } from "./distributions.ts";
import { type Estimate, mean, pairedInterval, pooledVariance, variance } from "./estimates.ts";
import { type PermutationResult, pairedTest, signFlipTest } from "./hypothesis-tests.ts";
import { unitsToShow } from "./power.ts";

/** With at least this many prompts, they count as a sample of all prompts. Fewer prompts can't reach 5 % in a sign-flip test. */
const minPrompts = 6;

/**
 * Whether the mean difference of blocks is 0. `basis`: what is exchanged at random. With "blocks", the result holds for these prompts. With "prompts"
 * and with "blocks and prompts", it holds for prompts like these.
 */
export type BlockTest = PermutationResult & { basis: "blocks" | "prompts" | "blocks and prompts"; delta: Estimate };

/**
 * Two-sided test of the mean difference of two sides, from the differences of each prompt's blocks. Each prompt counts equally, and has at least one
 * block. In each block, the side that came first was drawn at random. So chance could have exchanged the sides of a block, which flips the sign of
 * its difference: R. A. Fisher, The Design of Experiments (1935) §21.
 * - With fewer than six prompts, the signs of blocks are flipped. The 95 % interval is Student's, of the blocks within prompts.
 * - From six prompts on, the signs of the prompts' mean differences are flipped. The 95 % interval is Student's, of the prompts.
 * - If these are still too few for a p below `level`, p is the larger of two p values: one of flipping the signs of blocks, and one of Student's t
 *   test of the prompts.
 */
export function testBlocks(prompts: number[][], level: number, seed?: number): BlockTest {
  const weighted = prompts.flatMap((blocks) => blocks.map((value) => value / (prompts.length * blocks.length)));
  if (prompts.length < minPrompts)
    return { ...signFlipTest(weighted, seed), basis: "blocks", delta: blockInterval(prompts) };
  const means = prompts.map(mean);
  const delta = pairedInterval(means);
  const flips = signFlipTest(means, seed);
  if (flips.smallest < level) return { ...flips, basis: "prompts", delta };
  const within = signFlipTest(weighted, seed);
  return { ...within, p: Math.max(within.p, pairedTest(means)), basis: "blocks and prompts", delta };
}

/**
 * The mean of the prompts' means with Student's 95 % interval, from the spread of the blocks within each prompt. The degrees of freedom follow B. L.
 * Welch, Biometrika 34 (1947) 28–35, equation 28. This stays close to 95 % with two blocks and with unequal spreads. If a prompt has a single block,
 * all prompts get the pooled variance. If every prompt has a single block, the spread of the prompts is used.
 */
export function blockInterval(prompts: number[][]): Estimate {
  const value = mean(prompts.map(mean));
  const pooledFreedom = prompts.reduce((sum, blocks) => sum + blocks.length - 1, 0);
  if (pooledFreedom === 0) return pairedInterval(prompts.flat());
  const pooled = prompts.some(({ length }) => length === 1) ? pooledVariance(prompts)! : null;
  const errors = prompts.map((blocks) => ({
    squared: (pooled ?? variance(blocks)) / blocks.length,
    weight: blocks.length + 1,
  }));
  const sum = errors.reduce((all, { squared }) => all + squared, 0);
  if (sum === 0) return { value, low: value, high: value };
  const welchFreedom = sum ** 2 / errors.reduce((all, { squared, weight }) => all + squared ** 2 / weight, 0) - 2;
  const degreesOfFreedom = pooled === null ? Math.max(1, Math.min(pooledFreedom, welchFreedom)) : pooledFreedom;
  const half = tQuantile(0.975, degreesOfFreedom) * (Math.sqrt(sum) / prompts.length);
  return { value, low: value - half, high: value + half };
}

/**
 * How many repeats per prompt the test at `level` needs to show this change in 4 of 5 cases. It is computed from the differences of the blocks so
 * far, with the noncentral t. The variance is the one within prompts and, from six prompts on, also the one between them. null: unknown, or more than
 * 1,000.
 */
export function repeatsToShow(change: number, differences: number[][], level: number): number | null {
  const prompts = differences.length;
  // With one block per prompt, the spread of the prompts is used, as in `blockInterval`.
  const within = pooledVariance(differences) ?? (prompts < minPrompts ? pooledVariance([differences.flat()]) : null);
  if (within === null) return null;
  if (prompts < minPrompts) {
    // With fewer blocks, no p is below the level.
    const from = Math.ceil((1 + Math.log2(1 / level)) / prompts);
    return unitsToShow(change, level, Math.max(2, from), (n) => ({
      error: Math.sqrt(within / (n * prompts)),
      degreesOfFreedom: prompts * (n - 1),
    }));
  }
  // The spread of the prompts' means, minus the part that the spread within prompts adds to it.
  const withinMeans = within * mean(differences.map((blocks) => 1 / blocks.length));
  const between = Math.max(0, pooledVariance([differences.map(mean)])! - withinMeans);
  return unitsToShow(change, level, 1, (n) => ({
    error: Math.sqrt((between + within / n) / prompts),
    degreesOfFreedom: prompts - 1,
  }));
}

/**
 * How many prompts, with as many repeats as now, the test at `level` needs to show this change in 4 of 5 cases. null: there are fewer than six
 * prompts so far, or more than 1,000 are needed.
 */
export function promptsToShow(change: number, differences: number[][], level: number): number | null {
  if (differences.length < minPrompts) return null;
  const spread = pooledVariance([differences.map(mean)])!;
  return unitsToShow(change, level, minPrompts, (n) => ({
    error: Math.sqrt(spread / n),
    degreesOfFreedom: n - 1,
  }));
}
