// What one arm of an experiment changes, compared with the base, before its tests are corrected for their number. Pure functions.
import { mean } from "../stats/estimates.ts";
import { type Share, type ShareStratum, shareDifference, stratifiedFisherTest } from "../stats/proportions.ts";
import { type BlockTest, testBlocks } from "../stats/randomized-blocks.ts";
import type { LabeledRun } from "./triggering.ts";

/**
 * One run of an arm. `block`: the repeat of its prompt, in which each arm runs once, in random order. `score`: 0 to 100. `excluded`: why the run
 * says nothing about its arm; "contaminated": it met the treatment of another arm. `used`: whether it used the treatment of its arm; null: unknown.
 */
export type ArmRun = LabeledRun & {
  block: number;
  score: number | null;
  success: boolean | null;
  costUsd: number | null;
  seconds: number | null;
  used: boolean | null;
};

/** A difference in points with its 95 % interval, over `n` pairs of runs. */
export type Effect = { delta: number; low: number | null; high: number | null; n: number };

/**
 * A change of the mean score in points. `p`: two-sided; null: the change is exact, or there is no test. `adjustedP`: see `ArmContrast` and
 * `PromptContrast`. `basis`: what was exchanged at random. With "blocks", the result holds for these prompts; otherwise it holds for prompts like
 * these.
 */
type ScoreChange = Effect & { p: number | null; adjustedP: number | null; basis: BlockTest["basis"] | null };

/** `n` of `of` runs. */
export type RunCount = { n: number; of: number };

/**
 * `base`, `arm`: how many of the judged runs reached the goal. `difference`: the mean over the prompts of the difference in success rate, from -1 to
 * 1.
 */
type SuccessChange = {
  base: RunCount;
  arm: RunCount;
  difference: number;
  low: number | null;
  high: number | null;
  p: number | null;
  adjustedP: number | null;
};

/** How many times the value of the base: the ratio of geometric means with its 95 % interval, over `n` pairs of runs. */
export type RatioChange = { ratio: number; low: number | null; high: number | null; p: number | null; n: number };

/** What an arm changes. null: the runs of both sides don't tell. `exact`: runs of the agent don't differ, so neither tests nor intervals apply. */
export type Contrast = {
  score: ScoreChange | null;
  success: SuccessChange | null;
  cost: RatioChange | null;
  seconds: RatioChange | null;
  exact: boolean;
};

/** The runs of the base and of an arm. */
export type Sides = { base: ArmRun[]; arm: ArmRun[] };

/** `testLevel`: the level of one test, if all tests of the experiment share 5 % equally. `exact`: runs of the agent don't differ. */
export type TestOptions = { testLevel: number; seed: number; exact: boolean };

/** A test. `adjustedP`: null before its correction. `smallest`: the smallest p that this many runs can give. */
export type Tested = { p: number | null; adjustedP: number | null; smallest: number };

/** A contrast before its correction. `differences`: the differences of the scores, by prompt and block. */
export type TestedContrast = {
  score: (ScoreChange & Tested) | null;
  success: (SuccessChange & Tested) | null;
  cost: RatioChange | null;
  seconds: RatioChange | null;
  differences: number[][];
};

/** The contrast of two arms before its correction, by their runs that are not excluded. */
export function contrastOf(sides: Sides, options: TestOptions): TestedContrast {
  const valid = validOf(sides);
  const differences = differencesOf(valid, ({ score }) => score);
  return {
    score: scoreChangeOf(differences, options),
    success: successChangeOf(strataOf(valid), options),
    cost: ratioOf(valid, ({ costUsd }) => costUsd, options),
    seconds: ratioOf(valid, ({ seconds }) => seconds, options),
    differences,
  };
}

/** Whether a run counts. */
export const isValid = ({ excluded }: ArmRun): boolean => excluded === null;

/** The runs of both sides that count. */
export const validOf = ({ base, arm }: Sides): Sides => ({ base: base.filter(isValid), arm: arm.filter(isValid) });

/** The differences of the blocks in which both sides have a value, by prompt. Prompts without such a block are left out. */
export function differencesOf({ base, arm }: Sides, read: (run: ArmRun) => number | null): number[][] {
  const keyOf = ({ promptId, block }: ArmRun) => `${block} ${promptId}`;
  const values = new Map(base.map((run) => [keyOf(run), read(run)]));
  const pairs = arm.flatMap((run) => {
    const [before, after] = [values.get(keyOf(run)) ?? null, read(run)];
    return before === null || after === null ? [] : [{ promptId: run.promptId, difference: after - before }];
  });
  return [...Map.groupBy(pairs, ({ promptId }) => promptId).values()].map((pairsOfPrompt) =>
    pairsOfPrompt.map(({ difference }) => difference),
  );
}

function scoreChangeOf(differences: number[][], options: TestOptions): TestedContrast["score"] {
  if (differences.length === 0) return null;
  if (options.exact) {
    const delta = mean(differences.map(mean));
    // Equal repeats of a prompt are one pair.
    const n = differences.length;
    return { delta, low: delta, high: delta, n, p: null, adjustedP: null, basis: null, smallest: 1 };
  }
  const { delta, p, smallest, basis } = testBlocks(differences, options.testLevel, options.seed);
  const n = differences.flat().length;
  return { delta: delta.value, low: delta.low, high: delta.high, n, p, adjustedP: null, basis, smallest };
}

/** The judged runs of both sides, by prompt. Prompts without one on a side are left out. */
export function strataOf({ base, arm }: Sides): ShareStratum[] {
  const armByPrompt = Map.groupBy(arm, ({ promptId }) => promptId);
  return [...Map.groupBy(base, ({ promptId }) => promptId)]
    .map(([promptId, runs]) => ({ a: shareOf(runs), b: shareOf(armByPrompt.get(promptId) ?? []) }))
    .filter(({ a, b }) => a.n > 0 && b.n > 0);
}

function successChangeOf(judged: ShareStratum[], { exact }: TestOptions): TestedContrast["success"] {
  const strata = exact ? judged.map(({ a, b }) => ({ a: asOneRun(a), b: asOneRun(b) })) : judged;
  if (strata.length === 0) return null;
  const countOf = (side: "a" | "b"): RunCount => ({
    n: strata.reduce((sum, each) => sum + each[side].k, 0),
    of: strata.reduce((sum, each) => sum + each[side].n, 0),
  });
  const counts = { base: countOf("a"), arm: countOf("b") };
  const { value, low, high } = shareDifference(strata);
  if (exact) return { ...counts, difference: value, low: value, high: value, p: null, adjustedP: null, smallest: 1 };
  const { p, smallest } = stratifiedFisherTest(strata);
  return { ...counts, difference: value, low, high, p, adjustedP: null, smallest };
}

/** How many of the judged runs reached the goal. */
export const shareOf = (runs: ArmRun[]): Share => ({
  k: runs.filter(({ success }) => success === true).length,
  n: runs.filter(({ success }) => success !== null).length,
});

/** Equal repeats of a deterministic agent are one run. */
const asOneRun = ({ k, n }: Share): Share => ({ k: k / n, n: 1 });

/** The ratio of a positive number between the sides, computed from the differences of its logarithms. */
function ratioOf(
  sides: Sides,
  read: (run: ArmRun) => number | null,
  { testLevel, seed, exact }: TestOptions,
): RatioChange | null {
  const logOf = (run: ArmRun) => {
    const value = read(run);
    return value !== null && value > 0 ? Math.log(value) : null;
  };
  const differences = differencesOf(sides, logOf);
  if (differences.length === 0) return null;
  const n = differences.flat().length;
  // Times differ even if scores never do. But with a single repeat there is no test.
  if (exact) return { ratio: Math.exp(mean(differences.map(mean))), low: null, high: null, p: null, n };
  const { delta, p } = testBlocks(differences, testLevel, seed);
  const exp = (bound: number | null) => (bound === null ? null : Math.exp(bound));
  return { ratio: Math.exp(delta.value), low: exp(delta.low), high: exp(delta.high), p, n };
}

/** A contrast without the fields that only its correction needs. */
export function toContrast({ score, success, cost, seconds }: TestedContrast, { exact }: TestOptions): Contrast {
  return { score: score && withoutSmallest(score), success: success && withoutSmallest(success), cost, seconds, exact };
}

const withoutSmallest = <T extends Tested>({ smallest: _, ...change }: T): Omit<T, "smallest"> => change;
