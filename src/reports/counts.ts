import { eq } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { exposures } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { scoreChanges } from "../db/tables/trends.ts";
import { isLive } from "../friction/lifecycle-rows.ts";
import { updateLifecycles } from "../friction/lifecycles.ts";
import { updatePageCounts } from "../friction/page-counts.ts";
import type { Exposure } from "../grading/grade.ts";
import { announceFriction } from "./announcements.ts";
import { updateScoreDays } from "./score-days.ts";

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

/**
 * Adds a report to everything that is counted over reports, or takes it away. `announces`: whether new and regressed friction is announced,
 * which is not so for imported reports.
 */
export function updateReportCounts(
  ctx: Context,
  tx: Tx,
  reportId: string,
  delta: 1 | -1,
  { announces = true }: { announces?: boolean } = {},
): void {
  const countedReport = tx
    .select({ report: reports, run: runs, exposure: exposures })
    .from(reports)
    .innerJoin(runs, eq(runs.id, reports.runId))
    .leftJoin(exposures, eq(exposures.reportId, reports.id))
    .where(eq(reports.id, reportId))
    .get();
  if (!countedReport) return;
  updateLifecycles(ctx, tx, countedReport, delta, (...event) => {
    if (announces) announceFriction(ctx, ...event);
  });
  updatePageCounts(ctx, tx, countedReport, delta);
  updateScoreDays(ctx, tx, countedReport, delta);
  const { orgId, promptId, urlMap } = countedReport.run;
  if (!isLive({ urlMap })) return;
  tx.insert(scoreChanges)
    .values({ orgId, promptId, isStale: true })
    .onConflictDoUpdate({ target: [scoreChanges.orgId, scoreChanges.promptId], set: { isStale: true } })
    .run();
}
