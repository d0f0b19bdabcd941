import type { Estimate } from "../stats/estimates.ts";
import { holm } from "../stats/hypothesis-tests.ts";
import { isClearChange, minRuns, runsToShow, threshold } from "../stats/power.ts";
import {
  type EvalResult,
  infraFailuresOf,
  isInconclusive,
  metricNames,
  pWords,
  resultOf,
  round,
  rounded,
  roundP,
  type SideRun,
  unscoredWords,
} from "../stats/repeats.ts";
import { verdictOfDeterministic } from "./deterministic.ts";
import { describeEnds, roundedEnds, testEnds, worseEnds } from "./ends.ts";
import { alpha, type Evidence, noEvidence, type Verdict } from "./evidence.ts";
import {
  commonDimensions,
  countUnprovenAsUnmet,
  dimensionNames,
  listLeftOut,
  type MeanTest,
  type Pair,
  pairsOf,
  roundedMeans,
  type Sample,
  samplesOf,
  scoreOn,
  testSamples,
  withoutEqualRepeats,
} from "./samples.ts";

const softAlpha = 0.2;

/** One side of a comparison: its runs that have ended, and how many others have not. */
export type Side = { name: string; unfinished: number; runs: SideRun[] };

/**
 * Decides the verdict by rules in order; the first that applies wins. `differences`: why the sides are not comparable. `level`: the p below which a
 * change is significant, lower with repeated looks. Scores are tested two-sided at the level. Success and unfinished runs are tested one-sided at
 * half of it. So at most `level` of the verdicts are false regressions.
 */
export function decideVerdict(
  before: Side,
  after: Side,
  differences: string[],
  level = alpha,
): { verdict: Verdict | null; evidence: Evidence } {
  const sides = [before, after];
  const summaries = sides.map(({ unfinished, runs }) => resultOf(runs, unfinished));
  const untested = { ...noEvidence(""), level, sides: summaries };
  const withoutTest = (verdict: Verdict | null, reason: string, more: Partial<Evidence> = {}) => ({
    verdict,
    evidence: { ...untested, ...more, reason },
  });
  const isDeterministic = sides.every(({ runs }) => runs.length > 0 && runs.every((run) => run.isDeterministic));
  const objection = objectionTo(sides, differences, isDeterministic);
  if (objection) return withoutTest(objection.verdict, objection.reason);
  const observations = ({ runs }: Side) => (isDeterministic ? runs : withoutEqualRepeats(runs));
  const pairs = pairsOf(observations(before), observations(after));
  if (pairs.length === 0) return withoutTest("not_comparable", "the sides have no prompt in common");
  const ends = isDeterministic ? untestedEnds : findingOfEnds(pairs, level);
  const gotWorse = ends.evidence.causes.length > 0;
  const isScored = summaries.every(({ n }) => n > 0);
  if (!isScored && gotWorse) return withoutTest("regressed", ends.reasons.join("; "), ends.evidence);
  if (!isScored) return withoutTest("insufficient_data", "one side is not measured", ends.evidence);
  const scores = verdictOfScores({ before, after, pairs, level, isDeterministic });
  const endCauses = ends.evidence.causes;
  const causes: Evidence["causes"] = scores.verdict === "regressed" ? ["score", ...endCauses] : endCauses;
  const evidence = { ...untested, ...ends.evidence, ...scores.evidence, causes };
  if (gotWorse) {
    const reason = [...ends.reasons, scores.evidence.reason].join("; ");
    return { verdict: "regressed", evidence: { ...evidence, reason } };
  }
  if (isDeterministic) return { verdict: scores.verdict, evidence };
  return withSuccess(scores.verdict, evidence, summaries, level);
}

/** What the test of how runs ended shows. `reasons`: a sentence for each cause. */
type EndsFinding = { evidence: Pick<Evidence, "ends" | "causes" | "successP">; reasons: string[] };

const untestedEnds: EndsFinding = { evidence: { ends: null, causes: [], successP: null }, reasons: [] };

function findingOfEnds(pairs: Pair[], level: number): EndsFinding {
  const test = testEnds(pairs);
  if (test === null) return untestedEnds;
  const causes = worseEnds(test.ends, level);
  const ends = roundedEnds(test.ends);
  const successP = test.successP === null ? null : roundP(test.successP);
  return { evidence: { ends, causes, successP }, reasons: describeEnds(ends, causes) };
}

/** Why sides can't be compared, and the verdict that follows; null: they can. */
function objectionTo(
  sides: Side[],
  differences: string[],
  isDeterministic: boolean,
): { verdict: Verdict | null; reason: string } | null {
  if (differences.length > 0) return { verdict: "not_comparable", reason: `these differ: ${differences.join("; ")}` };
  if (!isDeterministic && sides.some(({ runs, unfinished }) => runs.length + unfinished === 1))
    return { verdict: null, reason: "one run per side can't show a change; run it 4 times" };
  const activeSide = sides.find(({ unfinished }) => unfinished > 0);
  if (activeSide) {
    const reason = `${activeSide.unfinished} runs of ${activeSide.name} are still active; compare again when they have finished`;
    return { verdict: "insufficient_data", reason };
  }
  const failedSide = sides.find(({ runs }) => isInconclusive(infraFailuresOf(runs), runs.length));
  if (!failedSide) return null;
  const reason = `more than 20% of the runs of ${failedSide.name} failed for reasons unrelated to the target`;
  return { verdict: "insufficient_data", reason };
}

type ScoreVerdict = { verdict: Verdict; evidence: Partial<Evidence> & { reason: string } };

/** `pairs`: the runs of both sides that count as observations. */
type ScoreComparison = { before: Side; after: Side; pairs: Pair[]; level: number; isDeterministic: boolean };

/** The verdict of the scores alone, with their dimensions and metrics. */
function verdictOfScores({ before, after, pairs, level, isDeterministic }: ScoreComparison): ScoreVerdict {
  const countedPairs = countUnprovenAsUnmet(pairs);
  const names = commonDimensions(countedPairs.flatMap((pair) => [...pair.before, ...pair.after]));
  if (names?.length === 0)
    return { verdict: "not_comparable", evidence: { reason: "no dimension is common to all runs" } };
  const scores = samplesOf(countedPairs, (run) => scoreOn(run, names));
  if (scores.length === 0)
    return { verdict: "insufficient_data", evidence: { reason: "no prompt has a score on both sides" } };
  if (isDeterministic) return verdictOfDeterministic(countedPairs, names);
  const score = testSamples(scores, level);
  const means = roundedMeans(score.before, score.after);
  const evidence = {
    method: methodOf(score, level) + (names ? `; on the dimensions common to all runs: ${names.join(", ")}` : ""),
    seed: score.seed,
    score: { ...means, without: listLeftOut(countedPairs, names) },
    // The difference of the rounded means is shown, because people check the arithmetic of a table.
    delta: { ...rounded(score.delta, 1), value: round(means.after - means.before, 1) },
    p: roundP(score.p),
    smallestP: roundP(score.smallest),
    withinP: roundP(score.withinP),
    dimensions: changesOf(dimensionNames(countedPairs), countedPairs, level, dimensionOf),
    metrics: changesOf([...metricNames], countedPairs, level, (run, name) => run.metrics?.[name] ?? null),
  };
  const unscored = unscoredWords(before.runs, after.runs);
  const tooFewReason = reasonForTooFew(scores, score, level);
  if (tooFewReason) return { verdict: "insufficient_data", evidence: { ...evidence, reason: tooFewReason + unscored } };
  const { low, high, value } = evidence.delta;
  const reason = `${value > 0 ? "+" : ""}${value.toFixed(1)} points (${intervalWords(level)} CI ${low} to ${high}), ${pWords(score.p)}; a change needs at least ${threshold} points and p below ${level}`;
  // Means of equal scores can differ in the last bits.
  const verdict = verdictOf(rounded(score.delta, 6), score.p, level);
  return { verdict, evidence: { ...evidence, reason: reason + unscored } };
}

/** A significant change in success that is not a regression makes the verdict soft, or inconclusive if it contradicts the scores. */
function withSuccess(verdict: Verdict, evidence: Evidence, summaries: EvalResult[], level: number) {
  const { ends, successP } = evidence;
  const withNote = (note: string) => ({ verdict, evidence: { ...evidence, reason: evidence.reason + note } });
  const unchanged = withNote(verdict === "inconclusive" ? hintOf(summaries) : "");
  if (verdict === "insufficient_data" || !ends?.success || successP === null || successP >= level) return unchanged;
  const { before, after } = ends.success;
  const change = after.k / after.n - before.k / before.n;
  const combined = softened(verdict, change);
  if (combined === verdict) return unchanged;
  const points = `${Math.abs(change * 100).toFixed(0)} percentage points`;
  const note = `; the success rate ${change > 0 ? "rose" : "fell"} by ${points}, ${pWords(successP)}`;
  return { ...withNote(note), verdict: combined };
}

function softened(verdict: Verdict, change: number): Verdict {
  if (change === 0) return verdict;
  if (verdict === "no_change" || verdict === "inconclusive") return change > 0 ? "soft_improvement" : "soft_regression";
  const contradictions: Verdict[] = change > 0 ? ["soft_regression"] : ["improved", "soft_improvement"];
  return contradictions.includes(verdict) ? "inconclusive" : verdict;
}

/** Why the samples are too small for a verdict; null if they are not. */
function reasonForTooFew(samples: Sample[], { smallest, prompts }: MeanTest, level: number): string | null {
  const before = samples.reduce((sum, sample) => sum + sample.before.length, 0);
  const after = samples.reduce((sum, sample) => sum + sample.after.length, 0);
  if (prompts === 1 && Math.min(before, after) < minRuns)
    return `${before} against ${after} runs; at least ${minRuns} per side are needed to tell a change from chance`;
  if (smallest < level) return null;
  const suffix = prompts === 1 ? "" : ` of ${prompts} prompts`;
  return `${before} against ${after} runs${suffix} are too few for a p below ${level}; add runs`;
}

/** How many runs an inconclusive comparison would need. */
function hintOf(sides: EvalResult[]): string {
  const needed = runsToShow(threshold, Math.max(...sides.map(({ sd }) => sd ?? 0)));
  return needed === null ? "" : `; with this spread, ${needed} runs per side are needed to detect ${threshold} points`;
}

const intervalWords = (level: number) => `${Number(((1 - level) * 100).toFixed(2))}%`;

function methodOf({ design, prompts, splits, seed }: MeanTest, level: number): string {
  const splitWords = seed === null ? `all ${splits}` : `${splits} random`;
  const interval = intervalWords(level);
  if (design === "runs")
    return `two-sided permutation test of the mean scores (${splitWords} splits); Welch's ${interval} interval of their difference`;
  if (design === "prompts")
    return `two-sided sign-flip test of the differences of ${prompts} prompts (${splitWords} signs); t ${interval} interval of their mean`;
  return `the larger p of a two-sided permutation test within each of ${prompts} prompts (${splitWords} splits) and a t test of their differences; t ${interval} interval of their mean`;
}

function verdictOf(delta: Estimate, p: number, level: number): Verdict {
  const { value, low, high } = delta;
  const [from, to] = [low ?? value, high ?? value];
  const isBetter = value > 0;
  if (isClearChange(delta, p, level)) return isBetter ? "improved" : "regressed";
  const excludesZero = from > 0 || to < 0;
  if (p < softAlpha && (Math.abs(value) >= threshold || excludesZero))
    return isBetter ? "soft_improvement" : "soft_regression";
  return from >= -threshold && to <= threshold ? "no_change" : "inconclusive";
}

function changesOf<T extends string>(
  names: T[],
  pairs: Pair[],
  level: number,
  read: (run: SideRun, name: T) => number | null,
): Evidence["dimensions"] {
  const tested = names.flatMap((name) => {
    const samples = samplesOf(pairs, (run) => read(run, name));
    return samples.length === 0 ? [] : [{ name, ...testSamples(samples, level) }];
  });
  const corrected = holm(tested.map(({ p }) => p));
  return tested.map(({ name, before, after, delta, p }, i) => ({
    name,
    before: round(before, 4),
    after: round(after, 4),
    delta: rounded(delta, 4),
    p: roundP(p),
    pHolm: roundP(corrected[i] as number),
  }));
}

const dimensionOf = ({ dimensions }: SideRun, name: string) =>
  dimensions.find((each) => each.name === name)?.score ?? null;
