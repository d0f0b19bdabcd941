import { and, eq, gt, lt, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import { prepared } from "../db/prepared.ts";
import { madeWithin } from "../db/rows.ts";
import { runs } from "../db/tables/runs.ts";
import { scoreDays } from "../db/tables/trends.ts";
import type { dayLists } from "../reports/score-counts.ts";

const dayMs = 24 * 3600_000;

type StoredDay = typeof scoreDays.$inferSelect;

/** The results of one day in the time zone of the organization. Runs without a score, time or cost have no entry in that list. */
export type ScoreDay = Omit<StoredDay, (typeof dayLists)[number]> & {
  /** When the last of its runs was requested. */
  lastAt: number;
  scores: number[];
  seconds: number[];
  costsUsd: number[];
  succeeded: number;
  judged: number;
};

const isNumber = (value: number | null | undefined): value is number => typeof value === "number";

/** The runs of a day in UTC, by the day of a time zone. */
function* daysOf(row: StoredDay, dayOf: (at: number) => number): Generator<ScoreDay> {
  const { times, scores, seconds, costsUsd, met, ...key } = row;
  for (let from = 0; from < times.length; ) {
    const day = dayOf(row.day + times[from]!);
    const isLast = dayOf(row.day + times.at(-1)!) === day;
    const next = isLast ? -1 : times.findIndex((time, i) => i > from && dayOf(row.day + time) !== day);
    const to = next < 0 ? times.length : next;
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
export type Failed = Pick<typeof runs.$inferSelect, "promptId" | "agent" | "failureCause"> & {
  at: number;
  model: string;
};

/**
 * The days of prompts in a period, oldest first, and the failures in it. `dayOf` returns the start of the day of a time.
 * Queried prompt by prompt: with a list, SQLite's planner may choose a full table scan.
 */
export function readScoreDays(
  { db }: Pick<Context, "db">,
  org: string,
  promptIds: string[],
  [start, end]: [number, number],
  dayOf: (at: number) => number,
) {
  const promptId = sql.placeholder("prompt");
  const ofDays = prepared(
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
  const ofFailed = prepared(
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
          madeWithin(runs.id, [start, end]),
          // A literal, because SQLite wouldn't use the partial index with a parameter.
          sql`${runs.status} = 'failed' and ${runs.urlMap} = '{}'`,
        ),
      ),
  );
  const days = promptIds
    .flatMap((prompt) => ofDays.all({ prompt }).flatMap((row) => [...daysOf(row, dayOf)]))
    .filter(({ day }) => day >= start && day < end);
  const failed: Failed[] = promptIds.flatMap((prompt) => ofFailed.all({ prompt }));
  return { days: days.sort((a, b) => a.day - b.day || a.lastAt - b.lastAt), failed };
}

/** The days of the agent and model with the most scores, so that one run of another agent doesn't replace a long series. */
export function mostRuns(days: ScoreDay[]): ScoreDay[] {
  const groups = [...Map.groupBy(days, ({ agent, model }) => `${agent} ${model}`).values()];
  const sizeOf = (group: ScoreDay[]) => group.reduce((n, { scores }) => n + scores.length, 0);
  const lastOf = (group: ScoreDay[]) => Math.max(...group.map(({ lastAt }) => lastAt));
  // Of two with as many runs, the one that ran last.
  const [most] = groups.sort((a, b) => sizeOf(b) - sizeOf(a) || lastOf(b) - lastOf(a));
  return most ?? [];
}
