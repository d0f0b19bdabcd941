import { and, eq } from "drizzle-orm";
import type { Tx } from "../db/open.ts";
import { scoreDays } from "../db/tables/trends.ts";
import type { Counted } from "../friction/lifecycle-rows.ts";
import { comparedScope } from "./differences.ts";

const dayMs = 24 * 3600_000;

type DayRow = typeof scoreDays.$inferSelect;

/** The columns of a day that have an entry for each of its runs, in order of time. */
export const dayLists = ["times", "scores", "seconds", "costsUsd", "met"] as const;

/** Adds a published live report (`by` 1) to the results of its day, or removes it (-1). */
export function countScore(tx: Tx, { report, run }: Counted, by: 1 | -1): void {
  if (Object.keys(run.urlMap).length > 0) return;
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
  const own = and(...(Object.keys(key) as (keyof typeof key)[]).map((name) => eq(scoreDays[name], key[name])));
  const before = tx.select().from(scoreDays).where(own).get();
  const result = {
    times: run.createdAt - day,
    scores: score,
    seconds: metrics.timeSeconds,
    costsUsd: metrics.costUsd,
    met: outcome === "succeeded" ? 1 : outcome === "goal_not_met" ? 0 : null,
  } as const;
  const row = before ?? { ...key, times: [], scores: [], seconds: [], costsUsd: [], met: [] };
  const isOwn = (i: number) => dayLists.every((name) => row[name][i] === result[name]);
  const later = row.times.findIndex((time) => time > result.times);
  const index = by < 0 ? row.times.findIndex((_time, i) => isOwn(i)) : later < 0 ? row.times.length : later;
  if (index < 0) return;
  const changed = dayLists.map((name) => {
    const list: (number | null)[] = row[name];
    return [name, by > 0 ? list.toSpliced(index, 0, result[name]) : list.toSpliced(index, 1)];
  });
  const next: DayRow = { ...row, ...Object.fromEntries(changed) };
  if (next.times.length === 0) tx.delete(scoreDays).where(own).run();
  else if (before) tx.update(scoreDays).set(next).where(own).run();
  else tx.insert(scoreDays).values(next).run();
}
