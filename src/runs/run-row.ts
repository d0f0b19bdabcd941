import { and, eq, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { statement } from "../db/prepared.ts";
import { runs } from "../db/tables/runs.ts";
import { notFound } from "../errors.ts";

export type RunRow = typeof runs.$inferSelect;

/** The error for an ID that no run has. */
export const runNotFound = (id: string) => notFound(`No run has the ID ${id}.`);

const runById = statement((db) =>
  db
    .select()
    .from(runs)
    .where(and(eq(runs.orgId, sql.placeholder("org")), eq(runs.id, sql.placeholder("id")))),
);

/** The row of a run; `id` is case-insensitive. */
export const findRunRow = ({ db }: Context, org: OrgId, id: string): RunRow | undefined =>
  runById(db).get({ org, id: id.toLowerCase() });

/** The row of a run; `id` is case-insensitive. Throws not_found. */
export function getRunRow(ctx: Context, org: OrgId, id: string): RunRow {
  const row = findRunRow(ctx, org, id);
  if (!row) throw runNotFound(id);
  return row;
}
