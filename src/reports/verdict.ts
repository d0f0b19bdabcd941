import { type Static, Type } from "@sinclair/typebox";
import { type Estimate, mean, pairedInterval, welch } from "../grading/stats.ts";
import { minRuns, runsToShow } from "../grading/statspower.ts";
import { type Exact, fisherTest, holm, permutationTest, signFlipTest } from "../grading/statstests.ts";
import { Nullable, OneOf } from "../schema.ts";
import {
  type Ended,
  EvalResult,
  infraFailuresOf,
  isBroken,
  pWords,
  resultOf,
  round,
  rounded,
  roundP,
  successesOf,
  unscoredWords,
} from "./repeats.ts";
import type { Report } from "./schema.ts";

/** Points of the score that matter to a person. */
const threshold = 5;
const alpha = 0.05;
const softAlpha = 0.2;
/** Prompts of which as many differences could show a change. */
const minPrompts = 6;

const verdicts = [
  "not_comparable",
  "insufficient_data",
  "regressed",
  "improved",
  "soft_regression",
  "soft_improvement",
  "no_change",
  "inconclusive",
] as const;
export type Verdict = (typeof verdicts)[number];

const bound = Nullable(Type.Number());
const Interval = Type.Object({ value: Type.Number(), low: bound, high: bound });

const Change = Type.Object({
  name: Type.String(),
  before: Type.Number({ description: "Mean" }),
  after: Type.Number(),
  delta: Interval,
  p: Type.Number(),
  pHolm: Type.Number({ description: "Corrected for the number of rows" }),
});

export const Evidence = Type.Object({
  reason: Type.String(),
  method: Nullable(Type.String()),
  level: Type.Number({ description: "p below which a change counts" }),
  seed: Nullable(Type.Integer({ description: "Of random splits; null where all were looked at" })),
  sides: Type.Array(EvalResult),
  delta: Nullable(Interval),
  p: bound,
  smallestP: Nullable(Type.Number({ description: "Least p that so many runs could show" })),
  successP: Nullable(
    Type.Number({ description: "Of the success rates: Fisher's exact test, of several prompts a sign-flip test" }),
  ),
  dimensions: Type.Array(Change),
  metrics: Type.Array(Change),
});
export type Evidence = Static<typeof Evidence>;
export const VerdictWord = Nullable(OneOf(verdicts, "Of the later side; null unless both have repeats"));

/** Where nothing was tested, and why. */
export const noEvidence = (reason: string): Evidence => ({
  reason,
  method: null,
  level: alpha,
  seed: null,
  sides: [],
  delta: null,
  p: null,
  smallestP: null,
  successP: null,
  dimensions: [],
  metrics: [],
});

/** A run of a side. `cell`: the prompt and template arguments, by which runs of several prompts are paired. */
export type SideRun = Ended & {
  cell: string;
  dimensions: Report["dimensions"];
  metrics: Record<(typeof metricNames)[number], number | null> | null;
};
export type Side = { name: string; unfinished: number; runs: SideRun[] };

export const metricNames = ["timeSeconds", "errors", "toolCalls", "costUsd", "interruptions"] as const;

/** Values of one number, before and after, for each cell that both sides have. */
type Samples = { before: number[]; after: number[] }[];
type Tested = Exact & { before: number; after: number; delta: Estimate };

/**
 * The rules of a verdict, in order: the first that holds decides. `differences`: what keeps the sides from being compared. `level`: the p below
 * which a change counts, lower where one looks more than once.
 */
export function judgeSides(
  before: Side,
  after: Side,
  differences: string[],
  level = alpha,
): { verdict: Verdict | null; evidence: Evidence } {
  const sides = [before, after];
  const summaries = sides.map(({ unfinished, runs }) => resultOf(runs, unfinished));
  const none = { ...noEvidence(""), level, sides: summaries };
  const without = (verdict: Verdict | null, reason: string) => ({ verdict, evidence: { ...none, reason } });
  if (sides.some(({ runs, unfinished }) => runs.length + unfinished === 1))
    return without(null, "a single run cannot tell a change from chance");
  if (differences.length > 0) return without("not_comparable", `these differ: ${differences.join("; ")}`);
  const open = sides.find(({ unfinished }) => unfinished > 0);
  if (open)
    return without(
      "insufficient_data",
      `${open.unfinished} runs of ${open.name} have not ended; compare again when they have`,
    );
  const broken = sides.find(({ runs }) => isBroken(infraFailuresOf(runs), runs.length));
  if (broken) return without("insufficient_data", `over 20 % of the runs of ${broken.name} could not be made`);
  if (summaries.some(({ n }) => n === 0)) return without("insufficient_data", "a side has no run with a score");
  const cells = cellsOf(before, after);
  if (cells.length === 0) return without("not_comparable", "the sides have no prompt in common");
  const names = commonDimensions(sides);
  if (names?.length === 0) return without("not_comparable", "there is no dimension that all runs have");
  const scores = samplesOf(cells, (run) => scoreOn(run, names));
  if (scores.length === 0) return without("insufficient_data", "no prompt has a score on both sides");
  const [score, success] = [changeOf(scores, cells.length > 1, level), successChange(cells)];
  const found = {
    ...none,
    method:
      methodOf(score, cells.length > 1 ? scores.length : null, level) +
      (names ? `; on the dimensions that all runs have: ${names.join(", ")}` : ""),
    seed: score.seed,
    delta: rounded(score.delta, 1),
    p: roundP(score.p),
    smallestP: roundP(score.smallest),
    successP: success && roundP(success.p),
    dimensions: changesOf(dimensionNames(cells), cells, level, (run, name) => dimensionOf(run, name)),
    metrics: changesOf([...metricNames], cells, level, (run, name) => run.metrics?.[name] ?? null),
  };
  const ends = unscoredWords(before.runs, after.runs);
  const lack = lackOf(cells, scores, score, level);
  if (lack) return { verdict: "insufficient_data", evidence: { ...found, reason: lack + ends } };
  const { low, high, value } = found.delta;
  // Means of the same scores differ in their last bits, which is no change.
  const ofScores = verdictOf(rounded(score.delta, 6), score.p, level);
  const verdict = success && success.p < level ? withSuccess(ofScores, success.change) : ofScores;
  const reason = `${value > 0 ? "+" : ""}${value.toFixed(1)} points (${intervalWords(level)} from ${low} to ${high}), ${pWords(score.p)}; a change counts from ${threshold} points and p below ${level}`;
  const hint = verdict === "inconclusive" ? hintOf(summaries) : "";
  const why = verdict === ofScores || !success ? hint : successWords(success);
  return { verdict, evidence: { ...found, reason: reason + why + ends } };
}

/** Why these values can show nothing; null if they can. */
function lackOf(cells: Cell[], scores: Samples, { smallest }: Tested, level: number): string | null {
  const [only] = scores;
  if (cells.length > 1)
    return scores.length >= minPrompts && smallest < level
      ? null
      : `${scores.length} prompts in common; it takes one, or ${minPrompts}, to tell a change from chance`;
  const [a, b] = [only?.before.length ?? 0, only?.after.length ?? 0];
  if (Math.min(a, b) >= minRuns && smallest < level) return null;
  return `${a} against ${b} runs; it takes ${minRuns} a side to tell a change from chance`;
}

/** How many runs it would take, where what there is does not tell. */
function hintOf(sides: EvalResult[]): string {
  const needed = runsToShow(threshold, Math.max(...sides.map(({ sd }) => sd ?? 0)));
  return needed === null ? "" : `; at this spread it takes ${needed} runs a side to show ${threshold} points`;
}

const intervalWords = (level: number) => `${Number(((1 - level) * 100).toFixed(2))} %`;

/** `prompts`: how many are paired; null where there is one. */
function methodOf({ splits, seed }: Tested, prompts: number | null, level: number): string {
  const ways = seed === null ? `all ${splits}` : `${splits} random`;
  return prompts === null
    ? `two-sided permutation test of the mean scores (${ways} splits); Welch's ${intervalWords(level)} interval of their difference`
    : `two-sided sign-flip test of the differences of ${prompts} prompts (${ways} signs); t ${intervalWords(level)} interval of their mean`;
}

function verdictOf({ value, low, high }: Estimate, p: number, level: number): Verdict {
  const [from, to] = [low ?? value, high ?? value];
  const isLarge = Math.abs(value) >= threshold;
  const isBetter = value > 0;
  if (p < level && isLarge) return isBetter ? "improved" : "regressed";
  if (p < softAlpha && (isLarge || from * to > 0)) return isBetter ? "soft_improvement" : "soft_regression";
  return from >= -threshold && to <= threshold ? "no_change" : "inconclusive";
}

/** What scores say, where success changed too and not by chance. Only a soft word comes of it, so that the false alarms of a gate stay those of one test. */
function withSuccess(verdict: Verdict, change: number): Verdict {
  if (verdict === "no_change" || verdict === "inconclusive") return change > 0 ? "soft_improvement" : "soft_regression";
  const isAtOdds =
    change > 0 ? verdict === "soft_regression" : verdict.endsWith("improvement") || verdict === "improved";
  return isAtOdds ? "inconclusive" : verdict;
}

const successWords = ({ change, p }: { change: number; p: number }) =>
  `; the goal was reached ${change > 0 ? "more" : "less"} often by ${Math.abs(change * 100).toFixed(0)} % of the runs, ${pWords(p)}`;

/** How the success rate changed. One prompt: Fisher's test. Several: the differences of their rates are tested as those of their scores are. */
function successChange(cells: Cell[]): { p: number; change: number } | null {
  const pairs = cells
    .map(({ before, after }) => [successesOf(before), successesOf(after)] as const)
    .filter((pair) => pair.every(({ judged }) => judged > 0));
  const [only] = pairs;
  if (!only) return null;
  const changes = pairs.map(([a, b]) => b.successes / b.judged - a.successes / a.judged);
  if (cells.length > 1) return { p: signFlipTest(changes).p, change: mean(changes) };
  const [a, b] = only;
  const p = fisherTest({ k: a.successes, n: a.judged }, { k: b.successes, n: b.judged });
  return { p, change: mean(changes) };
}

type Cell = { before: SideRun[]; after: SideRun[] };

/** The cells that both sides have. */
function cellsOf(before: Side, after: Side): Cell[] {
  const [a, b] = [before, after].map(({ runs }) => Map.groupBy(runs, ({ cell }) => cell)) as [
    Map<string, SideRun[]>,
    Map<string, SideRun[]>,
  ];
  return [...a].flatMap(([cell, runs]) => {
    const others = b.get(cell);
    return others ? [{ before: runs, after: others }] : [];
  });
}

function samplesOf(cells: Cell[], read: (run: SideRun) => number | null): Samples {
  const values = (runs: SideRun[]) => runs.flatMap((run) => read(run) ?? []);
  return cells
    .map((cell) => ({ before: values(cell.before), after: values(cell.after) }))
    .filter(({ before, after }) => before.length > 0 && after.length > 0);
}

/** One cell: its runs are tested. Several, even if only one has the value: the differences of their means are. */
function changeOf(samples: Samples, isPaired: boolean, level: number): Tested {
  const [only] = samples;
  const before = mean(samples.map((each) => mean(each.before)));
  const after = mean(samples.map((each) => mean(each.after)));
  if (only && !isPaired)
    return { ...permutationTest(only.before, only.after), before, after, delta: welch(only.before, only.after, level) };
  const differences = samples.map((each) => mean(each.after) - mean(each.before));
  return { ...signFlipTest(differences), before, after, delta: pairedInterval(differences, level) };
}

function changesOf<T extends string>(
  names: T[],
  cells: Cell[],
  level: number,
  read: (run: SideRun, name: T) => number | null,
): Evidence["dimensions"] {
  const tested = names.flatMap((name) => {
    const samples = samplesOf(cells, (run) => read(run, name));
    return samples.length === 0 ? [] : [{ name, ...changeOf(samples, cells.length > 1, level) }];
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

const dimensionNames = (cells: Cell[]): string[] => [
  ...new Set(
    cells.flatMap(({ before, after }) =>
      [...before, ...after].flatMap(({ dimensions }) => dimensions.map(({ name }) => name)),
    ),
  ),
];

/** The dimensions that every scored run has, where not all have the same; null where they do and the score itself can be compared. */
function commonDimensions(sides: Side[]): string[] | null {
  const lists = sides.flatMap(({ runs }) =>
    runs.filter(({ report }) => report?.score != null).map(({ dimensions }) => dimensions.map(({ name }) => name)),
  );
  const common = lists.reduce((left, names) => left.filter((name) => names.includes(name)));
  return lists.every((names) => names.length === common.length) ? null : common;
}

/** The score of a run; on certain dimensions their weighted mean. */
function scoreOn({ report, dimensions }: SideRun, names: string[] | null): number | null {
  if (report?.score == null || names === null) return report?.score ?? null;
  const kept = dimensions.filter(({ name }) => names.includes(name));
  const weights = kept.map(({ weight }) => Number.parseFloat(weight));
  const sum = weights.reduce((all, weight) => all + weight, 0);
  return sum === 0 ? null : kept.reduce((all, { score }, i) => all + score * (weights[i] ?? 0), 0) / sum;
}
