import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { exposures } from "../db/tables/friction.ts";
import { scoreChanges } from "../db/tables/trends.ts";
import { type CountedReport, findCounted, isLive } from "../friction/lifecycle-rows.ts";
import { updateLifecycles } from "../friction/lifecycles.ts";
import { updatePageCounts } from "../friction/page-counts.ts";
import type { Exposure } from "../grading/grade.ts";
import { announceFriction } from "./announcements.ts";
import { updateScoreDays } from "./score-days.ts";

/** Stores the pages that a session reached. Replaces what was stored before. `recordListedPages` stores the pages that were only listed. */
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
 * Applies a change to a report, and updates all figures about published reports: the lifecycles of friction, page visits and daily scores.
 * `announces`: whether to announce new and regressed friction; false for imported reports.
 */
export function countChange(
  ctx: Context,
  tx: Tx,
  reportId: string,
  change: () => void,
  { announces = true }: { announces?: boolean } = {},
): void {
  const before = findCounted(ctx, reportId);
  change();
  const after = findCounted(ctx, reportId);
  updateLifecycles(ctx, tx, before, after, (...announcement) => {
    if (announces) announceFriction(ctx, ...announcement);
  });
  if (before) countReport(ctx, tx, before, -1);
  if (after) countReport(ctx, tx, after, 1);
}

/** Adds the visits and the result of a report to the figures of its prompt (`delta` 1), or subtracts them (`delta` -1). */
function countReport(ctx: Context, tx: Tx, counted: CountedReport, delta: 1 | -1): void {
  updatePageCounts(ctx, counted, delta);
  updateScoreDays(tx, counted, delta);
  const { orgId, promptId } = counted.run;
  if (!isLive(counted.run)) return;
  tx.insert(scoreChanges)
    .values({ orgId, promptId, isStale: true })
    .onConflictDoUpdate({ target: [scoreChanges.orgId, scoreChanges.promptId], set: { isStale: true } })
    .run();
}
