import { asc, eq } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { frictionPoints, recommendations } from "../db/tables/friction.ts";
import { gradings, type StoredGrade } from "../db/tables/reports.ts";
import type { Grade } from "../grading/grade.ts";
import { pickGradeFields } from "./grade-schema.ts";
import type { ReportRow } from "./report-row.ts";
import { readEvents } from "./session-events.ts";

export type GradingRow = typeof gradings.$inferSelect;

/** A key for a set of friction points. The order of their IDs doesn't matter. */
export const frictionKey = (ids: string[]): string => ids.toSorted().join(" ");

/** The grade that a report shows. */
function shownGrade(tx: Db | Tx, report: ReportRow): StoredGrade {
  const points = tx
    .select()
    .from(frictionPoints)
    .where(eq(frictionPoints.reportId, report.id))
    .orderBy(asc(frictionPoints.position))
    .all();
  const fixes = tx
    .select()
    .from(recommendations)
    .where(eq(recommendations.reportId, report.id))
    .orderBy(asc(recommendations.priority))
    .all();
  return {
    ...pickGradeFields(report),
    frictions: points.map(
      ({ orgId: _org, reportId: _report, promptId: _prompt, position: _, ...friction }) => friction,
    ),
    recommendations: fixes.map(({ orgId: _org, reportId: _report, ...each }) => each),
  };
}

/** The ID of the grading that a report shows. A report that was graded once has a single grading, whose ID is the ID of the report. */
export const shownGradingIdOf = ({ id, gradingId }: ReportRow): string => gradingId ?? id;

/** The gradings of a report as rows, oldest first. A report that was graded once has no rows, so its row is built here. */
export function listGradingRows(tx: Db | Tx, report: ReportRow): GradingRow[] {
  const rows = tx.select().from(gradings).where(eq(gradings.reportId, report.id)).orderBy(asc(gradings.id)).all();
  if (rows.length > 0) return rows.map((row) => ({ ...row, judging: row.judging && readEvents(row.judging) }));
  const { id, orgId, methodology, createdAt } = report;
  const grade = shownGrade(tx, report);
  return [{ id, orgId, reportId: id, hash: methodology.hash, repeat: 1, grade, judging: null, createdAt }];
}

/** A grade with IDs. If an item is identical in another grading of the report, it keeps its ID, so that links stay valid. */
export function withIds(
  { frictions, recommendations: fixes, exposure: _, ...grade }: Grade,
  earlier: GradingRow[],
  newId: () => string,
): StoredGrade {
  const ids = new Map(earlier.flatMap(({ grade }) => grade.frictions.map((each) => [each.fingerprint, each.id])));
  const fixIds = new Map(
    earlier.flatMap(({ grade }) => grade.recommendations.map((each) => [frictionKey(each.frictionIds), each.id])),
  );
  const points = frictions.map((each) => ({ ...each, id: ids.get(each.fingerprint) ?? newId() }));
  const idByFingerprint = new Map(points.map(({ fingerprint, id }) => [fingerprint, id]));
  return {
    ...grade,
    frictions: points,
    recommendations: fixes.map(({ frictions: fingerprints, ...each }) => {
      const frictionIds = fingerprints.map((fingerprint) => idByFingerprint.get(fingerprint) as string);
      return { ...each, id: fixIds.get(frictionKey(frictionIds)) ?? newId(), frictionIds };
    }),
  };
}
