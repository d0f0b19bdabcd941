import { eq } from "drizzle-orm";
import type { SessionEvent } from "../agents/agent.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { type Tx, transaction } from "../db/open.ts";
import { gradings, reports, type StoredGrade } from "../db/tables/reports.ts";
import { notFound } from "../errors.ts";
import type { Grade } from "../grading/grade.ts";
import { toIso } from "../schema.ts";
import { toDimension, toNullNotice } from "./grade-schema.ts";
import { judgeVariancesOf } from "./judge-variance.ts";
import { getReportRow, type ReportRow } from "./report-row.ts";
import { getReport } from "./reports.ts";
import type { Grading, GradingList, Report } from "./schema.ts";
import { showGrading } from "./shown-grading.ts";
import { frictionKey, type GradingRow, listGradingRows, shownGradingIdOf, withIds } from "./stored-grade.ts";

/** All gradings of a report, and how much the gradings of each judge vary. */
export function gradingsOfReport(ctx: Context, report: ReportRow): GradingList {
  const rows = listGradingRows(ctx.db, report);
  return { gradings: rows.map((row) => toGrading(row, report)), judgeVariance: judgeVariancesOf(rows) };
}

/** The gradings of a report, by its slug. Throws not_found. */
export const listGradings = (ctx: Context, org: OrgId, slug: string): GradingList =>
  gradingsOfReport(ctx, getReportRow(ctx.db, org, slug));

/** A report with another of its gradings: the newest grading of a methodology. `methodology`: its ID, or the start of its hash. Throws not_found. */
export function getReportByMethodology(ctx: Context, org: OrgId, slug: string, methodology: string): Report {
  const grading = getGradingByMethodology(ctx, getReportRow(ctx.db, org, slug), methodology);
  return withGrade(getReport(ctx, org, slug), grading.grade);
}

/**
 * The grading by a methodology: the shown grading, or otherwise the newest first judgment. Repeats only show how much a judge varies. Throws
 * not_found.
 */
function getGradingByMethodology(ctx: Context, report: ReportRow, methodology: string): GradingRow {
  const rows = listGradingRows(ctx.db, report);
  const usesMethodology = ({ grade, hash }: GradingRow) =>
    grade.methodology.id === methodology || (methodology.length >= 8 && hash.startsWith(methodology.toLowerCase()));
  const candidates = rows.filter(usesMethodology);
  const grading =
    candidates.find(({ id }) => id === shownGradingIdOf(report)) ??
    candidates.findLast(({ repeat }) => repeat === 1) ??
    candidates[0];
  if (grading) return grading;
  const methodologyIds = [...new Set(rows.map(({ grade }) => grade.methodology.id))].join(", ");
  throw notFound(
    `The report has no grading by methodology ${JSON.stringify(methodology)}. It was graded by ${methodologyIds}.`,
  );
}

/** A report with another grade. For friction points and fixes that are in both grades, other data of the report is kept. */
function withGrade(report: Report, { frictions, recommendations: fixes, ...grade }: StoredGrade): Report {
  const pointByFingerprint = new Map(report.frictionPoints.map((point) => [point.fingerprint, point]));
  const unknownPoint = { seenIn: { runs: 1, of: 1 }, state: "new" as const, dismissed: null };
  const fixByFriction = new Map(report.recommendations.map((fix) => [frictionKey(fix.frictionIds), fix]));
  return {
    ...report,
    ...grade,
    nullNotice: toNullNotice(grade),
    dimensions: grade.dimensions.map(toDimension),
    frictionPoints: frictions.map(({ preconditions: _, ...friction }) => ({
      ...unknownPoint,
      ...pointByFingerprint.get(friction.fingerprint),
      ...friction,
    })),
    recommendations: fixes.map((fix) => {
      const { done = null, dismissed = null } = fixByFriction.get(frictionKey(fix.frictionIds)) ?? {};
      return { ...fix, done, dismissed };
    }),
  };
}

/** Makes a report show one of its gradings permanently. null: shows the newest grading again. Throws not_found. */
export function pinGrading(ctx: Context, org: OrgId, slug: string, gradingId: string | null): void {
  transaction(ctx.db, (tx) => {
    const report = getReportRow(ctx.db, org, slug);
    const rows = listGradingRows(tx, report);
    const grading =
      gradingId === null
        ? rows.findLast(({ repeat }) => repeat === 1)
        : rows.find(({ id }) => id === gradingId.toLowerCase());
    if (!grading)
      throw notFound(
        `The report has no grading ${gradingId}. List its gradings with GET /api/v1/reports/${slug}/gradings.`,
      );
    // A report without the ID of a grading has only one grading, which it already shows.
    if (report.gradingId !== null) showGrading(ctx, tx, report, grading);
    tx.update(reports)
      .set({ gradingPinned: gradingId !== null })
      .where(eq(reports.id, report.id))
      .run();
    const changes = changesOf({ gradingId: report.gradingId }, { gradingId: gradingId === null ? null : grading.id });
    recordAudit(ctx, org, "report.updated", { id: report.id, name: slug }, changes);
  });
}

/**
 * `repeat`: the number of this grading among gradings by the same methodology and judge. `judging`: the events of its judge; null: the events of the
 * session.
 */
type NewGrading = { grade: Grade; repeat: number; judging: SessionEvent[] | null };

/** Adds a grading, unless it exists. The report shows the first grading of a methodology and judge, unless another grading is pinned. */
export function addGrading(ctx: Context, tx: Tx, reportId: string, { grade, repeat, judging }: NewGrading): void {
  const report = tx.select().from(reports).where(eq(reports.id, reportId)).get();
  if (!report) return;
  const existing = listGradingRows(tx, report);
  const { hash } = grade.methodology;
  if (existing.some((each) => each.hash === hash && each.repeat === repeat)) return;
  if (report.gradingId === null) {
    // The original grading had no ID of its own, so it gets the ID of the report.
    tx.insert(gradings).values(existing).run();
    tx.update(reports).set({ gradingId: report.id }).where(eq(reports.id, reportId)).run();
  }
  const createdAt = ctx.now();
  const row = { id: ctx.newId(createdAt), orgId: report.orgId, reportId, hash, repeat, judging, createdAt };
  const storedRow = { ...row, grade: withIds(grade, existing, () => ctx.newId(ctx.now())) };
  tx.insert(gradings).values(storedRow).run();
  if (repeat === 1 && !report.gradingPinned) showGrading(ctx, tx, report, storedRow, grade.exposure);
}

/** Makes a report show its grading with this hash, unless another grading is pinned. */
export function showGradingAgain(ctx: Context, tx: Tx, reportId: string, hash: string): void {
  const report = tx.select().from(reports).where(eq(reports.id, reportId)).get();
  const row = report && listGradingRows(tx, report).find((each) => each.hash === hash && each.repeat === 1);
  if (row && !report.gradingPinned && report.methodology.hash !== hash) showGrading(ctx, tx, report, row);
}

const toGrading = (row: GradingRow, report: ReportRow): Grading => ({
  id: row.id,
  repeat: row.repeat,
  isShown: row.id === shownGradingIdOf(report),
  isPinned: row.id === shownGradingIdOf(report) && report.gradingPinned,
  createdAt: toIso(row.createdAt),
  methodology: row.grade.methodology,
  score: row.grade.score,
  scope: row.grade.scope,
  evidence: row.grade.evidence,
  grade: row.grade.grade,
  outcome: row.grade.outcome,
  coverage: row.grade.coverage,
  keyFinding: row.grade.keyFinding,
  judge: row.grade.judge,
});
