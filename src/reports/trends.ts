import { type Static, Type } from "@sinclair/typebox";
import { and, desc, eq, gte, isNull, lt, ne, or, sql } from "drizzle-orm";
import { reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { Nullable, OneOf, Time, toInstant } from "../schema.ts";
import { Repeats, sumUp } from "./repeats.ts";
import { RunReport, reportFilter } from "./schema.ts";

const intervals = ["day", "week", "month"] as const;
type Interval = (typeof intervals)[number];

/** Days that are shown where nobody says since when. */
const daysShown: Record<Interval, number> = { day: 30, week: 182, month: 730 };
const dayMs = 24 * 3600_000;
/** Runs that one answer looks at, the newest first. */
const maxRuns = 10_000;

const { promptId, agent, since, until } = reportFilter;
export const trendFilter = {
  promptId,
  agent,
  since,
  until,
  interval: Type.Optional(OneOf(intervals, "Calendar days, weeks from Monday or months, in UTC; default week")),
};
const TrendFilter = Type.Object(trendFilter);
type TrendFilter = Static<typeof TrendFilter>;

export const Trends = Type.Object({
  agent: Nullable(Type.String()),
  model: Nullable(Type.String()),
  methodology: Nullable(RunReport.properties.methodology),
  points: Type.Array(Type.Object({ from: Time, ...Repeats.properties }), {
    description: "Oldest first; spans without a run are left out",
  }),
  changes: Type.Array(Type.Object({ at: Time, what: Type.String(), from: Type.String(), to: Type.String() }), {
    description: "What may move the line beside the target itself",
  }),
  leftOut: Type.Integer({
    description: "Reports of another agent, model or methodology",
  }),
  nextUntil: Nullable(Type.String({ description: "until of the page before; null if there is none" })),
});
export type Trends = Static<typeof Trends>;

/** Scores over time, of one agent, model and methodology: those of the newest report that matches. Throws bad_request for a moment that is none. */
export function getTrends({ db, now }: Pick<Deps, "db" | "now">, org: OrgId, filter: TrendFilter): Trends {
  const { promptId, agent, since, until, interval = "week" } = filter;
  const end = until === undefined ? now() + 1 : toInstant("until", until);
  const start = since === undefined ? startOf(interval, end - daysShown[interval] * dayMs) : toInstant("since", since);
  const found = db
    .select({
      at: runs.createdAt,
      failureReason: runs.failureReason,
      agent: runs.agent,
      version: runs.agentVersion,
      model: runs.model,
      report: {
        outcome: reports.outcome,
        score: reports.score,
        seconds: sql<number | null>`json_extract(${reports.metrics}, '$.timeSeconds')`,
        costUsd: sql<number | null>`json_extract(${reports.metrics}, '$.costUsd')`,
        methodology: reports.methodology,
      },
    })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .where(
      and(
        eq(runs.orgId, org),
        promptId === undefined ? undefined : eq(runs.promptId, promptId.toLowerCase()),
        agent === undefined ? undefined : eq(runs.agent, agent),
        // Ids follow time, and are what the index of a prompt's runs is ordered by.
        gte(runs.id, firstIdAt(start)),
        lt(runs.id, firstIdAt(end)),
        or(eq(runs.status, "completed"), eq(runs.status, "failed")),
        or(isNull(reports.status), ne(reports.status, "archived")),
      ),
    )
    .orderBy(desc(runs.id))
    .limit(maxRuns + 1)
    .all()
    .map(({ report, ...run }) => ({ ...run, report: report?.outcome == null ? null : report }));
  const from = found.length > maxRuns ? wholeFrom(found, interval) : null;
  const rows = from === null ? found : found.filter(({ at }) => at >= from);
  const newest = rows.find(({ report }) => report !== null);
  const methodology = newest?.report?.methodology ?? null;
  const alike = rows.filter(
    (row) =>
      row.agent === newest?.agent &&
      row.model === newest.model &&
      (row.report === null || row.report.methodology.hash === methodology?.hash),
  );
  const series = newest === undefined ? rows : alike;
  const spans = Map.groupBy(series.toReversed(), ({ at }) => startOf(interval, at));
  const points = [...spans].map(([at, inside]) => ({ from: toIso(at), ...sumUp(inside) }));
  return {
    agent: newest?.agent ?? null,
    model: newest?.model ?? null,
    methodology,
    points,
    changes: changesOf(series.toReversed()),
    leftOut:
      rows.filter(({ report }) => report !== null).length - series.filter(({ report }) => report !== null).length,
    nextUntil: from === null ? null : toIso(from),
  };
}

/** Where the oldest span begins that has all its runs, or the oldest moment that has, in a list that was cut at its oldest run. */
function wholeFrom(newestFirst: { at: number }[], interval: Interval): number {
  const cutAt = (newestFirst.at(-1) as { at: number }).at;
  const span = startOf(interval, cutAt);
  const whole = newestFirst.findLast(({ at }) => startOf(interval, at) > span);
  return whole ? startOf(interval, whole.at) : cutAt + 1;
}

const toIso = (at: number) => new Date(at).toISOString();

/** The least UUIDv7 of a moment. */
function firstIdAt(at: number): string {
  const hex = Math.max(0, Math.min(at, 2 ** 48 - 1))
    .toString(16)
    .padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

function startOf(interval: Interval, at: number): number {
  const date = new Date(at);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (interval === "month") return Date.UTC(year, month, 1);
  return Date.UTC(year, month, interval === "week" ? day - ((date.getUTCDay() + 6) % 7) : day);
}

type Dated = { at: number; version: string | null; report: object | null };

/** Where the agent became another version. */
function changesOf(rows: Dated[]): Trends["changes"] {
  const known = rows.filter(({ report, version }) => report !== null && version !== null);
  return known.flatMap(({ at, version }, i) => {
    const before = known[i - 1]?.version ?? version;
    return before === version ? [] : [{ at: toIso(at), what: "agent version", from: before ?? "", to: version ?? "" }];
  });
}
