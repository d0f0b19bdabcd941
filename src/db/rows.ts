import { Column, type GetColumnData, getTableColumns, sql } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Db } from "./open.ts";

/** The row type of these columns. */
type RowOf<T extends Record<string, Column>> = { [K in keyof T]: GetColumnData<T[K]> };

/**
 * Reads rows of a prepared query from `.values()`, by position: the columns must be selected in this order, starting at
 * `from`. Drizzle's own mapping takes longer than SQLite itself.
 */
export function rowReader<T extends Record<string, Column>>(columns: T): (values: unknown[], from: number) => RowOf<T> {
  const fields = Object.entries(columns).map(([name, column]) => ({
    name,
    decode:
      column.mapFromDriverValue === Column.prototype.mapFromDriverValue
        ? null
        : (value: unknown) => column.mapFromDriverValue(value),
  }));
  return (values, from) => {
    const row: Record<string, unknown> = {};
    for (let i = 0; i < fields.length; i++) {
      const { name, decode } = fields[i] as (typeof fields)[number];
      const value = values[from + i];
      row[name] = decode === null || value === null ? value : decode(value);
    }
    return row as RowOf<T>;
  };
}

/**
 * A prepared insert with values for all columns. It joins a transaction in progress, since there is only one connection. Building the
 * statement each time would take longer than the insert.
 */
export function preparedInsert<T extends SQLiteTable>(db: Db, table: T): (row: T["$inferSelect"]) => void {
  const values = Object.fromEntries(
    Object.entries(getTableColumns(table)).map(([name, column]) => [
      name,
      // A placeholder writes null into such a column as JSON, the text "null".
      column.dataType === "json" && !column.notNull
        ? sql`nullif(${sql.param(sql.placeholder(name), column)}, 'null')`
        : sql.placeholder(name),
    ]),
  ) as T["$inferInsert"];
  const query = db.insert(table).values(values).prepare();
  return (row) => {
    query.run(row);
  };
}

/** IDs are UUIDv7, so all IDs of an earlier moment are less than this one. */
export function firstIdOf(atMs: number): string {
  const time = Math.max(0, Math.min(atMs, 2 ** 48 - 1))
    .toString(16)
    .padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}
