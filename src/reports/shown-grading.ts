import { and, eq, notInArray, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { frictionPoints, recommendations } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import type { Grade } from "../grading/grade.ts";
import { countChange, writeExposure } from "./counts.ts";
import type { ReportRow } from "./report-row.ts";
import type { GradingRow } from "./stored-grade.ts";

/** Replaces the grading that a report shows, and updates all counts. `exposure`: the pages that the session reached; default: the stored ones. */
export function showGrading(
  ctx: Context,
  tx: Tx,
  report: ReportRow,
  grading: GradingRow,
  exposure?: Grade["exposure"],
): void {
  countChange(ctx, tx, report.id, () => replaceGrading(tx, report, grading, exposure));
}

function replaceGrading(
  tx: Tx,
  { id: reportId, orgId, promptId }: ReportRow,
  { id: gradingId, grade }: GradingRow,
  exposure?: Grade["exposure"],
): void {
  const { frictions, recommendations: _, ...reportFields } = grade;
  if (exposure) writeExposure(tx, { orgId, reportId }, exposure);
  tx.update(reports)
    .set({ ...reportFields, gradingId })
    .where(eq(reports.id, reportId))
    .run();
  const whereRemoved = (remaining: { id: string }[], table: typeof frictionPoints | typeof recommendations) =>
    and(
      eq(table.reportId, reportId),
      notInArray(
        table.id,
        remaining.map(({ id }) => id),
      ),
    );
  tx.delete(recommendations).where(whereRemoved(grade.recommendations, recommendations)).run();
  tx.delete(frictionPoints).where(whereRemoved(frictions, frictionPoints)).run();
  const owner = { orgId, reportId };
  for (const [position, friction] of frictions.entries()) {
    const row = { ...friction, position };
    tx.insert(frictionPoints)
      .values({ ...row, ...owner, promptId })
      .onConflictDoUpdate({ target: frictionPoints.id, set: row })
      .run();
  }
  // Priorities must be unique at all times. Negative priorities don't collide with the new ones.
  tx.update(recommendations)
    .set({ priority: sql`-${recommendations.priority}` })
    .where(eq(recommendations.reportId, reportId))
    .run();
  for (const each of grade.recommendations) {
    tx.insert(recommendations)
      .values({ ...each, ...owner })
      .onConflictDoUpdate({ target: recommendations.id, set: each })
      .run();
  }
}
