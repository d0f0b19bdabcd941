import { and, eq, getTableColumns, gte, lt, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Db } from "./open.ts";
import { perConnection } from "./per-connection.ts";
import { prepared } from "./prepared.ts";
import { orgs } from "./tables/orgs.ts";

/**
 * A prepared insert with values for all columns, as a module constant: `const insertRun = insertStatement(runs)`, used as `insertRun(ctx.db)(row)`.
 * It joins a transaction in progress, since there is only one connection. Building the statement each time would take longer than the insert.
 */
export const insertStatement = <T extends SQLiteTable>(table: T) =>
  perConnection((db: Db) => {
    const values = Object.fromEntries(
      Object.entries(getTableColumns(table)).map(([name, column]) => [
        name,
        // A placeholder writes null into such a column as JSON, the text "null".
        column.dataType === "json" && !column.notNull
          ? sql`nullif(${sql.param(sql.placeholder(name), column)}, 'null')`
          : sql.placeholder(name),
      ]),
    ) as T["$inferInsert"];
    const query = prepared(db.insert(table).values(values));
    return (row: T["$inferSelect"]): void => void query.run(row);
  });

/** A UUIDv7 has 48 bits of time. */
const maxIdTime = 2 ** 48 - 1;

/** The first ID of a moment. IDs are UUIDv7, so the IDs of all earlier moments are less. */
export function firstIdOf(atMs: number): string {
  const time = Math.max(0, Math.min(atMs, maxIdTime)).toString(16).padStart(12, "0");
  // The 7 is the version, the 8 the variant.
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}

/** When a row with this ID was created, epoch ms. */
export const timeOfId = (id: string): number => Number.parseInt(id.replace("-", "").slice(0, 12), 16);

/** The time of an end, epoch ms: never before the beginning, even if the clock was set back since. */
export const endedAt = (atMs: number, beganAt: SQLiteColumn) => sql<number>`max(${atMs}, coalesce(${beganAt}, 0))`;

/** Condition on an ID: made at or after the first moment and before the second. */
export const createdWithin = (id: SQLiteColumn, [from, to]: [fromMs: number, toMs: number]) =>
  and(gte(id, firstIdOf(from)), lt(id, firstIdOf(to)));

/** Whether the schedules of an organization are paused. */
export const hasPausedSchedules = (db: Db, org: string): boolean =>
  db.select({ pausedAt: orgs.schedulesPausedAt }).from(orgs).where(eq(orgs.id, org)).get()?.pausedAt != null;

/** The time zone of an organization. */
export const timeZoneOf = (db: Db, org: string): string =>
  db.select({ zone: orgs.timeZone }).from(orgs).where(eq(orgs.id, org)).get()?.zone ?? "UTC";

/** The prefix of a column in a condition. With a plus, SQLite doesn't use the index of the column. */
export const plusUnless = (mayUseIndex: boolean): SQL => (mayUseIndex ? sql`` : sql`+`);
