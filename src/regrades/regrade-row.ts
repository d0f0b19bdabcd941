import { eq } from "drizzle-orm";
import type { Db } from "../db/open.ts";
import { regrades } from "../db/tables.ts";

export type RegradeRow = typeof regrades.$inferSelect;

/** The row of a regrade that a job is for. */
export function getRegradeRow(db: Db, id: string): RegradeRow {
  const row = db.select().from(regrades).where(eq(regrades.id, id)).get();
  if (!row) throw new Error(`job without its regrade ${id}`);
  return row;
}
