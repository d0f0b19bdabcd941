import { and, asc, count, eq, isNotNull, sql } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import type { Context } from "../context.ts";
import { bisectRuns, type bisects } from "../db/tables/bisects.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { comparedScope } from "../reports/differences.ts";
import { costOfRuns } from "../runs/spending.ts";
import type { Bisection, BuildScore } from "../stats/bisection.ts";

export type BisectRow = typeof bisects.$inferSelect;

/** Whether a row belongs to a bisect. */
export const ofBisect = ({ id, orgId }: BisectRow) => and(eq(bisectRuns.orgId, orgId), eq(bisectRuns.bisectId, id));

/** The number of requested runs so far, and how many of them have ended. */
export function progressOf({ db }: Context, row: BisectRow): { ended: number; of: number } {
  const counts = db
    .select({ of: count(), ended: count(runs.completedAt) })
    .from(bisectRuns)
    .innerJoin(runs, eq(runs.id, bisectRuns.runId))
    .where(ofBisect(row))
    .get();
  return { ended: counts?.ended ?? 0, of: counts?.of ?? 0 };
}

/** What all its runs cost, with estimates, in USD. */
export const costOf = ({ db }: Context, row: BisectRow): number =>
  costOfRuns(db, db.select({ id: bisectRuns.runId }).from(bisectRuns).where(ofBisect(row)));

/** An ended run. `score`: null if it has none that can be compared with the scores of the good build. */
export type BuildRun = { build: number; evalRequestId: string; score: number | null; agent: string };

/**
 * The ended runs of a bisect, in the order in which they were requested. Only scores with the same scope as the first score of the good build count.
 */
export function listEndedRuns({ db }: Context, row: BisectRow): BuildRun[] {
  const rows = db
    .select({
      build: bisectRuns.build,
      evalRequestId: runs.evalRequestId,
      agent: runs.agent,
      score: reports.score,
      scope: reports.scope,
      judge: sql<string | null>`json_extract(${reports.methodology}, '$.judge')`,
    })
    .from(bisectRuns)
    .innerJoin(runs, eq(runs.id, bisectRuns.runId))
    .leftJoin(reports, and(eq(reports.runId, runs.id), sql`${reports.status} <> 'archived'`))
    .where(and(ofBisect(row), isNotNull(runs.completedAt)))
    .orderBy(asc(bisectRuns.step), asc(runs.id))
    .all()
    .map(({ scope, judge, ...run }) => ({ ...run, scope: scope === null ? null : comparedScope({ scope, judge }) }));
  const scopeOfGood = rows.find(({ build, score }) => build === 0 && score !== null)?.scope;
  return rows.map(({ scope, ...run }) => ({ ...run, score: scope === scopeOfGood ? run.score : null }));
}

export const scoresOf = (ended: BuildRun[]): BuildScore[] =>
  ended.flatMap(({ build, score }) => (score === null ? [] : [{ build, score }]));

/** The search of a bisect, for its next step. */
export const designOf = ({ commits, skipped }: BisectRow, ended: BuildRun[]): Bisection => ({
  last: commits.length - 1,
  skipped: new Set(skipped.map(({ build }) => build)),
  isDeterministic: ended.length > 0 && ended.every(({ agent }) => isRuleBased(agent)),
});
