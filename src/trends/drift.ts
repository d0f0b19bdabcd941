import { type Static, Type } from "@sinclair/typebox";
import { and, eq, ne } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import type { Context, OrgId } from "../context.ts";
import { prompts } from "../db/tables/prompts.ts";
import { describeMethodology } from "../reports/differences.ts";
import { readScoreDays, type ScoreDay } from "../reports/score-days.ts";
import { Nullable, OneOf, Time, toIso } from "../schema.ts";
import { type ChangePoint, changePoints } from "../stats/change-points.ts";
import { type Estimate, mean, welch } from "../stats/estimates.ts";
import { permutationTest } from "../stats/hypothesis-tests.ts";
import { threshold } from "../stats/power.ts";
import { Interval, pWords, round, rounded } from "../stats/repeats.ts";

/** How many of the newest scores are searched for change points. */
export const maxScores = 300;
/** Maximum number of canary runs on each side of a change; both sides get the same number. */
const canaryRuns = { max: 8, min: 5 };
const alpha = 0.05;

export const Change = Type.Object({
  at: Time,
  what: OneOf(["score", "agent version", "context", "model", "methodology"]),
  from: Type.String(),
  to: Type.String(),
  delta: Nullable(Interval),
  verdict: Nullable(
    OneOf(
      ["regressed", "improved", "soft_regression", "soft_improvement"],
      "soft: less than the smallest change that matters, or an interval with 0; null: not a change of the score",
    ),
  ),
  p: Nullable(Type.Number()),
  canary: Nullable(
    OneOf(["moved", "stayed"], "moved: the model drifted; stayed: the docs changed; null: too few runs"),
  ),
  note: Nullable(Type.String()),
});
type Change = Static<typeof Change>;

/** A score with the day of its run. If there are several prompts, the differences between them are removed. */
export type Level = { at: number; value: number };

/** Evaluations, oldest first. */
type ComparedSide = { mean: number; evaluations: { runs: number; at: string }[] };

/**
 * The newest significant change of a prompt. It was found by comparing all runs before it with all runs after it. `at`: the time of the first run
 * after it.
 */
export type ComparedChange = {
  agent: string;
  model: string | null;
  verdict: string;
  delta: number;
  low: number | null;
  high: number | null;
  at: string;
  before: ComparedSide;
  after: ComparedSide;
};

/** `matchingDays`: all days that match the filter, with any agent version, context, model and methodology. */
export type ChangeContext = {
  ctx: Context;
  org: OrgId;
  promptId: string | undefined;
  matchingDays: ScoreDay[];
  dayOf: (at: number) => number;
};

const testWords = (p: number | null) => (p === null ? "" : `, ${pWords(p)} (permutation test of the series)`);
const signed = (value: number) => `${value > 0 ? "+" : ""}${value.toFixed(1)}`;

/**
 * Where the level, agent, model or methodology of a series changed, oldest first. `series`: a day of the series, which has what all its runs have in
 * common. `compared`: replaces the change of the level that was found at the same place, so that all pages and notifications show the same numbers.
 */
export function changesOf(
  context: ChangeContext,
  series: ScoreDay,
  levels: Level[],
  compared: ComparedChange | null,
): Change[] {
  const points = changePoints(levels.map(({ value }) => value));
  const times = points.map(({ index }) => levels[index]?.at ?? 0);
  const scores = points.map((point, i) => {
    const at = times[i] ?? 0;
    // From the previous change to the next one.
    const span: [number, number] = [times[i - 1] ?? levels[0]?.at ?? 0, times[i + 1] ?? Number.MAX_SAFE_INTEGER];
    return scoreChange(point, at, isRuleBased(series.agent), canaryChangeAt(context, series, at, span));
  });
  const scoreChanges = compared === null ? scores : withCompared(context, series, scores, compared);
  return [...propertyChangesOf(context, series), ...scoreChanges].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

/** `isExact`: equal repeats count as one observation, so there is no p. */
function scoreChange(point: ChangePoint, at: number, isExact: boolean, canary: Canary): Change {
  const { from, to, before, after } = point;
  const p = isExact ? null : round(point.p, 4);
  const delta = rounded(welch(before, after), 1);
  const finding = `${signed(delta.value)} points (95% CI ${delta.low} to ${delta.high}), ${before.length} against ${after.length} runs${testWords(p)}`;
  return {
    at: toIso(at),
    what: "score",
    from: from.toFixed(1),
    to: to.toFixed(1),
    delta,
    verdict: verdictOf(delta),
    p,
    canary: canary.verdict,
    note: `${finding}; ${canary.note}`,
  };
}

/** The changes of the level. If `compared` is one of them, it replaces that one. */
function withCompared(context: ChangeContext, series: ScoreDay, scores: Change[], compared: ComparedChange): Change[] {
  const { delta: value, low, high, before, after, verdict } = compared;
  const dayOf = (at: string) => context.dayOf(Date.parse(at));
  const at = dayOf(compared.at);
  // The same change may have been found an evaluation earlier or later.
  const earliest = dayOf(before.evaluations.at(-1)?.at ?? compared.at);
  const latest = dayOf(after.evaluations[1]?.at ?? compared.at);
  const sameChange = scores.find((change) => Date.parse(change.at) >= earliest && Date.parse(change.at) <= latest);
  // `compared` is based on all runs before and after it, so canaries of all times count.
  const canary = canaryChangeAt(context, series, at, [0, Number.MAX_SAFE_INTEGER]);
  const runs = [before, after].map(({ evaluations }) => evaluations.reduce((sum, each) => sum + each.runs, 0));
  const interval = low === null || low === high ? "exact" : `95% CI ${low} to ${high}`;
  const p = sameChange?.p ?? null;
  const comparedChange: Change = {
    at: toIso(at),
    what: "score",
    from: before.mean.toFixed(1),
    to: after.mean.toFixed(1),
    delta: { value, low, high },
    verdict: verdict === "improved" ? "improved" : "regressed",
    p,
    canary: canary.verdict,
    note: `${signed(value)} points (${interval}), ${runs.join(" against ")} runs${testWords(p)}; ${canary.note}`,
  };
  return [...scores.filter((change) => change !== sameChange), comparedChange];
}

/** The verdict, as in comparisons, on a change that the series shows. */
function verdictOf({ value, low, high }: Estimate): Change["verdict"] {
  const excludesZero = (low ?? value) * (high ?? value) > 0;
  const isCertain = Math.abs(value) >= threshold && excludesZero;
  if (value < 0) return isCertain ? "regressed" : "soft_regression";
  return isCertain ? "improved" : "soft_improvement";
}

type Canary = { verdict: Change["canary"]; note: string };

/** Whether canary prompts changed at the same time with the same agent, version, model and methodology. Their docs never change. */
function canaryChangeAt(
  { ctx, org, promptId, dayOf }: ChangeContext,
  series: ScoreDay,
  at: number,
  span: [number, number],
): Canary {
  const isOtherPrompt = promptId === undefined ? undefined : ne(prompts.id, promptId.toLowerCase());
  const canaries = ctx.db
    .select({ id: prompts.id })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), eq(prompts.isCanary, true), isOtherPrompt))
    .all()
    .map(({ id }) => id);
  const { days } = canaries.length === 0 ? { days: [] } : readScoreDays(ctx, org, canaries, span, dayOf);
  const sameSeries = days.filter(
    ({ agent, version, model, methodology, scope }) =>
      agent === series.agent &&
      version === series.version &&
      model === series.model &&
      scope === series.scope &&
      methodology.hash === series.methodology.hash,
  );
  const byPrompt = Map.groupBy(sameSeries, ({ promptId }) => promptId);
  const levels = [...byPrompt.values()].flatMap((promptDays): Level[] => {
    const promptMean = mean(promptDays.flatMap(({ scores }) => scores));
    return promptDays.flatMap(({ day, scores }) => scores.map((score) => ({ at: day, value: score - promptMean })));
  });
  levels.sort((a, b) => a.at - b.at);
  const valuesOf = (isOnSide: (level: Level) => boolean) => levels.filter(isOnSide).map(({ value }) => value);
  const before = valuesOf((level) => level.at < at).slice(-canaryRuns.max);
  const after = valuesOf((level) => level.at >= at).slice(0, canaryRuns.max);
  const runs = `${before.length} against ${after.length} runs`;
  if (Math.min(before.length, after.length) < canaryRuns.min)
    return {
      verdict: null,
      note: `too few canary runs to separate docs from model: ${runs}; at least ${canaryRuns.min} per side are needed`,
    };
  const { p } = permutationTest(before, after);
  const finding = `${signed(mean(after) - mean(before))} points, ${runs}, ${pWords(p)}`;
  return p < alpha
    ? { verdict: "moved", note: `the canary prompts changed too (${finding}), so the model drifted` }
    : { verdict: "stayed", note: `the canary prompts did not change (${finding}), so the docs are the likely cause` };
}

/** Marks where the agent's model, methodology, version or context changed. */
function propertyChangesOf({ matchingDays, promptId }: ChangeContext, series: ScoreDay): Change[] {
  const changeIfDifferent = (at: number, what: Change["what"], from: string, to: string): Change[] =>
    from === to
      ? []
      : [{ at: toIso(at), what, from, to, delta: null, verdict: null, p: null, canary: null, note: null }];
  const sameAgentDays = matchingDays.filter(({ agent }) => agent === series.agent);
  const isComparable = (day: ScoreDay) =>
    day.model === series.model && day.methodology.hash === series.methodology.hash;
  // The first day with the model and methodology of the series, and the last day before it with other ones.
  const first = sameAgentDays.find(isComparable) ?? series;
  const earlier = sameAgentDays.findLast((day) => !isComparable(day) && day.lastAt < first.lastAt);
  const seriesChanges = earlier
    ? [
        ...changeIfDifferent(first.day, "model", earlier.model || "none", first.model || "none"),
        ...changeIfDifferent(
          first.day,
          "methodology",
          describeMethodology(earlier.methodology),
          describeMethodology(first.methodology),
        ),
      ]
    : [];
  const versionedDays = sameAgentDays.filter(({ model, version }) => model === series.model && version !== "");
  // Pairs of each day and the previous one.
  const steps = versionedDays.slice(1).map((day, i) => [versionedDays[i] as ScoreDay, day] as const);
  const versions = steps.flatMap(([before, { day, version }]) =>
    changeIfDifferent(day, "agent version", before.version, version),
  );
  // Each prompt has its own context.
  const contexts =
    promptId === undefined
      ? []
      : steps.flatMap(([before, { day, contextDigest }]) =>
          changeIfDifferent(day, "context", before.contextDigest || "none", contextDigest || "none"),
        );
  return [...seriesChanges, ...versions, ...contexts];
}
