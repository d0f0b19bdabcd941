import { and, eq, inArray, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { runs } from "../db/tables/runs.ts";

/** Which of these runs replaced hosts with a urlMap. */
export function previewsAmong({ db }: Pick<Context, "db">, org: OrgId, runIds: string[]): Set<string> {
  const where = and(eq(runs.orgId, org), inArray(runs.id, runIds), sql`${runs.urlMap} <> '{}'`);
  const rows = db.select({ id: runs.id }).from(runs).where(where).all();
  return new Set(rows.map(({ id }) => id));
}
