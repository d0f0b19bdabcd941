import { type Static, Type } from "@sinclair/typebox";
import { and, eq, ne } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { prompts } from "../db/tables/prompts.ts";
import { methodologyWords } from "../reports/differences.ts";
import { readScoreDays, type ScoreDay } from "../reports/score-days.ts";
import { Nullable, OneOf, Time, toIso } from "../schema.ts";
import { type ChangePoint, changePoints } from "../stats/change-points.ts";
import { mean, welch } from "../stats/estimates.ts";
import { permutationTest } from "../stats/hypothesis-tests.ts";
import { pWords, rounded } from "../stats/repeats.ts";

/** Maximum number of scores to search for change points, the newest. */
export const maxScores = 300;
/** Maximum number of canary runs on each side of a change; both sides get the same number. */
const canaryRuns = { most: 8, least: 5 };
const alpha = 0.05;

const bound = Nullable(Type.Number());

export const Change = Type.Object({
  at: Time,
  what: OneOf(["score", "agent version", "context", "model", "methodology"]),
  from: Type.String(),
  to: Type.String(),
  delta: Nullable(Type.Object({ value: Type.Number(), low: bound, high: bound })),
  p: bound,
  canary: Nullable(
    OneOf(["moved", "stayed"], "moved: the model drifted; stayed: the docs changed; null: too few runs"),
  ),
  note: Nullable(Type.String()),
});
type Change = Static<typeof Change>;

/** A score with the day of its run. Over several prompts, the differences between prompts are taken out. */
export type Level = { at: number; value: number };

/** `others`: days of the same prompts with any agent version, context, model and methodology. */
export type ChangeContext = {
  ctx: Context;
  org: OrgId;
  promptId: string | undefined;
  others: ScoreDay[];
  dayOf: (at: number) => number;
};

const signed = (value: number) => `${value > 0 ? "+" : ""}${value.toFixed(1)}`;

/** Where the level, agent, model or methodology of a series changed, oldest first. */
export function changesOf(context: ChangeContext, days: ScoreDay[], levels: Level[]): Change[] {
  const points = changePoints(levels.map(({ value }) => value));
  const scores = points.map((point, i) => {
    const at = levels[point.index]?.at ?? 0;
    const span: [number, number] = [
      levels[points[i - 1]?.index ?? 0]?.at ?? 0,
      levels[points[i + 1]?.index ?? -1]?.at ?? Number.MAX_SAFE_INTEGER,
    ];
    return scoreChange(point, at, canaryAt(context, days[0] as ScoreDay, at, span));
  });
  return [...marksOf(context, days), ...scores].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

function scoreChange({ p, from, to, before, after }: ChangePoint, at: number, canary: Canary): Change {
  const delta = rounded(welch(before, after), 1);
  const finding = `${signed(delta.value)} points (95% from ${delta.low} to ${delta.high}), ${before.length} against ${after.length} runs, ${pWords(p)} (permutation test of the series)`;
  return {
    at: toIso(at),
    what: "score",
    from: from.toFixed(1),
    to: to.toFixed(1),
    delta,
    p: Number(p.toFixed(4)),
    canary: canary.verdict,
    note: `${finding}; ${canary.note}`,
  };
}

type Canary = { verdict: Change["canary"]; note: string };

/** Whether canary prompts, whose docs never change, changed at the same time with the same agent, version, model and methodology. */
function canaryAt(
  { ctx, org, promptId, dayOf }: ChangeContext,
  line: ScoreDay,
  at: number,
  span: [number, number],
): Canary {
  const others = promptId === undefined ? undefined : ne(prompts.id, promptId.toLowerCase());
  const canaries = ctx.db
    .select({ id: prompts.id })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), eq(prompts.isCanary, true), others))
    .all()
    .map(({ id }) => id);
  const { days } = canaries.length === 0 ? { days: [] } : readScoreDays(ctx, org, canaries, span, dayOf);
  const same = days.filter(
    ({ agent, version, model, methodology, scope }) =>
      agent === line.agent &&
      version === line.version &&
      model === line.model &&
      scope === line.scope &&
      methodology.hash === line.methodology.hash,
  );
  const byPrompt = Map.groupBy(same, ({ promptId }) => promptId);
  const sides = [...byPrompt.values()].map((own) => {
    const centre = mean(own.flatMap(({ scores }) => scores));
    const on = (isAfter: boolean) =>
      own
        .filter(({ day }) => day >= at === isAfter)
        .flatMap(({ day, scores }) => scores.map((score) => ({ at: day, value: score - centre })));
    return [on(false), on(true)] as const;
  });
  const values = (side: Level[]) => side.map(({ value }) => value);
  const inTime = (a: Level, b: Level) => a.at - b.at;
  const before = values(
    sides
      .flatMap(([side]) => side)
      .sort(inTime)
      .slice(-canaryRuns.most),
  );
  const after = values(
    sides
      .flatMap(([, side]) => side)
      .sort(inTime)
      .slice(0, canaryRuns.most),
  );
  const runs = `${before.length} against ${after.length} runs`;
  if (Math.min(before.length, after.length) < canaryRuns.least)
    return {
      verdict: null,
      note: `too few canary runs to separate docs from model: ${runs}; at least ${canaryRuns.least} per side are needed`,
    };
  const { p } = permutationTest(before, after);
  const finding = `${signed(mean(after) - mean(before))} points, ${runs}, ${pWords(p)}`;
  return p < alpha
    ? { verdict: "moved", note: `the canary prompts changed too (${finding}), so the model drifted` }
    : { verdict: "stayed", note: `the canary prompts did not change (${finding}), so the docs are the likely cause` };
}

/** Marks where the agent's model, methodology, version or context changed. */
function marksOf({ others, promptId }: ChangeContext, [shown]: ScoreDay[]): Change[] {
  if (!shown) return [];
  const mark = (at: number, what: Change["what"], from: string, to: string): Change[] =>
    from === to ? [] : [{ at: toIso(at), what, from, to, delta: null, p: null, canary: null, note: null }];
  const own = others.filter(({ agent }) => agent === shown.agent);
  const isOther = (day: ScoreDay) => day.model !== shown.model || day.methodology.hash !== shown.methodology.hash;
  const first = own.find((day) => !isOther(day)) ?? shown;
  const earlier = own.findLast((day) => isOther(day) && day.lastAt < first.lastAt);
  const began = earlier
    ? [
        ...mark(first.day, "model", earlier.model || "none", first.model || "none"),
        ...mark(first.day, "methodology", methodologyWords(earlier.methodology), methodologyWords(first.methodology)),
      ]
    : [];
  const ofModel = own.filter(({ model, version }) => model === shown.model && version !== "");
  const steps = ofModel.slice(1).map((day, i) => [ofModel[i] as ScoreDay, day] as const);
  const versions = steps.flatMap(([before, { day, version }]) => mark(day, "agent version", before.version, version));
  // Each prompt has its own context.
  const contexts =
    promptId === undefined
      ? []
      : steps.flatMap(([before, { day, contextDigest }]) =>
          mark(day, "context", before.contextDigest || "none", contextDigest || "none"),
        );
  return [...began, ...versions, ...contexts];
}
