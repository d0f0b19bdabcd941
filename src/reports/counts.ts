import { eq } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { exposures } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import type { Counted } from "../friction/lifecycle-rows.ts";
import { type AnnounceFriction, createLifecycles } from "../friction/lifecycles.ts";
import { createPageCounts } from "../friction/page-counts.ts";
import type { Exposure } from "../grading/grade.ts";

/** Stores what a session reached, in place of what was stored before. */
export function writeExposure(
  tx: Tx,
  owner: { orgId: string; reportId: string },
  { listed: _, ...exposure }: Exposure,
): void {
  tx.insert(exposures)
    .values({ ...owner, ...exposure })
    .onConflictDoUpdate({ target: exposures.reportId, set: exposure })
    .run();
}

type Counter = (tx: Tx, counted: Counted, by: 1 | -1) => void;
export type CountReport = ReturnType<typeof createCounts>;

/** Aggregates over many reports. Called in the transaction that publishes or withdraws one. */
export function createCounts({ db }: { db: Db }, others: Counter[], announceFriction?: AnnounceFriction) {
  const counters: Counter[] = [createLifecycles({ db }, announceFriction), createPageCounts({ db }), ...others];

  /** A published report starts (`by` 1) or stops (-1) counting. */
  return function count(tx: Tx, reportId: string, by: 1 | -1): void {
    const counted = tx
      .select({ report: reports, run: runs, exposure: exposures })
      .from(reports)
      .innerJoin(runs, eq(runs.id, reports.runId))
      .leftJoin(exposures, eq(exposures.reportId, reports.id))
      .where(eq(reports.id, reportId))
      .get();
    if (counted) for (const counter of counters) counter(tx, counted, by);
  };
}
