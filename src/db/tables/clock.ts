import { sql } from "drizzle-orm";
import { check, integer, sqliteTable } from "drizzle-orm/sqlite-core";
import { timestamp } from "./columns.ts";

/** What is proven about the system clock: one row. */
export const clock = sqliteTable(
  "clock",
  {
    id: integer().primaryKey(),
    /** No earlier than this, without relying on one reading of the clock. */
    provenAt: timestamp("proven_at").notNull(),
    /** How long the clock has been further ahead than that while a service ran. */
    aheadForMs: integer("ahead_for_ms").notNull(),
  },
  (table) => [check("clock_once", sql`${table.id} = 1`)],
);
