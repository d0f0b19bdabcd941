import { eq } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { exposures, reports, runs } from "../db/tables.ts";
import { createPageCounts } from "../friction/docs-map.ts";
import type { Counted } from "../friction/lifecycle-rows.ts";
import { createLifecycles } from "../friction/lifecycles.ts";
import type { Exposure } from "../grading/grade.ts";

/** Notes what a session came to, in the place of what was noted before. */
export function writeExposure(
  t: Tx,
  owner: { orgId: string; reportId: string },
  { listed: _, ...exposure }: Exposure,
): void {
  t.insert(exposures)
    .values({ ...owner, ...exposure })
    .onConflictDoUpdate({ target: exposures.reportId, set: exposure })
    .run();
}

type Counter = (t: Tx, counted: Counted, by: 1 | -1) => void;
export type CountReport = ReturnType<typeof createCounts>;

/** What is kept over many reports, so that nobody has to read them all: called in the transaction in which a published one comes or goes. */
export function createCounts({ db }: { db: Db }, others: Counter[]) {
  const counters: Counter[] = [createLifecycles({ db }), createPageCounts({ db }), ...others];

  /** A published report begins (`by` 1) or ceases (-1) to count. */
  return function count(t: Tx, reportId: string, by: 1 | -1): void {
    const counted = t
      .select({ report: reports, run: runs, exposure: exposures })
      .from(reports)
      .innerJoin(runs, eq(runs.id, reports.runId))
      .leftJoin(exposures, eq(exposures.reportId, reports.id))
      .where(eq(reports.id, reportId))
      .get();
    if (counted) for (const counter of counters) counter(t, counted, by);
  };
}
