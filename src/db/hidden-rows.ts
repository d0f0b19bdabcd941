import type { Database } from "bun:sqlite";
import { and, type Column, getTableColumns, is, Table } from "drizzle-orm";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { type SQL, sql } from "drizzle-orm/sql";
import { perConnection } from "./per-connection.ts";

// Deleted organizations, prompts and runs are hidden until they are erased or restored. Some two hundred queries would each need a condition for
// that, and a query without it would show deleted data. So this file adds the condition to every query that Drizzle builds. The condition looks into
// a table that is almost always empty, which takes some 50 ns per row.

/** Tables of organizations that requests, jobs and loops start from. Rows of all other tables are reached through these or through prompts. */
const orgTables = new Set(["orgs", "members", "api_keys", "trusts", "invitations", "destinations", "providers"]);
/** Tables that store the deletions themselves. */
const deletionTables = new Set(["deletions", "deleted_prompts", "deleted_orgs"]);

const tableName = Symbol.for("drizzle:OriginalName");

/** The condition that a row is not deleted; undefined for tables without such rows. */
function visibleRows(table: unknown): SQL | undefined {
  if (!is(table, Table)) return undefined;
  const name = (table as unknown as Record<symbol, string>)[tableName] ?? "";
  if (deletionTables.has(name)) return undefined;
  const columns: Record<string, Column> = getTableColumns(table);
  const prompt = name === "prompts" ? columns.id : columns.promptId;
  if (prompt) {
    const isVisible = sql`${prompt} not in (select prompt_id from deleted_prompts)`;
    return prompt.notNull ? isVisible : sql`(${prompt} is null or ${isVisible})`;
  }
  if (!orgTables.has(name)) return undefined;
  return sql`${name === "orgs" ? columns.id : columns.orgId} not in (select org_id from deleted_orgs)`;
}

type Join = { table: unknown; on: SQL | undefined; joinType: string };
type SelectConfig = { table: unknown; where?: SQL; joins?: Join[] };
type Dialect = { buildSelectQuery(config: SelectConfig): SQL };

/** Changes a database so that its queries find no deleted rows. Writes stay as they are. */
export function hideDeletedRows<T extends BunSQLiteDatabase>(db: T): T {
  const { dialect } = db as unknown as { dialect: Dialect };
  const buildSelectQuery = dialect.buildSelectQuery.bind(dialect);
  dialect.buildSelectQuery = (config) => {
    const joins = config.joins?.map((join) => {
      const condition = join.joinType === "cross" ? undefined : visibleRows(join.table);
      return condition ? { ...join, on: and(join.on, condition) } : join;
    });
    // A cross join has no condition of its own.
    const crossJoins = config.joins?.filter(({ joinType }) => joinType === "cross") ?? [];
    const tables = [config.table, ...crossJoins.map(({ table }) => table)];
    return buildSelectQuery({ ...config, joins, where: and(config.where, ...tables.map(visibleRows)) });
  };
  return db;
}

/** The same connection, and the same transaction in progress, for queries that also find deleted rows. */
export const includingDeleted = perConnection(({ $client }: { $client: Database }) => drizzle({ client: $client }));
