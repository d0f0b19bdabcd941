import { type SQL, sql } from "drizzle-orm";
import { type AnySQLiteColumn, foreignKey, integer, text } from "drizzle-orm/sqlite-core";

/** The check that a column has one of these values. */
export const oneOf = (column: AnySQLiteColumn, values: readonly string[]): SQL =>
  sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(", "))})`;

/** Epoch milliseconds. */
export const timestamp = (name: string) => integer(name);
/** Epoch milliseconds in the tables of people, whose library uses Date. */
export const dateTimestamp = (name: string) => integer(name, { mode: "timestamp_ms" });
/** A value as JSON. */
export const json = <T>(name: string) => text(name, { mode: "json" }).$type<T>();
/** A boolean. */
export const boolean = (name: string) => integer(name, { mode: "boolean" });

/** The reference to a row of the same organization. `columns`: the columns of the organization and of the row's ID. */
export const orgReference = (
  name: string,
  columns: [orgId: AnySQLiteColumn, id: AnySQLiteColumn],
  other: { orgId: AnySQLiteColumn; id: AnySQLiteColumn },
) => foreignKey({ name, columns, foreignColumns: [other.orgId, other.id] });
