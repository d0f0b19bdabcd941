import { and, eq } from "drizzle-orm";
import type { OrgId } from "../context.ts";
import type { Db, Tx } from "../db/open.ts";
import { runs } from "../db/tables/runs.ts";
import { notFound } from "../errors.ts";

export type RunRow = typeof runs.$inferSelect;

/** The error of an ID without a run. */
export const runNotFound = (id: string) => notFound(`No run has the ID ${id}.`);

/** The row of a run; `id` is case-insensitive. */
export const findRunRow = (tx: Db | Tx, org: OrgId, id: string): RunRow | undefined =>
  tx
    .select()
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.id, id.toLowerCase())))
    .get();

/** The row of a run; `id` is case-insensitive. Throws not_found. */
export function getRunRow(tx: Db | Tx, org: OrgId, id: string): RunRow {
  const row = findRunRow(tx, org, id);
  if (!row) throw runNotFound(id);
  return row;
}
