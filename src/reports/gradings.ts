import { and, asc, eq, notInArray, sql } from "drizzle-orm";
import type { SessionEvent } from "../agents/agent.ts";
import { type Tx, tx } from "../db/open.ts";
import { frictionPoints, gradings, recommendations, reports, type StoredGrade } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { notFound } from "../errors.ts";
import type { Grade } from "../grading/score.ts";
import { writeReach } from "./counts.ts";
import { toVariance } from "./judgevariance.ts";
import type { Reports } from "./reports.ts";
import type { Grading, GradingList, Report } from "./schema.ts";

type ReportRow = typeof reports.$inferSelect;
type GradingRow = typeof gradings.$inferSelect;

export type Gradings = ReturnType<typeof createGradings>;

/**
 * The gradings of a report. Its row, friction points and recommendations show one of them: the one that a person pinned, else the newest. All
 * that were made by the same methodology and judge are repeats of the first of them, and only the first is shown by itself.
 */
export function createGradings({ db, now, newId }: Pick<Deps, "db" | "now" | "newId">, ofReports: Reports) {
  const ofReport = (reportId: string) => eq(gradings.reportId, reportId);

  function rowOf(org: OrgId, slug: string): ReportRow {
    const row = db
      .select()
      .from(reports)
      .where(and(eq(reports.orgId, org), eq(reports.slug, slug)))
      .get();
    if (!row) throw notFound(`no report has the slug ${slug}`);
    return row;
  }

  /** What a report shows, as a grade. */
  function shownGrade(t: Pick<Tx, "select">, report: ReportRow): StoredGrade {
    const { outcome, score, grade, nullNotice, keyFinding, verdict, summary, metrics, dimensions, coverage } = report;
    const points = t
      .select()
      .from(frictionPoints)
      .where(eq(frictionPoints.reportId, report.id))
      .orderBy(asc(frictionPoints.position))
      .all();
    const advice = t
      .select()
      .from(recommendations)
      .where(eq(recommendations.reportId, report.id))
      .orderBy(asc(recommendations.priority))
      .all();
    return {
      ...{ outcome, score, grade, nullNotice, keyFinding, verdict, summary, metrics, dimensions, coverage },
      methodology: report.methodology,
      judge: report.judge,
      frictions: points.map((row) => toFriction(row)),
      recommendations: advice.map(({ id, priority, title, action, url, frictionIds, expectedGain }) => {
        return { id, priority, title, action, url, frictionIds, expectedGain };
      }),
    };
  }

  /** The gradings of a report, oldest first, as rows; those of one that was graded once as the row that it would have. */
  function rowsOf(t: Pick<Tx, "select">, report: ReportRow): GradingRow[] {
    const rows = t.select().from(gradings).where(ofReport(report.id)).orderBy(asc(gradings.id)).all();
    if (rows.length > 0) return rows;
    const { id, orgId, methodology, createdAt } = report;
    const grade = shownGrade(t, report);
    return [{ id, orgId, reportId: id, hash: methodology.hash, repeat: 1, grade, judging: null, createdAt }];
  }

  /** A grade with ids: those of what is the same in another grading of the report, so that links to it stay good. */
  function withIds(
    { frictions, recommendations: advice, reach: _, ...grade }: Grade,
    known: GradingRow[],
  ): StoredGrade {
    const ids = new Map(known.flatMap(({ grade }) => grade.frictions.map((each) => [each.fingerprint, each.id])));
    const adviceIds = new Map(
      known.flatMap(({ grade }) => grade.recommendations.map((each) => [keyOf(each.frictionIds), each.id])),
    );
    const points = frictions.map((each) => ({ ...each, id: ids.get(each.fingerprint) ?? newId(now()) }));
    const idOf = new Map(points.map(({ fingerprint, id }) => [fingerprint, id]));
    return {
      ...grade,
      frictions: points,
      recommendations: advice.map(({ frictions: proves, ...each }) => {
        const frictionIds = proves.map((print) => idOf.get(print) as string);
        return { ...each, id: adviceIds.get(keyOf(frictionIds)) ?? newId(now()), frictionIds };
      }),
    };
  }

  /** Puts a grading in the place of what a report shows, and of what is counted of it. */
  function show(
    t: Tx,
    { id: reportId, orgId, promptId, status }: ReportRow,
    { id: gradingId, grade }: GradingRow,
    reach?: Grade["reach"],
  ): void {
    const { frictions, recommendations: advice, ...rest } = grade;
    if (status === "published") ofReports.count(t, reportId, -1);
    if (reach) writeReach(t, { orgId, reportId }, reach);
    t.update(reports)
      .set({ ...rest, gradingId })
      .where(eq(reports.id, reportId))
      .run();
    const gone = (kept: { id: string }[], table: typeof frictionPoints | typeof recommendations) =>
      and(
        eq(table.reportId, reportId),
        notInArray(
          table.id,
          kept.map(({ id }) => id),
        ),
      );
    t.delete(recommendations).where(gone(advice, recommendations)).run();
    t.delete(frictionPoints).where(gone(frictions, frictionPoints)).run();
    const owner = { orgId, reportId };
    for (const [position, friction] of frictions.entries()) {
      const row = { ...friction, position };
      t.insert(frictionPoints)
        .values({ ...row, ...owner, promptId })
        .onConflictDoUpdate({ target: frictionPoints.id, set: row })
        .run();
    }
    // Two must never have one priority, not even while they change places.
    t.update(recommendations)
      .set({ priority: sql`-${recommendations.priority}` })
      .where(eq(recommendations.reportId, reportId))
      .run();
    for (const each of advice)
      t.insert(recommendations)
        .values({ ...each, ...owner })
        .onConflictDoUpdate({ target: recommendations.id, set: each })
        .run();
    if (status === "published") ofReports.count(t, reportId, 1);
  }

  const toGrading = (row: GradingRow, report: ReportRow): Grading => ({
    id: row.id,
    repeat: row.repeat,
    isShown: row.id === (report.gradingId ?? report.id),
    isPinned: row.id === (report.gradingId ?? report.id) && report.gradingPinned,
    createdAt: new Date(row.createdAt).toISOString(),
    methodology: row.grade.methodology,
    score: row.grade.score,
    grade: row.grade.grade,
    outcome: row.grade.outcome,
    coverage: row.grade.coverage,
    keyFinding: row.grade.keyFinding,
    judge: row.grade.judge,
  });

  return {
    /** The gradings of a report, oldest first, and how much judges differ from themselves. Throws not_found. */
    listGradings(org: OrgId, slug: string): GradingList {
      const report = rowOf(org, slug);
      const rows = rowsOf(db, report);
      return { gradings: rows.map((row) => toGrading(row, report)), judgeVariance: toVariance(rows) };
    },

    /** A report as another of its gradings tells it: the newest of a methodology, by its id or the beginning of its hash. Throws not_found. */
    getGraded(org: OrgId, slug: string, methodology: string): Report {
      const shown = ofReports.getReport(org, slug);
      const row = rowOf(org, slug);
      const rows = rowsOf(db, row);
      const isMeant = ({ grade, hash }: GradingRow) =>
        grade.methodology.id === methodology || (methodology.length >= 8 && hash.startsWith(methodology.toLowerCase()));
      const fitting = rows.filter(isMeant);
      const found =
        fitting.find(({ id }) => id === row.gradingId) ?? fitting.findLast(({ repeat }) => repeat === 1) ?? fitting[0];
      if (!found) {
        const known = [...new Set(rows.map(({ grade }) => grade.methodology.id))].join(", ");
        throw notFound(
          `the report was never graded by methodology ${JSON.stringify(methodology)}; its gradings are by ${known}`,
        );
      }
      const { frictions, recommendations: recommended, methodology: stamp, ...grade } = found.grade;
      const points = new Map(shown.frictionPoints.map((point) => [point.fingerprint, point]));
      const alone = { lostPoints: null, seenIn: { runs: 1, of: 1 }, state: "new" as const };
      const done = new Map(shown.recommendations.map((each) => [keyOf(each.frictionIds), each.done]));
      return {
        ...shown,
        ...grade,
        methodology: stamp,
        frictionPoints: frictions.map(({ grounds: _, ...each }) => ({
          ...alone,
          ...points.get(each.fingerprint),
          ...each,
        })),
        recommendations: recommended.map((each) => ({ ...each, done: done.get(keyOf(each.frictionIds)) ?? null })),
      };
    },

    /** Has a report show one of its gradings from now on, or (null) the newest again. Throws not_found. */
    pinGrading(org: OrgId, slug: string, gradingId: string | null): void {
      tx(db, (t) => {
        const report = rowOf(org, slug);
        const rows = rowsOf(t, report);
        const wanted =
          gradingId === null
            ? rows.findLast(({ repeat }) => repeat === 1)
            : rows.find(({ id }) => id === gradingId.toLowerCase());
        if (!wanted)
          throw notFound(`the report has no grading ${gradingId}; GET /api/v1/reports/${slug}/gradings lists them`);
        if (report.gradingId !== null) show(t, report, wanted);
        t.update(reports)
          .set({ gradingPinned: gradingId !== null })
          .where(eq(reports.id, report.id))
          .run();
      });
    },

    rowsOf: (report: ReportRow): GradingRow[] => rowsOf(db, report),

    /** Adds a grading, unless its place is taken; the first of a methodology and judge is shown, unless another is pinned. */
    addGrading(t: Tx, reportId: string, grade: Grade, repeat: number, judging: SessionEvent[] | null): void {
      const report = t.select().from(reports).where(eq(reports.id, reportId)).get();
      if (!report) return;
      const known = rowsOf(t, report);
      const { hash } = grade.methodology;
      if (known.some((each) => each.hash === hash && each.repeat === repeat)) return;
      if (report.gradingId === null) {
        // Its own id would be that of the report, for it had none.
        t.insert(gradings).values(known).run();
        t.update(reports).set({ gradingId: report.id }).where(eq(reports.id, reportId)).run();
      }
      const createdAt = now();
      const row = { id: newId(createdAt), orgId: report.orgId, reportId, hash, repeat, judging, createdAt };
      const stored = { ...row, grade: withIds(grade, known) };
      t.insert(gradings).values(stored).run();
      if (repeat === 1 && !report.gradingPinned) show(t, report, stored, grade.reach);
    },

    /** Has a report show again what it was graded by before, unless another is pinned. Tells whether that changed anything. */
    showAgain(t: Tx, reportId: string, hash: string): boolean {
      const report = t.select().from(reports).where(eq(reports.id, reportId)).get();
      const row = report && rowsOf(t, report).find((each) => each.hash === hash && each.repeat === 1);
      if (!row || report.gradingPinned || report.methodology.hash === hash) return false;
      show(t, report, row);
      return true;
    },
  };
}

const keyOf = (ids: string[]) => ids.toSorted().join(" ");

function toFriction({
  orgId: _,
  reportId: __,
  promptId: ___,
  position: ____,
  ...friction
}: typeof frictionPoints.$inferSelect) {
  return friction;
}
