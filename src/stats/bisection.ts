// Finds which of many builds is the first with a change, with as few runs as possible. Pure functions: scores go in, the next step comes out.
import { mean, pooledVariance, welch } from "./estimates.ts";
import { permutationTest } from "./hypothesis-tests.ts";
import { gateSteps, isClearChange } from "./power.ts";

/** The score of a run of a build. Builds are numbered in the order of their commits. Build 0 is the good one, and the last build is the bad one. */
export type BuildScore = { build: number; score: number };

/**
 * `last`: the number of the bad build, at least 1. `skipped`: builds that can't be run. The good and the bad build are never among them.
 * `isDeterministic`: runs of a build never differ.
 */
export type Bisection = { last: number; skipped: ReadonlySet<number>; isDeterministic: boolean };

/**
 * `run`: the search needs more runs of one build, or of the good and the bad one. `same`: these two don't differ clearly, so there is nothing to
 * find. `found`: the change is in one of these builds with this probability. There are several if they can't be told apart, because the builds
 * between them are skipped. `undecided`: as `found`, but all runs are used up before the result is certain enough.
 */
export type BisectionStep =
  | { kind: "run"; builds: number[]; runs: number }
  | { kind: "same" }
  | ({ kind: "found" | "undecided" } & Suspects);

/** Builds that no run can tell apart, because all builds between them are skipped. `probability`: that one of them is the first with the change. */
export type Suspects = { builds: number[]; probability: number };

/** A build is the result if it has at least this probability. */
const certainty = 0.95;
/** Maximum number of runs that one step requests of a build. */
const maxBatch = 5;
/** The standard deviation of scores, in points, that is assumed before there are runs. */
const priorSd = 2;
/** The assumption has the weight of this many runs, so that a few equal scores don't rule out everything else. */
const priorWeight = 2;
/** The largest share of misleading runs that is assumed. With a share of one half, runs would tell nothing. */
const maxMisleading = 0.45;
/** Probabilities that differ by less than this are equal. */
const rounding = 1e-12;
/** Maximum number of runs of a build whose scores vary. */
const maxRuns = 20;
/** How many more builds than in a plain binary search are tried before the search gives up. */
const maxDetours = 4;

/** The next step of a search with these scores. */
export function nextStepOf(design: Bisection, scores: BuildScore[]): BisectionStep {
  const first = stepOfEnds(design, scores);
  if (first !== null) return first;
  const posterior = posteriorOf(design, scores);
  const best = suspectsOf(design, posterior);
  // A sum of probabilities is 1, except for its last bits.
  const needed = design.isDeterministic ? 1 - 1e-9 : certainty;
  if (best.probability >= needed) return { kind: "found", ...best };
  const build = nextBuildOf(design, scores, posterior);
  if (build === null) return { kind: "undecided", ...best };
  return { kind: "run", builds: [build], runs: batchOf(design, scores, posterior, build) };
}

const scoresOf = (scores: BuildScore[], build: number): number[] =>
  scores.filter((each) => each.build === build).map(({ score }) => score);

/** The next step for the good and the bad build; null: they differ clearly. They are tested at the steps of an adaptive gate. */
function stepOfEnds({ last, isDeterministic }: Bisection, scores: BuildScore[]): BisectionStep | null {
  const [good, bad] = [scoresOf(scores, 0), scoresOf(scores, last)];
  const done = Math.min(good.length, bad.length);
  // The side with fewer runs catches up first.
  const builds = [...(good.length <= bad.length ? [0] : []), ...(bad.length <= good.length ? [last] : [])];
  if (isDeterministic) {
    if (done === 0) return { kind: "run", builds, runs: 1 };
    return good[0] === bad[0] ? { kind: "same" } : null;
  }
  const isClear = gateSteps.some(({ runs, level }) => {
    if (done < runs) return false;
    const [a, b] = [good.slice(0, runs), bad.slice(0, runs)];
    return isClearChange(welch(a, b, level), permutationTest(a, b).p, level);
  });
  if (isClear) return null;
  // With only the runs of the first step, no result can be significant.
  const next = gateSteps.find(({ runs }, i) => i > 0 && runs > done);
  if (next === undefined) return { kind: "same" };
  // If only one side needs runs, it catches up with the other. If both do, they go on to the next step.
  const target = builds.length === 1 ? Math.min(next.runs, Math.max(good.length, bad.length)) : next.runs;
  return { kind: "run", builds, runs: target - done };
}

/**
 * By number, the probability of each build to be the first with the change. Build 0 has the probability 0. Before any run, all other builds are
 * equally probable.
 */
export const posteriorOf = ({ last, isDeterministic }: Bisection, scores: BuildScore[]): number[] =>
  isDeterministic ? posteriorOfEqualRuns(last, scores) : posteriorOfVaryingRuns(last, scores);

/**
 * A build counts as good or bad, depending on which end has the nearer score. All builds after the last good one, up to the first bad one, are
 * equally probable.
 */
function posteriorOfEqualRuns(last: number, scores: BuildScore[]): number[] {
  const [low, high] = boundsOf(last, scores);
  return Array.from({ length: last + 1 }, (_, i) => (i > low && i <= high ? 1 / (high - low) : 0));
}

/**
 * Scores are assumed to be normal, with one mean before the change and another mean from the change on. At first these are the means of the good and
 * the bad build. Then they are the means of all builds before and after the most probable change.
 */
function posteriorOfVaryingRuns(last: number, scores: BuildScore[]): number[] {
  const ends = scores.filter(({ build }) => build === 0 || build === last);
  if (new Set(ends.map(({ build }) => build)).size < 2)
    return Array.from({ length: last + 1 }, (_, i) => (i === 0 ? 0 : 1 / last));
  const byEnds = posteriorBySides(last, scores, sidesOf(ends, last));
  const best = byEnds.indexOf(Math.max(...byEnds));
  return posteriorBySides(last, scores, sidesOf(scores, best));
}

/** The last build that looks like the good one, and the first build after it that looks like the bad one. */
function boundsOf(last: number, scores: BuildScore[]): [low: number, high: number] {
  const [good, bad] = [scoresOf(scores, 0)[0], scoresOf(scores, last)[0]];
  if (good === undefined || bad === undefined) return [0, last];
  const isBad = ({ score }: BuildScore) => Math.abs(score - bad) < Math.abs(score - good);
  const high = Math.min(last, ...scores.filter(isBad).map(({ build }) => build));
  const low = Math.max(0, ...scores.filter((each) => !isBad(each) && each.build < high).map(({ build }) => build));
  return [low, high];
}

/** How runs look without and with the change: their means, their variance, and the share of runs that look like the other side. */
type Sides = { unchanged: number; changed: number; variance: number; misleading: number };

/** Both sides if this build is the first with the change. Each side must have a run. */
function sidesOf(scores: BuildScore[], first: number): Sides {
  const before = scores.filter(({ build }) => build < first).map(({ score }) => score);
  const after = scores.filter(({ build }) => build >= first).map(({ score }) => score);
  const [unchanged, changed] = [mean(before), mean(after)];
  const squares = [...before.map((score) => (score - unchanged) ** 2), ...after.map((score) => (score - changed) ** 2)];
  const sum = squares.reduce((total, square) => total + square, priorWeight * priorSd ** 2);
  const middle = (unchanged + changed) / 2;
  const looksChanged = (score: number) => (score - middle) * (changed - unchanged) > 0;
  const misleading = before.filter(looksChanged).length + after.filter((score) => !looksChanged(score)).length;
  return {
    unchanged,
    changed,
    variance: sum / (scores.length - 2 + priorWeight),
    // The mean of Jeffreys' posterior.
    misleading: Math.min(maxMisleading, (misleading + 0.5) / (scores.length + 1)),
  };
}

/**
 * The posterior with known sides. The weight of a run is limited by the share of misleading runs, so that scores with two peaks don't mislead
 * further.
 */
function posteriorBySides(last: number, scores: BuildScore[], sides: Sides): number[] {
  const maxLogRatio = Math.log((1 - sides.misleading) / sides.misleading);
  const middle = (sides.unchanged + sides.changed) / 2;
  const logRatios = Array.from({ length: last + 1 }, () => 0);
  for (const { build, score } of scores) {
    // How much more likely the score is with the change than without it, as a logarithm.
    const logRatio = ((sides.changed - sides.unchanged) * (score - middle)) / sides.variance;
    logRatios[build] = (logRatios[build] ?? 0) + Math.max(-maxLogRatio, Math.min(maxLogRatio, logRatio));
  }
  // If a build is the first with the change, all later builds have it, too. So its logarithm is the sum of their logarithms.
  const logs = logRatios.map((_, first) =>
    first === 0 ? Number.NEGATIVE_INFINITY : logRatios.slice(first).reduce((sum, logRatio) => sum + logRatio, 0),
  );
  const largest = Math.max(...logs);
  const weights = logs.map((log) => Math.exp(log - largest));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

/** The builds that are most probably the first with the change. */
export function suspectsOf({ last, skipped }: Bisection, posterior: number[]): Suspects {
  const groups: Suspects[] = [];
  for (let build = 1; build <= last; build++) {
    const probability = posterior[build] ?? 0;
    const group = groups.at(-1);
    // If the previous build is skipped, no run can tell which of the two is the first.
    if (group && skipped.has(build - 1)) {
      group.builds.push(build);
      group.probability += probability;
    } else groups.push({ builds: [build], probability });
  }
  return groups.reduce((a, b) => (b.probability > a.probability ? b : a));
}

/**
 * The largest probability with which a decision about one build may be wrong. It is so small that the result is certain although it needs as many
 * decisions as a binary search, and half of that, because the first build with the change lies between two decided builds that may both be wrong.
 */
const errorOf = ({ last }: Bisection): number => (1 - certainty) / (2 * Math.max(1, Math.ceil(Math.log2(last))));

/** The probability of each build to have the change. It has the change if it or an earlier build is the first. */
export function changedOf(posterior: number[]): number[] {
  let sum = 0;
  return posterior.map((probability) => {
    sum += probability;
    return sum;
  });
}

/**
 * The build whose runs tell most. It has the change with a probability nearest to one half, as in M. Horstein, IEEE Transactions on Information
 * Theory 9 (1963) 136–143. A build that already has runs is decided first, because each new build has to be built. null: no build can be run.
 */
function nextBuildOf(design: Bisection, scores: BuildScore[], posterior: number[]): number | null {
  const { last, skipped, isDeterministic } = design;
  // This leaves out the good and the bad build.
  const tried = new Set(scores.map(({ build }) => build)).size - 2;
  const mayBegin = isDeterministic || tried < Math.ceil(Math.log2(last)) + maxDetours;
  const changed = changedOf(posterior);
  const distanceFromHalf = (build: number) => Math.abs((changed[build] ?? 0) - 0.5);
  const mayRun = (build: number) =>
    !skipped.has(build) && scoresOf(scores, build).length < (isDeterministic ? 1 : maxRuns);
  const builds = Array.from({ length: last - 1 }, (_, i) => i + 1).filter(mayRun);
  const isUndecided = (build: number) =>
    scoresOf(scores, build).length > 0 && distanceFromHalf(build) < 0.5 - errorOf(design);
  const mayTell = (build: number) => distanceFromHalf(build) < 0.5 - rounding;
  const begunBuilds = builds.filter(isUndecided);
  const newBuilds = mayBegin ? builds.filter(mayTell) : [];
  const choices = begunBuilds.length > 0 ? begunBuilds : newBuilds;
  if (choices.length === 0) return null;
  return choices.reduce((a, b) => (distanceFromHalf(b) < distanceFromHalf(a) - rounding ? b : a));
}

/** Half of the runs with which A. Wald's sequential test is expected to decide a build. Only half, because it may need fewer. */
function batchOf(design: Bisection, scores: BuildScore[], posterior: number[], build: number): number {
  if (design.isDeterministic) return 1;
  const [good, bad] = [scoresOf(scores, 0), scoresOf(scores, design.last)];
  const within = Math.max(pooledVariance([good, bad]) ?? 0, priorSd ** 2);
  const informationPerRun = (mean(bad) - mean(good)) ** 2 / (2 * within);
  const error = errorOf(design);
  const probability = Math.min(1 - error, Math.max(error, changedOf(posterior)[build] ?? 0.5));
  const decidingLogOdds = Math.log((1 - error) / error);
  const presentLogOdds = Math.abs(Math.log(probability / (1 - probability)));
  const expectedRuns = (decidingLogOdds - presentLogOdds) / informationPerRun;
  const left = maxRuns - scoresOf(scores, build).length;
  return Math.max(1, Math.min(maxBatch, left, Math.round(expectedRuns / 2)));
}
