// What each arm of an experiment changes, compared with the base. Pure functions: runs go in, facts come out.
import { holm } from "../stats/hypothesis-tests.ts";
import { isClearChange, threshold } from "../stats/power.ts";
import { stratifiedFisherTest } from "../stats/proportions.ts";
import { blockInterval, promptsToShow, repeatsToShow } from "../stats/randomized-blocks.ts";
import { isInconclusive, rounded } from "../stats/repeats.ts";
import { type ArmSummary, countExcluded, summarizeArm } from "./arm-summary.ts";
import {
  type ArmRun,
  type Contrast,
  contrastOf,
  differencesOf,
  type Effect,
  type Sides,
  strataOf,
  type Tested,
  type TestedContrast,
  type TestOptions,
  toContrast,
  validOf,
} from "./contrast.ts";
import { analyzeTriggering, type Triggering } from "./triggering.ts";

/** `arms`: all arms in order, with or without the base. `seed`: the seed of random draws. `isDeterministic`: repeats of a run never differ. */
export type ExperimentDesign = { base: string; arms: string[]; seed: number; isDeterministic: boolean };

/** What an arm changes on one prompt. `adjustedP` is corrected for the prompts of the arm, separately for score and success. */
type PromptContrast = { promptId: string; contrast: Contrast };

type ExperimentVerdict = "better" | "worse" | "not_distinguishable" | "insufficient_data" | "not_comparable";

/** One arm compared with the base. All runs that were assigned to the arm count, whether or not they used its treatment. */
export type ArmContrast = {
  arm: string;
  /**
   * `adjustedP` is corrected for all arms and for testing score and success, so that at most 5 % of experiments without any change have a verdict
   * "better" or "worse".
   */
  overall: Contrast;
  prompts: PromptContrast[];
  /** The change in the runs that used the treatment. These runs may be the easier ones, so the change isn't causal. */
  usedOnly: Effect | null;
  verdict: ExperimentVerdict;
  /** What changed significantly. */
  causes: ("score" | "success")[];
  /** Whether the interval of the score lies within 5 points of 0. */
  withinThreshold: boolean;
  /** How many runs per prompt and arm would show a change of 5 points in 4 of 5 experiments. null: a verdict exists, or 1,000 are too few. */
  runsForVerdict: number | null;
  /** How many prompts would show it, with as many repeats as now. null also with fewer than six prompts. */
  promptsForVerdict: number | null;
  /** Excluded runs of both sides. */
  contaminated: number;
  failed: number;
};

export type ExperimentAnalysis = {
  contrasts: ArmContrast[];
  arms: ArmSummary[];
  /** How well the agents of each arm tell the labeled prompts apart. */
  triggering: Triggering[];
  /** Prompts that every arm always passes, or every arm always fails. */
  uninformative: string[];
  /** The significance level of all verdicts together. */
  level: number;
};

const level = 0.05;

/**
 * Compares each arm with the base. Scores, costs and times are compared within blocks (`testBlocks`). Success is compared within prompts
 * (`stratifiedFisherTest`). Cost and time are compared on the logarithmic scale.
 */
export function analyzeExperiment(design: ExperimentDesign, runs: ArmRun[]): ExperimentAnalysis {
  const byArm = Map.groupBy(runs, ({ arm }) => arm);
  const runsOf = (arm: string) => byArm.get(arm) ?? [];
  const names = design.arms.filter((arm) => arm !== design.base);
  const sidesOf = (name: string): Sides => ({ base: runsOf(design.base), arm: runsOf(name) });
  // Each arm has a test of its score. It also has a test of success, unless that can't become significant, as when all runs passed.
  const successStrata = names.map((arm) => strataOf(validOf(sidesOf(arm))));
  const successTests = successStrata.filter((strata) => stratifiedFisherTest(strata).smallest < level).length;
  const testLevel = level / Math.max(1, names.length + successTests);
  const options: TestOptions = { testLevel, seed: design.seed, exact: design.isDeterministic };
  const contrasts = names.map((arm) => ({ arm, tested: contrastOf(sidesOf(arm), options) }));
  const adjusted = adjust(contrasts.flatMap(({ tested }) => [tested.score, tested.success]));
  return {
    contrasts: contrasts.map(({ arm, tested }) =>
      toArmContrast(arm, sidesOf(arm), withAdjusted(tested, adjusted), options),
    ),
    arms: [design.base, ...names].map((arm) => summarizeArm(arm, runsOf(arm))),
    triggering: analyzeTriggering([design.base, ...names], runs),
    uninformative: listUninformative(runs),
    level,
  };
}

/**
 * The corrected p values of tests that are made together, by test. A test that can't be significant on its own can't be a false alarm either. So the
 * others aren't corrected for it, and its own p becomes 1.
 */
function adjust(tests: (Tested | null)[]): Map<Tested, number> {
  const testsWithP = tests.filter((test): test is Tested & { p: number } => test !== null && test.p !== null);
  const family = testsWithP.filter(({ smallest }) => smallest < level);
  const ps = holm(family.map(({ p }) => p));
  return new Map(testsWithP.map((test) => [test, ps[family.indexOf(test)] ?? 1]));
}

function withAdjusted(tested: TestedContrast, adjusted: Map<Tested, number>): TestedContrast {
  const { score, success } = tested;
  return {
    ...tested,
    score: score && { ...score, adjustedP: adjusted.get(score) ?? null },
    success: success && { ...success, adjustedP: adjusted.get(success) ?? null },
  };
}

/** A contrast with its verdict and its details. */
function toArmContrast(arm: string, sides: Sides, tested: TestedContrast, options: TestOptions): ArmContrast {
  const runs = [...sides.base, ...sides.arm];
  const { verdict, causes } = decideVerdict(sides, tested, options);
  const isConclusive = verdict === "better" || verdict === "worse" || verdict === "not_comparable";
  const { score, differences } = tested;
  const withinThreshold = score !== null && isWithin(score);
  const needsRuns = !isConclusive && !withinThreshold && !options.exact;
  return {
    arm,
    overall: toContrast(tested, options),
    prompts: listPrompts(sides, options),
    usedOnly: usedOnlyOf(sides),
    verdict,
    causes,
    withinThreshold,
    runsForVerdict: needsRuns ? repeatsToShow(threshold, differences, options.testLevel) : null,
    promptsForVerdict: needsRuns ? promptsToShow(threshold, differences, options.testLevel) : null,
    contaminated: countExcluded(runs, "contaminated"),
    failed: countExcluded(runs, "failed"),
  };
}

const isWithin = ({ low, high }: Effect): boolean =>
  low !== null && high !== null && low > -threshold && high < threshold;

/** The verdict on an arm. An exact change needs no test. If score and success changed in opposite directions, the arm is neither better nor worse. */
function decideVerdict(
  { base, arm }: Sides,
  { score, success }: TestedContrast,
  { testLevel, exact }: TestOptions,
): Pick<ArmContrast, "verdict" | "causes"> {
  const excludesTooMany = (reason: ArmRun["excluded"]) =>
    [base, arm].some((runs) => isInconclusive(countExcluded(runs, reason), runs.length));
  const smallest = Math.min(score?.smallest ?? 1, success?.smallest ?? 1);
  const canChange = exact ? score !== null || success !== null : smallest < testLevel;
  if (excludesTooMany("contaminated")) return { verdict: "not_comparable", causes: [] };
  if (excludesTooMany("failed") || !canChange) return { verdict: "insufficient_data", causes: [] };
  const changes: { cause: "score" | "success"; by: number }[] = [];
  if (score && isClear(score, exact)) changes.push({ cause: "score", by: score.delta });
  const isRateClear = success !== null && (exact || (success.adjustedP ?? 1) < level);
  if (isRateClear && success.difference !== 0) changes.push({ cause: "success", by: success.difference });
  const causes = changes.map(({ cause }) => cause);
  if (changes.length === 0) return { verdict: "not_distinguishable", causes };
  if (changes.every(({ by }) => by > 0)) return { verdict: "better", causes };
  return { verdict: changes.every(({ by }) => by < 0) ? "worse" : "not_distinguishable", causes };
}

/** Whether a score changed clearly. Means of equal scores can differ in the last bits. */
const isClear = ({ delta, low, high, adjustedP }: Effect & Tested, exact: boolean): boolean =>
  isClearChange(rounded({ value: delta, low, high }, 6), exact ? 0 : (adjustedP ?? 1), level);

/** The contrasts of each prompt, corrected for their number. */
function listPrompts({ base, arm }: Sides, options: TestOptions): PromptContrast[] {
  const armByPrompt = Map.groupBy(arm, ({ promptId }) => promptId);
  const prompts = [...Map.groupBy(base, ({ promptId }) => promptId)].flatMap(([promptId, runs]) => {
    const counterparts = armByPrompt.get(promptId);
    return counterparts ? [{ promptId, tested: contrastOf({ base: runs, arm: counterparts }, options) }] : [];
  });
  const scores = adjust(prompts.map(({ tested }) => tested.score));
  const successes = adjust(prompts.map(({ tested }) => tested.success));
  const adjusted = new Map([...scores, ...successes]);
  return prompts.map(({ promptId, tested }) => ({
    promptId,
    contrast: toContrast(withAdjusted(tested, adjusted), options),
  }));
}

/** The change in the runs that used the treatment. null: no run used it, or it is unknown. */
function usedOnlyOf(sides: Sides): Effect | null {
  const { base, arm } = validOf(sides);
  const users = arm.filter(({ used }) => used === true);
  const differences = differencesOf({ base, arm: users }, ({ score }) => score);
  if (differences.length === 0) return null;
  const { value, low, high } = blockInterval(differences);
  return { delta: value, low, high, n: differences.flat().length };
}

/** The prompts on which all judged runs of all arms had the same result. */
function listUninformative(runs: ArmRun[]): string[] {
  const judged = runs.filter(({ excluded, success }) => excluded === null && success !== null);
  return [...Map.groupBy(judged, ({ promptId }) => promptId)].flatMap(([promptId, runsOfPrompt]) =>
    new Set(runsOfPrompt.map(({ success }) => success)).size === 1 ? [promptId] : [],
  );
}
