import { type Static, Type } from "@sinclair/typebox";
import { and, eq, ne } from "drizzle-orm";
import { prompts } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import { RunReport, reportFilter } from "../reports/schema.ts";
import { Id, Nullable, OneOf, Time, toInstant, toIso } from "../schema.ts";
import { mean, meanInterval, median, wilson } from "../stats/estimates.ts";
import { infraFailuresOf, Repeats, rounded, unsuccessfulOf } from "../stats/repeats.ts";
import { Change, type ChangeContext, changesOf, type Level, maxScores } from "./drift.ts";
import { evaluationsOf } from "./evaluation-points.ts";
import { type Failed, readScoreDays, type ScoreDay } from "./score-days.ts";

const intervals = ["day", "week", "month", "eval"] as const;
type Interval = (typeof intervals)[number];

/** Maximum number of series by other methodologies. */
const maxOthers = 4;

/** Default period in days. */
const daysShown: Record<Interval, number> = { day: 30, week: 182, month: 730, eval: 182 };
const dayMs = 24 * 3600_000;
const maxPoints = 200;
const spanDays: Record<Interval, number> = { day: 1, week: 7, month: 31, eval: 7 };

const { promptId, agent, since, until } = reportFilter;
export const trendFilter = {
  promptId,
  agent,
  model: Type.Optional(
    Type.String({ maxLength: 200, description: "Default: the methodology and the agent of the latest run" }),
  ),
  since,
  until,
  interval: Type.Optional(
    OneOf(intervals, "Days, weeks (from Monday) or months, in UTC; or eval, for the evaluations of one prompt"),
  ),
};
const TrendFilter = Type.Object(trendFilter);
type TrendFilter = Static<typeof TrendFilter>;

const LineSummary = Type.Object({
  agent: Type.String(),
  model: Nullable(Type.String()),
  methodology: RunReport.properties.methodology,
  scope: RunReport.properties.scope,
  n: Type.Integer(),
});

const Points = Type.Array(
  Type.Object({
    from: Time,
    evalRequestId: Type.Optional(Id),
    prompts: Type.Integer({ description: "Over several prompts: the mean of their means" }),
    ...Repeats.properties,
  }),
  { description: "Published runs on the live docs, oldest first; intervals without runs are omitted" },
);

export const Trends = Type.Object(
  {
    agent: Nullable(Type.String()),
    model: Nullable(Type.String()),
    methodology: Nullable(RunReport.properties.methodology),
    scope: Nullable(RunReport.properties.scope),
    points: Points,
    others: Type.Array(
      Type.Object({ methodology: RunReport.properties.methodology, scope: RunReport.properties.scope, points: Points }),
      {
        description:
          "The same agent and model with other methodologies or scopes, newest first; not comparable with points",
      },
    ),
    changes: Type.Array(Change, { description: "Level changes, with possible causes" }),
    cells: Type.Array(LineSummary, {
      description: "All agents, models and methodologies in this period; points cover only one",
    }),
    nextUntil: Nullable(Type.String({ description: "until of the previous page; null if there is none" })),
  },
  { title: "Trends" },
);
export type Trends = Static<typeof Trends>;

type Line = Pick<ScoreDay, "agent" | "model" | "methodology" | "scope">;
const lineOf = ({ agent, model, methodology, scope }: Line) => `${agent} ${model} ${methodology.hash} ${scope}`;

/**
 * Results over time of one agent, model and methodology: the most recent ones that match. Over all prompts, canaries
 * are excluded, and each prompt counts equally in a point. Throws not_found, and bad_request for an invalid time.
 */
export function getTrends({ db, now }: Pick<Deps, "db" | "now">, org: OrgId, filter: TrendFilter): Trends {
  const { interval = "week" } = filter;
  const end = filter.until === undefined ? now() + 1 : toInstant("until", filter.until);
  const asked =
    filter.since === undefined ? end - daysShown[interval] * dayMs : Math.min(end, toInstant("since", filter.since));
  const start = startOf(interval, Math.max(asked, end - maxPoints * spanDays[interval] * dayMs));
  const ids = promptsOf({ db }, org, filter.promptId);
  if (interval === "eval" && filter.promptId === undefined)
    throw badRequest("Invalid interval: eval needs promptId. Set promptId, or use day, week or month.");
  const found = readScoreDays({ db }, org, ids, [start, end]);
  const matching = found.days.filter(
    (day) => (filter.agent ?? day.agent) === day.agent && (filter.model ?? day.model) === day.model,
  );
  const newest = matching.reduce<ScoreDay | null>((last, day) => (last && last.lastAt > day.lastAt ? last : day), null);
  const failed = found.failed.filter(
    ({ agent, model }) => (newest?.agent ?? filter.agent ?? agent) === agent && (newest?.model ?? model) === model,
  );
  const context: ChangeContext = { db, org, promptId: filter.promptId, others: matching };
  const lines = linesOf(matching.filter(({ agent, model }) => agent === newest?.agent && model === newest.model));
  const ofLine = ({ days, from, to }: DatedLine): Pick<Trends, "points" | "nextUntil"> => {
    const [day] = days;
    const isOwn = (at: number) => at >= from && at < to;
    return interval === "eval" && day
      ? evaluationsOf({ db }, org, ids[0] as string, day, [start, end], maxPoints, isOwn)
      : {
          points: pointsOf(
            interval,
            days,
            failed.filter(({ at }) => isOwn(at)),
          ),
          nextUntil: null,
        };
  };
  const series = lines.map((line) => ({ ...line, ...ofLine(line) }));
  const nextUntil =
    series
      .flatMap((each) => each.nextUntil ?? [])
      .sort()
      .at(-1) ?? (asked < start ? toIso(start) : null);
  // All series end at the same moment.
  const isShown = ({ from }: Trends["points"][number]) =>
    interval !== "eval" || nextUntil === null || from >= nextUntil;
  const [shown, ...others] = series;
  return {
    agent: newest?.agent ?? null,
    model: newest?.model || null,
    methodology: newest?.methodology ?? null,
    scope: newest?.scope ?? null,
    points: shown?.points.filter(isShown) ?? pointsOf(interval, [], failed),
    others: others
      .map(({ days: [day], points }) => ({
        methodology: (day as ScoreDay).methodology,
        scope: (day as ScoreDay).scope,
        points: points.filter(isShown),
      }))
      .filter(({ points }) => points.length > 0),
    changes: shown ? changesOf(context, shown.days, levelsOf(shown.days)) : [],
    cells: [...Map.groupBy(found.days, lineOf).values()].map((same) => {
      const [{ agent, model, methodology, scope }] = same as [ScoreDay];
      return {
        agent,
        model: model || null,
        methodology,
        scope,
        n: same.reduce((n, { scores }) => n + scores.length, 0),
      };
    }),
    nextUntil,
  };
}

/** The days of one methodology. Failures in the period are added, because they would have been graded with it. */
type DatedLine = { days: ScoreDay[]; from: number; to: number };

/** The days of one agent and model, as one series per methodology, the most recent first. */
function linesOf(days: ScoreDay[]): DatedLine[] {
  const lines = [...Map.groupBy(days, lineOf).values()];
  const starts = lines.map(([first]) => first?.day ?? 0).sort((a, b) => a - b);
  const lastOf = (line: ScoreDay[]) => Math.max(...line.map(({ lastAt }) => lastAt));
  return lines
    .map((line) => {
      const at = starts.indexOf(line[0]?.day ?? 0);
      const [from, to] = [at === 0 ? 0 : (starts[at] ?? 0), starts[at + 1] ?? Number.POSITIVE_INFINITY];
      return { days: line, from, to };
    })
    .sort((a, b) => lastOf(b.days) - lastOf(a.days))
    .slice(0, 1 + maxOthers);
}

/** The given prompt, or all except canaries, whose docs never change. */
function promptsOf({ db }: Pick<Deps, "db">, org: OrgId, promptId: string | undefined): string[] {
  const which = promptId === undefined ? ne(prompts.isCanary, true) : eq(prompts.id, promptId.toLowerCase());
  const ids = db
    .select({ id: prompts.id })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), which))
    .all()
    .map(({ id }) => id);
  if (promptId !== undefined && ids.length === 0) throw notFound(`No prompt has the ID ${promptId}.`);
  return ids;
}

/**
 * The newest scores. Over several prompts, each is relative to the mean of its own prompt, so that it doesn't matter
 * which prompts ran when.
 */
function levelsOf(days: ScoreDay[]): Level[] {
  const byPrompt = Map.groupBy(days, ({ promptId }) => promptId);
  const means = new Map([...byPrompt].map(([id, own]) => [id, mean(own.flatMap(({ scores }) => scores))]));
  const levels: Level[][] = [];
  for (let i = days.length - 1, n = 0; i >= 0 && n < maxScores; i--) {
    const { day, promptId, scores } = days[i] as ScoreDay;
    const centre = byPrompt.size > 1 ? (means.get(promptId) ?? 0) : 0;
    levels.push(scores.map((score) => ({ at: day, value: score - centre })));
    n += scores.length;
  }
  return levels.reverse().flat().slice(-maxScores);
}

function pointsOf(interval: Interval, days: ScoreDay[], failed: Failed[]): Trends["points"] {
  const spans = Map.groupBy(days, ({ day }) => startOf(interval, day));
  const misses = Map.groupBy(failed, ({ at }) => startOf(interval, at));
  const starts = [...new Set([...spans.keys(), ...misses.keys()])].sort((a, b) => a - b);
  return starts.map((at) => pointOf(at, spans.get(at) ?? [], misses.get(at) ?? []));
}

/** One interval: the runs of a single prompt, or the means of several prompts. */
function pointOf(at: number, days: ScoreDay[], failed: Failed[]): Trends["points"][number] {
  const ids = [...new Set([...days, ...failed].map(({ promptId }) => promptId))];
  const each = ids.map((id) => {
    const own = days.filter(({ promptId }) => promptId === id);
    const lost = unsuccessfulOf(failed.filter(({ promptId }) => promptId === id));
    const total = (name: "succeeded" | "judged") => own.reduce((sum, day) => sum + day[name], 0);
    return {
      scores: own.flatMap(({ scores }) => scores),
      seconds: own.flatMap(({ seconds }) => seconds),
      costs: own.flatMap(({ costsUsd }) => costsUsd),
      succeeded: total("succeeded"),
      judged: total("judged") + lost,
    };
  });
  const scored = each.filter(({ scores }) => scores.length > 0);
  const judged = each.filter((one) => one.judged > 0);
  const middle = (name: "seconds" | "costs") => median(each.flatMap((one) => median(one[name]) ?? []));
  const [only] = judged;
  const scores = scored.length === 1 ? (scored[0]?.scores ?? []) : scored.map((one) => mean(one.scores));
  const rate =
    only && judged.length === 1
      ? wilson(only.succeeded, only.judged)
      : meanInterval(judged.map((one) => (100 * one.succeeded) / one.judged));
  const share = judged.length === 1 ? 1 : 100;
  const { value, low, high } = rounded(
    scores.length === 0 ? { value: 0, low: null, high: null } : meanInterval(scores),
    1,
  );
  const part = (n: number | null) => (n === null ? null : n / share);
  return {
    from: toIso(at),
    prompts: ids.length,
    n: scored.reduce((n, one) => n + one.scores.length, 0),
    infraFailures: infraFailuresOf(failed),
    score: scores.length === 0 ? null : { mean: value, low, high },
    successRate:
      judged.length === 0
        ? null
        : {
            ...rounded({ value: rate.value / share, low: part(rate.low), high: part(rate.high) }, 3),
            of: judged.reduce((n, one) => n + one.judged, 0),
          },
    medianSeconds: fixed(middle("seconds"), 1),
    medianCostUsd: fixed(middle("costs"), 4),
  };
}

const fixed = (value: number | null, digits: number) => (value === null ? null : Number(value.toFixed(digits)));

function startOf(interval: Interval, at: number): number {
  const date = new Date(at);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (interval === "month") return Date.UTC(year, month, 1);
  return Date.UTC(year, month, interval === "week" ? day - ((date.getUTCDay() + 6) % 7) : day);
}
