// What each arm of an experiment changes, compared with the base. Pure functions: runs go in, facts come out.
import { type Estimate, mean, wilson } from "../stats/estimates.ts";
import { holm } from "../stats/hypothesis-tests.ts";
import { isClearChange, threshold } from "../stats/power.ts";
import { type Share, type ShareStratum, shareDifference, stratifiedFisherTest } from "../stats/proportions.ts";
import { type BlockTest, blockInterval, promptsToShow, repeatsToShow, testBlocks } from "../stats/randomized-blocks.ts";
import { isInconclusive, rounded } from "../stats/repeats.ts";
import { analyzeTriggering, type LabeledRun, type Triggering } from "./triggering.ts";

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

/** `arms`: all arms in order, with or without the base. `seed`: of random draws. `isDeterministic`: repeats of a run never differ. */
export type ExperimentDesign = { base: string; arms: string[]; seed: number; isDeterministic: boolean };

/** A difference in points with its 95 % interval, over `n` pairs of runs. */
type Effect = { delta: number; low: number | null; high: number | null; n: number };

/**
 * A change of the mean score in points. `p`: two-sided; null: exact, or without a test. `adjustedP`: see `ArmContrast` and `PromptContrast`.
 * `basis`: what was exchanged at random. "blocks": the result holds for these prompts; the others hold for prompts like these.
 */
type ScoreChange = Effect & { p: number | null; adjustedP: number | null; basis: BlockTest["basis"] | null };

/** Runs that reached the goal, of those judged. */
type SuccessCount = { n: number; of: number };

/** A change of the success rate, from -1 to 1: the mean of the prompts' differences. */
type SuccessChange = {
  base: SuccessCount;
  arm: SuccessCount;
  difference: number;
  low: number | null;
  high: number | null;
  p: number | null;
  adjustedP: number | null;
};

/** How many times the base: the ratio of geometric means with its 95 % interval, over `n` pairs of runs. */
export type RatioChange = { ratio: number; low: number | null; high: number | null; p: number | null; n: number };

/** What an arm changes. null: no runs of both sides tell. `exact`: runs of the agent don't differ, so neither tests nor intervals apply. */
type Contrast = {
  score: ScoreChange | null;
  success: SuccessChange | null;
  cost: RatioChange | null;
  seconds: RatioChange | null;
  exact: boolean;
};

/** On one prompt. `adjustedP` is corrected for the prompts of the arm, separately for score and success. */
type PromptContrast = { promptId: string; contrast: Contrast };

type ExperimentVerdict = "better" | "worse" | "not_distinguishable" | "insufficient_data" | "not_comparable";

/**
 * One arm compared with the base: by all runs that were assigned to it, whether or not they used its treatment. `adjustedP` of `overall` is corrected
 * for all arms and for testing score and success, so that at most 5 % of experiments without any change have a verdict "better" or "worse".
 * `usedOnly`: of the runs that used the treatment; these may be the easier ones, so it isn't causal. `causes`: what changed significantly.
 * `withinThreshold`: the interval of the score lies within 5 points of 0. `runsForVerdict`: runs per prompt and arm that would show a change of
 * 5 points in 4 of 5 experiments; null: a verdict exists, or 1,000 are too few. `promptsForVerdict`: the same for the number of prompts with as many
 * repeats; null with fewer than six prompts. `contaminated`, `failed`: excluded runs of both sides.
 */
export type ArmContrast = {
  arm: string;
  overall: Contrast;
  prompts: PromptContrast[];
  usedOnly: Effect | null;
  verdict: ExperimentVerdict;
  causes: ("score" | "success")[];
  withinThreshold: boolean;
  runsForVerdict: number | null;
  promptsForVerdict: number | null;
  contaminated: number;
  failed: number;
};

/**
 * The runs of an arm. `n`: those that are not excluded. `meanScore`: of the prompts' means, with its 95 % interval. `successes`: of `judged`
 * runs, with Wilson's 95 % interval. `used`: runs that used the treatment, of those for which it is known.
 */
export type ArmSummary = {
  arm: string;
  n: number;
  failed: number;
  contaminated: number;
  meanScore: number | null;
  interval: Interval | null;
  successes: number;
  judged: number;
  successInterval: Interval | null;
  used: SuccessCount | null;
};
type Interval = { low: number; high: number };

/** `triggering`: how well the agents of each arm tell the labeled prompts apart. `uninformative`: prompts that every arm always passes, or every arm always fails. `level`: of all verdicts together. */
export type ExperimentAnalysis = {
  contrasts: ArmContrast[];
  arms: ArmSummary[];
  triggering: Triggering[];
  uninformative: string[];
  level: number;
};

const level = 0.05;

/**
 * Compares each arm with the base. Runs count for the arm to which they were assigned. Scores, costs and times are compared within blocks
 * (`testBlocks`), success within prompts (`stratifiedFisherTest`). Cost and time are compared on the logarithmic scale.
 */
export function analyzeExperiment(design: ExperimentDesign, runs: ArmRun[]): ExperimentAnalysis {
  const byArm = Map.groupBy(runs, ({ arm }) => arm);
  const runsOf = (arm: string) => byArm.get(arm) ?? [];
  const names = design.arms.filter((arm) => arm !== design.base);
  const sidesOf = (name: string): Sides => ({ base: runsOf(design.base), arm: runsOf(name) });
  // Where all runs passed, or all failed, success can't differ and is not tested.
  const rates = names.map((arm) => strataOf(validOf(sidesOf(arm))));
  const testedRates = rates.filter((strata) => stratifiedFisherTest(strata).smallest < level).length;
  const testLevel = level / Math.max(1, names.length + testedRates);
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

/** The runs of the base and of an arm. */
type Sides = { base: ArmRun[]; arm: ArmRun[] };

/** `testLevel`: the level of one of all tests, if all of them count equally. */
type TestOptions = { testLevel: number; seed: number; exact: boolean };

/** A test; `adjustedP` is null before its correction. `smallest`: the smallest p possible. */
type Tested = { p: number | null; adjustedP: number | null; smallest: number };
type TestedContrast = {
  score: (ScoreChange & Tested) | null;
  success: (SuccessChange & Tested) | null;
  cost: RatioChange | null;
  seconds: RatioChange | null;
  differences: number[][];
};

/**
 * The corrected p values of a family, by test. A test that can't be significant on its own can't be a false alarm, so it doesn't count, and its p
 * becomes 1.
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

/** The contrast of two arms before its correction, by their runs that are not excluded. */
function contrastOf(sides: Sides, options: TestOptions): TestedContrast {
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

const isValid = ({ excluded }: ArmRun): boolean => excluded === null;

const validOf = ({ base, arm }: Sides): Sides => ({ base: base.filter(isValid), arm: arm.filter(isValid) });

/** The differences of the blocks in which both sides have a value, by prompt. Prompts without such a block are left out. */
function differencesOf({ base, arm }: Sides, read: (run: ArmRun) => number | null): number[][] {
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
function strataOf({ base, arm }: Sides): ShareStratum[] {
  const armByPrompt = Map.groupBy(arm, ({ promptId }) => promptId);
  return [...Map.groupBy(base, ({ promptId }) => promptId)]
    .map(([promptId, runs]) => ({ a: shareOf(runs), b: shareOf(armByPrompt.get(promptId) ?? []) }))
    .filter(({ a, b }) => a.n > 0 && b.n > 0);
}

function successChangeOf(judged: ShareStratum[], { exact }: TestOptions): TestedContrast["success"] {
  const strata = exact ? judged.map(({ a, b }) => ({ a: asOneRun(a), b: asOneRun(b) })) : judged;
  if (strata.length === 0) return null;
  const countOf = (side: "a" | "b"): SuccessCount => ({
    n: strata.reduce((sum, each) => sum + each[side].k, 0),
    of: strata.reduce((sum, each) => sum + each[side].n, 0),
  });
  const counts = { base: countOf("a"), arm: countOf("b") };
  const { value, low, high } = shareDifference(strata);
  if (exact) return { ...counts, difference: value, low: value, high: value, p: null, adjustedP: null, smallest: 1 };
  const { p, smallest } = stratifiedFisherTest(strata);
  return { ...counts, difference: value, low, high, p, adjustedP: null, smallest };
}

const shareOf = (runs: ArmRun[]): Share => ({
  k: runs.filter(({ success }) => success === true).length,
  n: runs.filter(({ success }) => success !== null).length,
});

/** Equal repeats of a deterministic agent are one run. */
const asOneRun = ({ k, n }: Share): Share => ({ k: k / n, n: 1 });

/** The ratio of a number that is above 0, by the differences of its logarithms. */
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
  // Times differ even if scores never do, but a single repeat is no test.
  if (exact) return { ratio: Math.exp(mean(differences.map(mean))), low: null, high: null, p: null, n };
  const { delta, p } = testBlocks(differences, testLevel, seed);
  const exp = (bound: number | null) => (bound === null ? null : Math.exp(bound));
  return { ratio: Math.exp(delta.value), low: exp(delta.low), high: exp(delta.high), p, n };
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

const countExcluded = (runs: ArmRun[], reason: ArmRun["excluded"]): number =>
  runs.filter(({ excluded }) => excluded === reason).length;

/** The verdict on an arm. An exact change needs no test. Changes of score and success in opposite directions are no verdict. */
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

function toContrast({ score, success, cost, seconds }: TestedContrast, { exact }: TestOptions): Contrast {
  return { score: score && withoutSmallest(score), success: success && withoutSmallest(success), cost, seconds, exact };
}

const withoutSmallest = <T extends Tested>({ smallest: _, ...change }: T): Omit<T, "smallest"> => change;

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

/** The change of the runs that used the treatment; null: none did, or it is unknown. */
function usedOnlyOf(sides: Sides): Effect | null {
  const { base, arm } = validOf(sides);
  const users = arm.filter(({ used }) => used === true);
  const differences = differencesOf({ base, arm: users }, ({ score }) => score);
  if (differences.length === 0) return null;
  const { value, low, high } = blockInterval(differences);
  return { delta: value, low, high, n: differences.flat().length };
}

function summarizeArm(arm: string, runs: ArmRun[]): ArmSummary {
  const valid = runs.filter(isValid);
  const scoresByPrompt = [...Map.groupBy(valid, ({ promptId }) => promptId).values()]
    .map((runsOfPrompt) => runsOfPrompt.flatMap(({ score }) => score ?? []))
    .filter((scores) => scores.length > 0);
  const score = scoresByPrompt.length === 0 ? null : blockInterval(scoresByPrompt);
  const { k, n } = shareOf(valid);
  const uses = valid.flatMap(({ used }) => used ?? []);
  return {
    arm,
    n: valid.length,
    failed: countExcluded(runs, "failed"),
    contaminated: countExcluded(runs, "contaminated"),
    meanScore: score?.value ?? null,
    interval: score && toInterval(score, 100),
    successes: k,
    judged: n,
    successInterval: n === 0 ? null : toInterval(wilson(k, n), 1),
    used: uses.length === 0 ? null : { n: uses.filter(Boolean).length, of: uses.length },
  };
}

const toInterval = ({ low, high }: Estimate, max: number): Interval | null =>
  low === null || high === null ? null : { low: Math.max(0, low), high: Math.min(max, high) };

/** The prompts on which all judged runs of all arms had the same result. */
function listUninformative(runs: ArmRun[]): string[] {
  const judged = runs.filter(({ excluded, success }) => excluded === null && success !== null);
  return [...Map.groupBy(judged, ({ promptId }) => promptId)].flatMap(([promptId, runsOfPrompt]) =>
    new Set(runsOfPrompt.map(({ success }) => success)).size === 1 ? [promptId] : [],
  );
}
