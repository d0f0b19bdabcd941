import { and, eq, gte, lt, max, ne, sql } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { firstIdOf } from "../db/rows.ts";
import { reports, runs, scoreDays } from "../db/tables.ts";
import type { Deps } from "../deps.ts";
import type { Counted } from "../friction/lifecycle-rows.ts";
import { comparedScope } from "../reports/differences.ts";

const dayMs = 24 * 3600_000;

export type ScoreDay = typeof scoreDays.$inferSelect;

const isLive = ({ urlMap }: { urlMap: object }) => Object.keys(urlMap).length === 0;
const lists = ["scores", "seconds", "costsUsd"] as const;

/** Maintains the results of each day. Called in the transaction that publishes or withdraws a live report. */
export function createScoreCounts(_: { db: Db }) {
  return function countScore(t: Tx, { report, run }: Counted, by: 1 | -1): void {
    if (!isLive(run)) return;
    const { outcome, score, metrics, methodology } = report;
    const scope = comparedScope({ scope: report.scope, judge: methodology.judge });
    const key = {
      orgId: run.orgId,
      promptId: run.promptId,
      day: Math.floor(run.createdAt / dayMs) * dayMs,
      agent: run.agent,
      version: run.agentVersion ?? "",
      model: run.model ?? "",
      methodology,
      scope,
    };
    const own = and(...(Object.keys(key) as (keyof typeof key)[]).map((name) => eq(scoreDays[name], key[name])));
    const before = t.select().from(scoreDays).where(own).get();
    const last = by > 0 ? run.createdAt : lastOf(t, { report, run });
    if (last === null) {
      t.delete(scoreDays).where(own).run();
      return;
    }
    if (!before && by < 0) return;
    const empty = { succeeded: 0, judged: 0, scores: [], seconds: [], costsUsd: [], lastAt: 0 };
    const day: ScoreDay = before ?? { ...key, ...empty };
    const given = { scores: score, seconds: metrics.timeSeconds, costsUsd: metrics.costUsd };
    const changed = lists.map((name) => [name, by > 0 ? plus(day[name], given[name]) : minus(day[name], given[name])]);
    const row: ScoreDay = {
      ...day,
      ...Object.fromEntries(changed),
      lastAt: by > 0 ? Math.max(day.lastAt, last) : last,
      succeeded: day.succeeded + (outcome === "succeeded" ? by : 0),
      judged: day.judged + (outcome === "succeeded" || outcome === "goal_not_met" ? by : 0),
    };
    if (before) t.update(scoreDays).set(row).where(own).run();
    else t.insert(scoreDays).values(row).run();
  };
}

/** When the last other counted run of the same day, agent, model and methodology was requested; null if there is none. */
function lastOf(t: Tx, { report, run }: Pick<Counted, "report" | "run">): number | null {
  const day = Math.floor(run.createdAt / dayMs) * dayMs;
  const same = sql`${runs.agent} = ${run.agent} and ${runs.agentVersion} is ${run.agentVersion} and ${runs.model} is ${run.model}`;
  const row = t
    .select({ at: max(runs.createdAt) })
    .from(runs)
    .innerJoin(reports, eq(reports.runId, runs.id))
    .where(
      and(
        eq(runs.orgId, run.orgId),
        eq(runs.promptId, run.promptId),
        gte(runs.id, firstIdOf(day)),
        lt(runs.id, firstIdOf(day + dayMs)),
        ne(runs.id, run.id),
        sql`${same} and ${runs.urlMap} = '{}'`,
        eq(reports.status, "published"),
        eq(reports.methodology, report.methodology),
        // An unclear goal counts as tested.
        report.methodology.judge === null ? eq(reports.scope, report.scope) : undefined,
      ),
    )
    .get();
  return row?.at ?? null;
}

const plus = (list: number[], value: number | null): number[] => (value === null ? list : [...list, value]);

function minus(list: number[], value: number | null): number[] {
  const at = value === null ? -1 : list.indexOf(value);
  return at < 0 ? list : list.toSpliced(at, 1);
}

/** A live run that ended without a report. */
export type Failed = Pick<typeof runs.$inferSelect, "promptId" | "agent" | "failureCause"> & {
  at: number;
  model: string;
};

/**
 * The days of prompts in a period, oldest first, and the failures in it. Queried prompt by prompt: with a list,
 * SQLite's planner may choose a full table scan.
 */
export function readScoreDays(
  { db }: Pick<Deps, "db">,
  org: string,
  promptIds: string[],
  [start, end]: [number, number],
) {
  const promptId = sql.placeholder("prompt");
  const ofDays = db
    .select()
    .from(scoreDays)
    .where(
      and(
        eq(scoreDays.orgId, org),
        eq(scoreDays.promptId, promptId),
        gte(scoreDays.day, start),
        lt(scoreDays.day, end),
      ),
    )
    .prepare();
  const ofFailed = db
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
        gte(runs.id, firstIdOf(start)),
        lt(runs.id, firstIdOf(end)),
        // A literal, because SQLite wouldn't use the partial index with a parameter.
        sql`${runs.status} = 'failed' and ${runs.urlMap} = '{}'`,
      ),
    )
    .prepare();
  const days = promptIds.flatMap((prompt) => ofDays.all({ prompt }));
  const failed: Failed[] = promptIds.flatMap((prompt) => ofFailed.all({ prompt }));
  return { days: days.sort((a, b) => a.day - b.day || a.lastAt - b.lastAt), failed };
}
