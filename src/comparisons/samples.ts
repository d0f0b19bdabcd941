// The values of both sides, paired by prompt and template arguments, and their tests.
import { sortDimensionNames } from "../config/weights.ts";
import { standardMethodology } from "../grading/methodology.ts";
import { type Estimate, mean, pairedInterval, stratifiedWelch } from "../stats/estimates.ts";
import {
  type PermutationResult,
  pairedTest,
  signFlipTest,
  stratifiedPermutationTest,
} from "../stats/hypothesis-tests.ts";
import { round, type SideRun } from "../stats/repeats.ts";

/** The runs of one prompt with the same template arguments, on both sides. */
export type Pair = { prompt: string; before: SideRun[]; after: SideRun[] };

/** The values of one number in a pair; both sides have at least one. */
export type Sample = { prompt: string; before: number[]; after: number[] };

/**
 * Whether the mean of samples changed. `design`: what was exchanged at random to get p. `withinP`: the p value of exchanging runs within each prompt.
 * It says nothing about whether the prompts agree. `before`, `after`: the means.
 */
export type MeanTest = PermutationResult & {
  design: "runs" | "runs and prompts" | "prompts";
  prompts: number;
  withinP: number;
  before: number;
  after: number;
  delta: Estimate;
};

/** Pairs the runs of both sides that have the same prompt and template arguments. Runs without a counterpart are left out. */
export function pairsOf(before: SideRun[], after: SideRun[]): Pair[] {
  const afterByKey = Map.groupBy(after, ({ pairKey }) => pairKey);
  return [...Map.groupBy(before, ({ pairKey }) => pairKey)].flatMap(([pairKey, runs]) => {
    const counterparts = afterByKey.get(pairKey);
    return counterparts ? [{ prompt: runs[0]?.prompt ?? pairKey, before: runs, after: counterparts }] : [];
  });
}

/** The runs without equal repeats of a deterministic agent. For a test, equal repeats are one observation. */
export function withoutEqualRepeats(runs: SideRun[]): SideRun[] {
  const resultOf = ({ pairKey, report, failureCause }: SideRun) =>
    [pairKey, failureCause, report?.outcome, report?.score].join(" ");
  const firstOfEach = new Set([...Map.groupBy(runs, resultOf).values()].map(([first]) => first));
  return runs.filter((run) => !run.isDeterministic || firstOfEach.has(run));
}

/** The values of a number on both sides, by pair. `read` returns it for a run; null: it has none. Pairs without a value on a side are left out. */
export function samplesOf(pairs: Pair[], read: (run: SideRun) => number | null): Sample[] {
  const values = (runs: SideRun[]) => runs.flatMap((run) => read(run) ?? []);
  return pairs
    .map(({ prompt, before, after }) => ({ prompt, before: values(before), after: values(after) }))
    .filter(({ before, after }) => before.length > 0 && after.length > 0);
}

/**
 * Tests whether the mean changed. Each prompt counts equally, and so does each set of template arguments within its prompt. The design depends on the
 * number of prompts:
 * - One: its runs are exchanged between the sides.
 * - Enough for a sign-flip test (6 at 5 %): the signs of their differences are flipped.
 * - A number in between: p is the larger of two p values. The first exchanges runs within each prompt and tests whether anything changed. The second
 *   is Student's t test of the prompts' differences and tests whether the prompts agree. With the first alone, a change that all runs of one prompt
 *   share would count once per run.
 */
export function testSamples(samples: Sample[], level: number): MeanTest {
  const byPrompt = [...Map.groupBy(samples, ({ prompt }) => prompt).values()];
  const strata = byPrompt.flatMap((ofPrompt) => {
    const weight = 1 / (byPrompt.length * ofPrompt.length);
    return ofPrompt.map(({ before, after }) => ({ a: before, b: after, weight }));
  });
  const within = stratifiedPermutationTest(strata);
  const common = {
    prompts: byPrompt.length,
    withinP: within.p,
    before: strata.reduce((sum, { a, weight }) => sum + weight * mean(a), 0),
    after: strata.reduce((sum, { b, weight }) => sum + weight * mean(b), 0),
  };
  if (byPrompt.length === 1) return { ...common, ...within, design: "runs", delta: stratifiedWelch(strata, level) };
  const differences = byPrompt.map((ofPrompt) => mean(ofPrompt.map(({ before, after }) => mean(after) - mean(before))));
  const delta = pairedInterval(differences, level);
  const signFlips = signFlipTest(differences);
  if (signFlips.smallest < level) return { ...common, ...signFlips, design: "prompts", delta };
  const p = Math.max(within.p, pairedTest(differences));
  return { ...common, ...within, p, design: "runs and prompts", delta };
}

const goalName = "Goal achievement";

/**
 * Counts an unclear goal as far as it was proven. Its unclear parts count as unmet, and the score is at most the score of a missed goal. Without
 * this, a single unclear run would exclude the goal from the whole comparison.
 */
export function countUnprovenAsUnmet(pairs: Pair[]): Pair[] {
  const goals = pairs
    .flatMap(({ before, after }) => [...before, ...after])
    .flatMap(({ dimensions }) => dimensions.filter(({ name }) => name === goalName));
  const weight = goals[0]?.weight;
  if (weight === undefined) return pairs;
  const withProvenGoal = (run: SideRun): SideRun => {
    const { provenShare: share, report } = run;
    const hasGoal = run.dimensions.some(({ name }) => name === goalName);
    if (share === null || report?.score == null || hasGoal) return run;
    const dimensions = [{ name: goalName, weight, score: 100 * share }, ...run.dimensions];
    const score = Math.min(standardMethodology.notMetCap, meanOf(dimensions) ?? report.score);
    return { ...run, dimensions, report: { ...report, score } };
  };
  return pairs.map((pair) => ({
    ...pair,
    before: pair.before.map(withProvenGoal),
    after: pair.after.map(withProvenGoal),
  }));
}

/** The dimension that only runs with errors have. Leaving it out would hide that runs have errors on one side only. */
const recoveryName = "Error recovery";

/**
 * The dimensions that every scored run has. null: all runs have the same ones, so that their scores can be compared. Only some runs have errors, so
 * error recovery doesn't count as a difference.
 */
export function commonDimensions(runs: SideRun[]): string[] | null {
  const namesOfRuns = runs
    .filter(({ report }) => report?.score != null)
    .map(({ dimensions }) => dimensions.map(({ name }) => name));
  const comparedNames = namesOfRuns.map((names) => names.filter((name) => name !== recoveryName));
  const common = (comparedNames[0] ?? []).filter((name) => comparedNames.every((names) => names.includes(name)));
  if (comparedNames.every((names) => names.length === common.length)) return null;
  const hasErrors = namesOfRuns.some((names) => names.includes(recoveryName));
  return hasErrors ? [...common, recoveryName] : common;
}

/** The score of a run; for selected dimensions, their weighted mean, capped if the goal was missed. */
export function scoreOn({ report, dimensions }: SideRun, names: string[] | null): number | null {
  if (report?.score == null || names === null) return report?.score ?? null;
  const score = meanOf(dimensions.filter(({ name }) => names.includes(name)));
  return score !== null && report.outcome === "goal_not_met" ? Math.min(standardMethodology.notMetCap, score) : score;
}

function meanOf(dimensions: SideRun["dimensions"]): number | null {
  const weightSum = dimensions.reduce((sum, { weight }) => sum + weight, 0);
  return weightSum === 0 ? null : dimensions.reduce((sum, { score, weight }) => sum + score * weight, 0) / weightSum;
}

/** The dimensions of the runs of both sides. */
export const dimensionNames = (pairs: Pair[]): string[] =>
  sortDimensionNames(
    pairs.flatMap(({ before, after }) =>
      [...before, ...after].flatMap(({ dimensions }) => dimensions.map(({ name }) => name)),
    ),
  );

/** The dimensions that a comparison on the named ones leaves out; null: it compares whole scores. */
export const listLeftOut = (pairs: Pair[], names: string[] | null): string[] =>
  names === null ? [] : dimensionNames(pairs).filter((name) => !names.includes(name));

/** Two means as reports show scores: with one decimal place. */
export const roundedMeans = (before: number, after: number) => ({ before: round(before, 1), after: round(after, 1) });
