import { eq } from "drizzle-orm";
import { type Context, perContext } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { exposures } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { createLifecycles } from "../friction/lifecycles.ts";
import { createPageCounts } from "../friction/page-counts.ts";
import type { Exposure } from "../grading/grade.ts";
import { announceFriction } from "./announcements.ts";
import { countScore } from "./score-counts.ts";

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

const countersOf = perContext((ctx) => ({
  countLifecycles: createLifecycles(ctx, (tx, type, counted, point) => announceFriction(ctx, tx, type, counted, point)),
  countLifecyclesSilently: createLifecycles(ctx),
  countPages: createPageCounts(ctx),
}));

/**
 * Updates what is aggregated over many reports when a report starts (`by` 1) or stops (-1) counting, in the transaction that publishes or
 * withdraws it. `announces` false: for reports of the past, of which nobody is notified.
 */
export function countReport(ctx: Context, tx: Tx, reportId: string, by: 1 | -1, { announces = true } = {}): void {
  const counted = tx
    .select({ report: reports, run: runs, exposure: exposures })
    .from(reports)
    .innerJoin(runs, eq(runs.id, reports.runId))
    .leftJoin(exposures, eq(exposures.reportId, reports.id))
    .where(eq(reports.id, reportId))
    .get();
  if (!counted) return;
  const { countLifecycles, countLifecyclesSilently, countPages } = countersOf(ctx);
  (announces ? countLifecycles : countLifecyclesSilently)(tx, counted, by);
  countPages(tx, counted, by);
  countScore(tx, counted, by);
}
