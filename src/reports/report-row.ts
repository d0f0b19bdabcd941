import { and, eq } from "drizzle-orm";
import type { OrgId } from "../context.ts";
import type { Db, Tx } from "../db/open.ts";
import { reports } from "../db/tables/reports.ts";
import { notFound } from "../errors.ts";

export type ReportRow = typeof reports.$inferSelect;

/** The error for a slug that no report has. */
export const reportNotFound = (slug: string) => notFound(`No report has the slug ${slug}.`);

/** The row of a report. Throws not_found. */
export function getReportRow(tx: Db | Tx, org: OrgId, slug: string): ReportRow {
  const where = and(eq(reports.orgId, org), eq(reports.slug, slug));
  const row = tx.select().from(reports).where(where).get();
  if (!row) throw reportNotFound(slug);
  return row;
}
