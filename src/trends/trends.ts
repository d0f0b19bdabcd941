import { type Static, Type } from "@sinclair/typebox";
import { and, eq, isNotNull, ne, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { cachedResult } from "../db/cache.ts";
import { timeZoneOf } from "../db/rows.ts";
import { prompts } from "../db/tables/prompts.ts";
import { badRequest, notFound } from "../errors.ts";
import { hasTag } from "../prompts/lists.ts";
import { RunReport, reportFilter } from "../reports/schema.ts";
import { daysOfMainAgent, type FailedRun, readScoreDays, type ScoreDay } from "../reports/score-days.ts";
import { Nullable, OneOf, toInstant, toIso } from "../schema.ts";
import { mean } from "../stats/estimates.ts";
import { Change, type ChangeContext, type ComparedChange, changesOf, type Level, maxScores } from "./drift.ts";
import { listEvaluationPoints } from "./evaluation-points.ts";
import { Points, pointsOf } from "./points.ts";

const intervals = ["day", "week", "month", "eval"] as const;
type Interval = (typeof intervals)[number];

/** Maximum number of other series of the same agent and model. */
const maxOthers = 8;

/** Days that are shown by default. */
const defaultDays: Record<Interval, number> = { day: 30, week: 182, month: 730, eval: 182 };
const dayMs = 24 * 3600_000;
const maxPoints = 200;
/** Maximum number of days that one point covers. It limits the period. */
const maxDaysPerPoint: Record<Interval, number> = { day: 1, week: 7, month: 31, eval: 7 };

const { promptId, agent, since, until } = reportFilter;
export const trendFilter = {
  promptId,
  tag: Type.Optional(Type.String({ maxLength: 50, description: "All prompts with this tag" })),
  agent,
  model: Type.Optional(
    Type.String({
      maxLength: 200,
      description: "Default: the agent and model with the most runs, and the latest methodology",
    }),
  ),
  since,
  until,
  interval: Type.Optional(OneOf(intervals, "Weeks begin on Monday. eval: one point per evaluation, for one prompt")),
};
const TrendFilter = Type.Object(trendFilter);
type TrendFilter = Static<typeof TrendFilter>;

const seriesFields = {
  agentVersion: Nullable(Type.String()),
  contextDigest: Nullable(
    Type.String({ description: "Digest of the workspace at the start; null: empty, or several prompts" }),
  ),
  methodology: RunReport.properties.methodology,
  scope: RunReport.properties.scope,
};
const SeriesSummary = Type.Object({
  agent: Type.String(),
  model: Nullable(Type.String()),
  ...seriesFields,
  n: Type.Integer(),
});

export const Trends = Type.Object(
  {
    agent: Nullable(Type.String()),
    agentVersion: seriesFields.agentVersion,
    contextDigest: seriesFields.contextDigest,
    model: Nullable(Type.String()),
    methodology: Nullable(RunReport.properties.methodology),
    scope: Nullable(RunReport.properties.scope),
    points: Points,
    others: Type.Array(Type.Object({ ...seriesFields, points: Points }), {
      description:
        "The same agent and model with other versions, contexts, methodologies or scopes, newest first; not comparable with points",
    }),
    changes: Type.Array(Change, { description: "Level changes, and changes of the agent that may have caused them" }),
    series: Type.Array(SeriesSummary, {
      description: "All agents, versions, models and methodologies in this period; points cover only one",
    }),
    timeZone: Type.String({ description: "Time zone of the organization, in which days begin" }),
    nextUntil: Nullable(Type.String({ description: "until of the previous page; null if there is none" })),
  },
  { title: "Trends" },
);
export type Trends = Static<typeof Trends>;

/** What distinguishes one series from another. */
const seriesKeyOf = ({ agent, version, contextDigest, model, methodology, scope }: ScoreDay) =>
  [agent, version, contextDigest, model, methodology.hash, scope].join(" ");
const toSeriesFields = ({ version, contextDigest, methodology, scope }: ScoreDay) => ({
  agentVersion: version || null,
  contextDigest: contextDigest || null,
  methodology,
  scope,
});

/**
 * The results over time of one agent, version, model and methodology. Of all that match, the most recent ones are shown. Over several prompts, each
 * prompt counts equally in a point. Canaries are then excluded, and so are docs_only scores of prompts whose end goal repeats the docs.
 * `newestChange`: the newest significant change of the prompt. The changes contain it with the numbers that all pages show. Throws not_found, and
 * bad_request for an invalid time.
 */
export function getTrends(ctx: Context, org: OrgId, filter: TrendFilter, newestChange: ComparedChange | null): Trends {
  const { db, now } = ctx;
  const { interval = "week" } = filter;
  const timeZone = timeZoneOf(db, org);
  const startOf = createStartOf(interval, timeZone);
  const end = filter.until === undefined ? now() + 1 : toInstant("until", filter.until, timeZone);
  const requestedStart =
    filter.since === undefined
      ? end - defaultDays[interval] * dayMs
      : Math.min(end, toInstant("since", filter.since, timeZone));
  const start = startOf(Math.max(requestedStart, end - maxPoints * maxDaysPerPoint[interval] * dayMs));
  const isCut = requestedStart < start;
  if (filter.promptId !== undefined && filter.tag !== undefined) throw badRequest("Pass promptId or tag, not both.");
  if (interval === "eval" && filter.promptId === undefined)
    throw badRequest("Invalid interval: eval needs promptId. Set promptId, or use day, week or month.");
  const dayOf = interval === "day" ? startOf : createStartOf("day", timeZone);
  const compute = () => computeTrends(ctx, org, filter, newestChange, { start, isCut, end, timeZone, startOf, dayOf });
  // Until the next day begins, the result stays the same, except for evaluations.
  const cacheKey = ["trends", org, filter, newestChange, isCut, start, dayOf(end - 1), timeZone];
  return interval === "eval" ? compute() : cachedResult(db, cacheKey, compute);
}

/** Times are in epoch ms. `isCut`: the request had an earlier start, with which there would be too many points. */
type Span = {
  start: number;
  isCut: boolean;
  end: number;
  timeZone: string;
  startOf: (at: number) => number;
  dayOf: (at: number) => number;
};

function computeTrends(
  ctx: Context,
  org: OrgId,
  filter: TrendFilter,
  newestChange: ComparedChange | null,
  span: Span,
): Trends {
  const { start, timeZone, startOf, dayOf } = span;
  const ids = promptsOf(ctx, org, filter);
  const { failed, days } = readScoreDays(ctx, org, ids, [start, span.end], dayOf);
  const allDays = filter.promptId === undefined ? toComparableDays(ctx, org, days) : days;
  const matchingDays = allDays
    .filter(({ agent }) => filter.agent === undefined || agent === filter.agent)
    .filter(({ model }) => filter.model === undefined || model === filter.model);
  const selectedDays = filter.agent === undefined ? daysOfMainAgent(matchingDays) : matchingDays;
  const newest = selectedDays.toSorted((a, b) => a.lastAt - b.lastAt).at(-1);
  const matchingFailures = failed.filter((run) =>
    newest ? isSameAgent(run, newest) : filter.agent === undefined || run.agent === filter.agent,
  );
  const context: ChangeContext = { ctx, org, promptId: filter.promptId, matchingDays, dayOf };
  const allSeries = newest ? splitIntoSeries(matchingDays.filter((day) => isSameAgent(day, newest))) : [];
  const { series: seriesWithPoints, nextUntil } =
    filter.interval === "eval"
      ? withEvaluationPoints(ctx, org, ids[0] as string, allSeries, span)
      : { series: withIntervalPoints(allSeries, matchingFailures, startOf), nextUntil: null };
  // The first series belongs to the newest day.
  const [newestSeries, ...others] = seriesWithPoints;
  const comparedChange = newestSeries ? comparedChangeOf(newestChange, context, newestSeries) : null;
  const changes = newestSeries
    ? changesOf(context, newestSeries.days[0] as ScoreDay, levelsOf(newestSeries.days), comparedChange)
    : [];
  return {
    agent: newest?.agent ?? null,
    agentVersion: newest?.version || null,
    contextDigest: newest?.contextDigest || null,
    model: newest?.model || null,
    methodology: newest?.methodology ?? null,
    scope: newest?.scope ?? null,
    points: newestSeries?.points ?? pointsOf(startOf, [], matchingFailures),
    others: others
      .map(({ days: [day], points }) => ({ ...toSeriesFields(day as ScoreDay), points }))
      .filter(({ points }) => points.length > 0),
    changes,
    series: [...Map.groupBy(allDays, seriesKeyOf).values()].map(summarizeSeries),
    timeZone,
    nextUntil: nextUntil ?? (span.isCut ? toIso(start) : null),
  };
}

/** The days of several prompts that can be shown together. Contexts are ignored, because each prompt has its own. */
const toComparableDays = (ctx: Context, org: OrgId, days: ScoreDay[]): ScoreDay[] =>
  withoutRepeatedDocs(ctx, org, days).map((day) => ({ ...day, contextDigest: "" }));

/** Each series with one point per day, week or month. */
const withIntervalPoints = (allSeries: DatedSeries[], failed: FailedRun[], startOf: Span["startOf"]) =>
  allSeries.map((series) => {
    const failures = failed.filter(({ at }) => series.includes(at));
    return { ...series, points: pointsOf(startOf, series.days, failures) };
  });

/**
 * Each series with one point per evaluation. `nextUntil`: where all series begin. The next page has earlier points and ends there. null: there is no
 * next page.
 */
function withEvaluationPoints(ctx: Context, org: OrgId, promptId: string, allSeries: DatedSeries[], span: Span) {
  const period: [number, number] = [span.start, span.end];
  const pages = allSeries.map((series) => {
    const [day] = series.days as [ScoreDay];
    const query = { promptId, series: day, period, maxPoints, isWithinSeries: series.includes };
    return { ...series, ...listEvaluationPoints(ctx, org, query) };
  });
  const ends = pages.flatMap((page) => page.nextUntil ?? []);
  // From the latest of these times on, no series lacks points.
  const nextUntil = ends.toSorted().at(-1) ?? null;
  const isShown = ({ from }: Trends["points"][number]) => nextUntil === null || from >= nextUntil;
  return { series: pages.map((page) => ({ ...page, points: page.points.filter(isShown) })), nextUntil };
}

const isSameAgent = (a: { agent: string; model: string }, b: { agent: string; model: string }): boolean =>
  a.agent === b.agent && a.model === b.model;

function summarizeSeries(days: ScoreDay[]): Trends["series"][number] {
  const [day] = days as [ScoreDay];
  const n = days.reduce((sum, { scores }) => sum + scores.length, 0);
  return { agent: day.agent, model: day.model || null, ...toSeriesFields(day), n };
}

/** The newest change of the prompt, if it belongs to this series. */
function comparedChangeOf(newest: ComparedChange | null, { dayOf }: ChangeContext, { days }: DatedSeries) {
  const [first] = days;
  if (!first || newest?.agent !== first.agent || (newest.model ?? "") !== first.model) return null;
  const at = dayOf(Date.parse(newest.at));
  return at >= first.day && at <= (days.at(-1) ?? first).day ? newest : null;
}

/** The days of one series. `includes`: whether a failed run of this time belongs to the series, because its result would have belonged to it. */
type DatedSeries = { days: ScoreDay[]; includes: (at: number) => boolean };

/** Splits the days of one agent and model into one series per version, context, methodology and scope. The most recent series comes first. */
function splitIntoSeries(days: ScoreDay[]): DatedSeries[] {
  // The groups are in the order of their first days.
  const groups = [...Map.groupBy(days, seriesKeyOf).values()];
  const startOf = (series: ScoreDay[] | undefined) => series?.[0]?.day ?? Number.POSITIVE_INFINITY;
  const lastOf = (series: ScoreDay[]) => Math.max(...series.map(({ lastAt }) => lastAt));
  return (
    groups
      .map((group, i) => {
        const [from, until] = [i === 0 ? 0 : startOf(group), startOf(groups[i + 1])];
        return { days: group, includes: (at: number) => at >= from && at < until };
      })
      // If two series have the same time of the last run, the series that began later comes first.
      .reverse()
      .sort((a, b) => lastOf(b.days) - lastOf(a.days))
      .slice(0, 1 + maxOthers)
  );
}

/** Leaves out docs_only scores of prompts whose end goal repeats words of the docs, because an agent finds such docs by any word. */
function withoutRepeatedDocs({ db }: Context, org: OrgId, days: ScoreDay[]): ScoreDay[] {
  const isRepeated = sql`json_extract(${prompts.basis}, '$.ownGoal') = ${prompts.endGoal}`;
  const rows = db
    .select({ id: prompts.id })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), isNotNull(prompts.basis), isRepeated))
    .all();
  const ids = new Set(rows.map(({ id }) => id));
  return days.filter(({ scope, promptId }) => scope !== "docs_only" || !ids.has(promptId));
}

/** The given prompt, or else all prompts with the tag, or else all prompts. Canaries are left out unless given, because their docs never change. */
function promptsOf({ db }: Context, org: OrgId, { promptId, tag }: TrendFilter): string[] {
  const promptsOfTag = and(ne(prompts.isCanary, true), tag === undefined ? undefined : hasTag(tag));
  const promptCondition = promptId === undefined ? promptsOfTag : eq(prompts.id, promptId.toLowerCase());
  const query = db.select({ id: prompts.id }).from(prompts);
  const rows = query.where(and(eq(prompts.orgId, org), promptCondition)).all();
  const ids = rows.map(({ id }) => id);
  if (promptId !== undefined && ids.length === 0) throw notFound(`No prompt has the ID ${promptId}.`);
  return ids;
}

/**
 * The newest scores. Over several prompts, each score is shifted by the difference between its prompt's mean and the mean of all prompts. So it
 * doesn't matter which prompts ran when.
 */
function levelsOf(days: ScoreDay[]): Level[] {
  const byPrompt = Map.groupBy(days, ({ promptId }) => promptId);
  const means = new Map(
    [...byPrompt].map(([id, promptDays]) => [id, mean(promptDays.flatMap(({ scores }) => scores))]),
  );
  // Prompts without scores have no mean.
  const overall = mean([...means.values()].filter(Number.isFinite));
  const levels = days.flatMap(({ day, promptId, scores }) => {
    const promptOffset = byPrompt.size > 1 ? (means.get(promptId) ?? overall) - overall : 0;
    return scores.map((score) => ({ at: day, value: score - promptOffset }));
  });
  return levels.slice(-maxScores);
}

/** Every offset of a time zone from UTC is a multiple of this. */
const stepMs = 15 * 60_000;

/** Returns a function that finds the start of the interval that contains a time, and remembers it. Both times are epoch ms. Weeks start on Monday. */
function createStartOf(interval: Interval, timeZone: string): (at: number) => number {
  const starts = new Map<number, number>();
  return (at) => {
    const step = Math.floor(at / stepMs);
    const start = starts.get(step) ?? startOfInterval(interval, step * stepMs, timeZone);
    starts.set(step, start);
    return start;
  };
}

function startOfInterval(interval: Interval, at: number, timeZone: string): number {
  const day = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone).toPlainDate();
  const firstDays = { month: day.with({ day: 1 }), week: day.subtract({ days: day.dayOfWeek - 1 }), day, eval: day };
  return firstDays[interval].toZonedDateTime(timeZone).epochMilliseconds;
}
