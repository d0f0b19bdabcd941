import { eq } from "drizzle-orm";
import type { Db } from "../db/open.ts";
import { regrades } from "../db/tables/reports.ts";

export type RegradeRow = typeof regrades.$inferSelect;

/** The regrade of a job. */
export function getRegradeRow(db: Db, id: string): RegradeRow {
  const row = db.select().from(regrades).where(eq(regrades.id, id)).get();
  if (!row) throw new Error(`no regrade for job ${id}`);
  return row;
}
