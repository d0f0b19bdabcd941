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

/** 1: the goal was reached. Other outcomes say nothing about it. */
const goalsMet: Partial<Record<Outcome, 0 | 1>> = { succeeded: 1, goal_not_met: 0 };

type StoredDay = typeof scoreDays.$inferSelect;
/** The lists of a stored day, each with one entry per run, null for what it lacks, in the order of their times. */
const listNames = ["times", "scores", "seconds", "costsUsd", "met"] as const;

/** The results of one day in the time zone of the organization. Its lists leave out runs without a score, time or cost. */
export type ScoreDay = Omit<StoredDay, (typeof listNames)[number]> & {
  /** When the last of its runs was requested. */
  lastAt: number;
  scores: number[];
  seconds: number[];
  costsUsd: number[];
  succeeded: number;
  judged: number;
};

/** Adds the result of a report on the live docs to its day, or takes it away. */
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
  const result = {
    times: run.createdAt - day,
    scores: score,
    seconds: metrics.timeSeconds,
    costsUsd: metrics.costUsd,
    met: goalsMet[outcome] ?? null,
  } as const;
  const row = storedDay ?? { ...key, times: [], scores: [], seconds: [], costsUsd: [], met: [] };
  // It goes behind those of the same time. To take it away, any equal one will do.
  const isResultAt = (i: number) => listNames.every((name) => row[name][i] === result[name]);
  const index =
    delta > 0 ? row.times.filter((time) => time <= result.times).length : row.times.findIndex((_, i) => isResultAt(i));
  if (index < 0) return;
  const changedLists = listNames.map((name) => {
    const list: (number | null)[] = row[name];
    return [name, delta > 0 ? list.toSpliced(index, 0, result[name]) : list.toSpliced(index, 1)];
  });
  const next: StoredDay = { ...row, ...Object.fromEntries(changedLists) };
  if (next.times.length === 0) tx.delete(scoreDays).where(dayCondition).run();
  else if (storedDay) tx.update(scoreDays).set(next).where(dayCondition).run();
  else tx.insert(scoreDays).values(next).run();
}

const isNumber = (value: number | null | undefined): value is number => typeof value === "number";

/** The runs of a day in UTC, by the day of a time zone. */
function* daysOf(row: StoredDay, startOfDay: (at: number) => number): Generator<ScoreDay> {
  const { times, scores, seconds, costsUsd, met, ...key } = row;
  for (let from = 0; from < times.length; ) {
    const day = startOfDay(row.day + times[from]!);
    // Most rows are of one day, which their last run tells.
    const isLastDay = startOfDay(row.day + times.at(-1)!) === day;
    const to = isLastDay ? times.length : times.findIndex((time, i) => i > from && startOfDay(row.day + time) !== day);
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
 * The days of prompts in a period, oldest first, and the failures in it. `startOfDay` returns the start of the day of a time.
 * Queried prompt by prompt: with a list, SQLite's planner may choose a full table scan.
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

/** The days of the agent and model with the most scores, so that one run of another agent doesn't replace a long series. */
export function daysOfMainAgent(days: ScoreDay[]): ScoreDay[] {
  const groups = [...Map.groupBy(days, ({ agent, model }) => `${agent} ${model}`).values()];
  const sizeOf = (group: ScoreDay[]) => group.reduce((n, { scores }) => n + scores.length, 0);
  const lastOf = (group: ScoreDay[]) => Math.max(...group.map(({ lastAt }) => lastAt));
  // Of two with as many runs, the one that ran last.
  const [mainGroup] = groups.sort((a, b) => sizeOf(b) - sizeOf(a) || lastOf(b) - lastOf(a));
  return mainGroup ?? [];
}
