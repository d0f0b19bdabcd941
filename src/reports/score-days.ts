import { and, eq, gt, lt, sql } from "drizzle-orm";
import type { Outcome } from "../agents/agent.ts";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { prepared } from "../db/prepared.ts";
import { createdWithin } from "../db/rows.ts";
import { isLiveRun, runs } from "../db/tables/runs.ts";
import { scoreDays } from "../db/tables/trends.ts";
import { type CountedReport, isLive } from "../friction/lifecycle-rows.ts";
import { comparedScope } from "./differences.ts";

const dayMs = 24 * 3600_000;

/** Whether an outcome means that the goal was reached. Other outcomes say nothing about the goal. */
const goalsMet: Partial<Record<Outcome, 0 | 1>> = { succeeded: 1, goal_not_met: 0 };

type StoredDay = typeof scoreDays.$inferSelect;
/** The lists of a stored day. Each list has one entry per run, ordered by time. The entry is null if the run lacks the value. */
const listNames = ["times", "scores", "seconds", "costsUsd", "met"] as const;

/** The results of one day in the time zone of the organization. If a run has no score, time or cost, the list leaves it out. */
export type ScoreDay = Omit<StoredDay, (typeof listNames)[number]> & {
  /** When the last run of this day was requested. */
  lastAt: number;
  scores: number[];
  seconds: number[];
  costsUsd: number[];
  succeeded: number;
  judged: number;
};

/** Adds the result of a report on the live docs to its day, or subtracts it. */
export function updateScoreDays(tx: Tx, { report, run }: CountedReport, delta: 1 | -1): void {
  if (!isLive(run)) return;
  const { outcome, score, metrics, methodology } = report;
  const day = Math.floor(run.createdAt / dayMs) * dayMs;
  const key = {
    orgId: run.orgId,
    promptId: run.promptId,
    day,
    agent: run.agent,
    version: run.agentVersion ?? "",
    contextDigest: run.contextDigest ?? "",
    model: run.model ?? "",
    methodology,
    scope: comparedScope({ scope: report.scope, judge: methodology.judge }),
  };
  const dayCondition = and(...(Object.keys(key) as (keyof typeof key)[]).map((name) => eq(scoreDays[name], key[name])));
  const storedDay = tx.select().from(scoreDays).where(dayCondition).get();
  const result: RunResult = {
    times: run.createdAt - day,
    scores: score,
    seconds: metrics.timeSeconds,
    costsUsd: metrics.costUsd,
    met: goalsMet[outcome] ?? null,
  };
  const row: StoredDay = storedDay ?? { ...key, times: [], scores: [], seconds: [], costsUsd: [], met: [] };
  const next = delta > 0 ? withResult(row, result) : withoutResult(row, result);
  if (next === row) return;
  if (next.times.length === 0) tx.delete(scoreDays).where(dayCondition).run();
  else if (storedDay) tx.update(scoreDays).set(next).where(dayCondition).run();
  else tx.insert(scoreDays).values(next).run();
}

/** The entries of one run in each list of a day. */
type RunResult = Record<(typeof listNames)[number], number | null> & { times: number };

/** Adds the entries of a run. They come after the entries of runs with the same time. */
function withResult(day: StoredDay, result: RunResult): StoredDay {
  const position = day.times.filter((time) => time <= result.times).length;
  return changeLists(day, (list, name) => list.toSpliced(position, 0, result[name]));
}

/** Removes the first entries that equal the entries of a run. Returns the same day if there are none. */
function withoutResult(day: StoredDay, result: RunResult): StoredDay {
  const position = day.times.findIndex((_, i) => listNames.every((name) => day[name][i] === result[name]));
  return position < 0 ? day : changeLists(day, (list) => list.toSpliced(position, 1));
}

type ResultList = (number | null)[];

function changeLists(
  day: StoredDay,
  change: (list: ResultList, name: (typeof listNames)[number]) => ResultList,
): StoredDay {
  return { ...day, ...Object.fromEntries(listNames.map((name) => [name, change(day[name], name)])) };
}

const isNumber = (value: number | null | undefined): value is number => typeof value === "number";

/** Splits a UTC day into the days of a time zone. */
function* daysOf(row: StoredDay, startOfDay: (at: number) => number): Generator<ScoreDay> {
  const { times, scores, seconds, costsUsd, met, ...key } = row;
  const dayOf = (time: number) => startOfDay(row.day + time);
  for (let from = 0; from < times.length; ) {
    const day = dayOf(times[from]!);
    // Comparing with the last run first is faster, because most rows fall on a single day.
    const isLastDay = dayOf(times.at(-1)!) === day;
    const to = isLastDay ? times.length : times.findIndex((time, i) => i > from && dayOf(time) !== day);
    const judged = met.slice(from, to).filter(isNumber);
    yield {
      ...key,
      day,
      lastAt: row.day + times[to - 1]!,
      scores: scores.slice(from, to).filter(isNumber),
      seconds: seconds.slice(from, to).filter(isNumber),
      costsUsd: costsUsd.slice(from, to).filter(isNumber),
      succeeded: judged.filter((each) => each === 1).length,
      judged: judged.length,
    };
    from = to;
  }
}

/** A live run that ended without a report. */
export type FailedRun = Pick<typeof runs.$inferSelect, "promptId" | "agent" | "failureCause"> & {
  at: number;
  model: string;
};

/**
 * The days of prompts in a period, oldest first, and the failed runs in it. `startOfDay` returns the start of the day that a time falls on. Each
 * prompt has its own query, because SQLite's planner may choose a full table scan for a list of prompts.
 */
export function readScoreDays(
  { db }: Context,
  org: string,
  promptIds: string[],
  [start, end]: [number, number],
  startOfDay: (at: number) => number,
) {
  const promptId = sql.placeholder("prompt");
  const storedDays = prepared(
    db
      .select()
      .from(scoreDays)
      .where(
        and(
          eq(scoreDays.orgId, org),
          eq(scoreDays.promptId, promptId),
          gt(scoreDays.day, start - dayMs),
          lt(scoreDays.day, end),
        ),
      ),
  );
  const failedRuns = prepared(
    db
      .select({
        promptId: runs.promptId,
        agent: runs.agent,
        model: sql<string>`coalesce(${runs.model}, '')`,
        failureCause: runs.failureCause,
        at: runs.createdAt,
      })
      .from(runs)
      .where(
        and(
          eq(runs.orgId, org),
          eq(runs.promptId, promptId),
          createdWithin(runs.id, [start, end]),
          // A literal, because SQLite wouldn't use the partial index with a parameter.
          sql`${runs.status} = 'failed' and ${isLiveRun}`,
        ),
      ),
  );
  const days = promptIds
    .flatMap((prompt) => storedDays.all({ prompt }).flatMap((row) => [...daysOf(row, startOfDay)]))
    .filter(({ day }) => day >= start && day < end);
  const failed: FailedRun[] = promptIds.flatMap((prompt) => failedRuns.all({ prompt }));
  return { days: days.sort((a, b) => a.day - b.day || a.lastAt - b.lastAt), failed };
}

/** The days of the agent and model with the most scores. This way, one run of another agent doesn't replace a long series. */
export function daysOfMainAgent(days: ScoreDay[]): ScoreDay[] {
  const groups = [...Map.groupBy(days, ({ agent, model }) => `${agent} ${model}`).values()];
  const sizeOf = (group: ScoreDay[]) => group.reduce((n, { scores }) => n + scores.length, 0);
  const lastOf = (group: ScoreDay[]) => Math.max(...group.map(({ lastAt }) => lastAt));
  // If two groups have the same number of scores, the group with the later last run wins.
  const [mainGroup] = groups.sort((a, b) => sizeOf(b) - sizeOf(a) || lastOf(b) - lastOf(a));
  return mainGroup ?? [];
}
