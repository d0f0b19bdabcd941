import { and, eq, gt } from "drizzle-orm";
import type { Db } from "../db/open.ts";
import { createdWithin } from "../db/rows.ts";
import { regrades, reports } from "../db/tables/reports.ts";
import { rubricHash } from "../grading/judge/rubric.ts";
import { gradingMethodologyOf, type Methodology } from "../grading/methodology.ts";
import type { NewJob } from "../jobs/queue.ts";

export type RegradeRow = typeof regrades.$inferSelect;

/** The regrade of a job. */
export function getRegradeRow(db: Db, id: string): RegradeRow {
  const row = db.select().from(regrades).where(eq(regrades.id, id)).get();
  if (!row) throw new Error(`There is no regrade for job ${id}.`);
  return row;
}

/** The job of a regrade: its next batch. */
export const regradeJobOf = ({ id, orgId, batch }: RegradeRow): NewJob => ({
  pool: "runs",
  kind: "regrade",
  subject: `${id}/${batch}`,
  orgId,
  host: "",
  maxAttempts: 3,
});

/** The ID of the regrade that a job serves. */
export const regradeIdOf = ({ subject }: { subject: string }): string => subject.split("/")[0]!;

/**
 * The methodology of the gradings that a regrade makes. With a judge, it is the one for judged sessions. Without a judge, it is the one for sessions
 * that no model judged.
 */
export const gradingMethodologyOfRegrade = (methodology: Methodology, judge: string | null) =>
  gradingMethodologyOf(methodology, judge === null ? null : { model: judge, rubric: rubricHash });

/** The reports of a regrade, after a given report. Sorted by ID, which is time order and the order of the index. */
export const reportsOfRegrade = ({ orgId, promptId, since, until }: RegradeRow, afterId = "") =>
  and(
    eq(reports.orgId, orgId),
    promptId === null ? undefined : eq(reports.promptId, promptId),
    createdWithin(reports.id, [since, until]),
    gt(reports.id, afterId),
  );
