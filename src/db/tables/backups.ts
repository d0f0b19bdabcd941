import { sql } from "drizzle-orm";
import { check, index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { oneOf, timestamp } from "./columns.ts";

export const backupStatuses = ["queued", "running", "completed", "failed"] as const;

/** The tries of the service to back itself up. One that failed is followed by another row. */
export const backups = sqliteTable(
  "backups",
  {
    id: text().primaryKey(),
    /** Who asked for it; null: the schedule. */
    requestedBy: text("requested_by"),
    status: text({ enum: backupStatuses }).notNull(),
    createdAt: timestamp("created_at").notNull(),
    startedAt: timestamp("started_at"),
    completedAt: timestamp("completed_at"),
    /** Name of its file. */
    name: text(),
    /** Path or URL of its file. */
    location: text(),
    bytes: integer(),
    /** Runs in it. */
    runs: integer(),
    /** Why it failed, in a sentence. */
    failure: text(),
    /** When its file was deleted, because newer ones are kept. */
    removedAt: timestamp("removed_at"),
  },
  (table) => [
    index("backups_by_start").on(table.startedAt),
    check("backups_status", oneOf(table.status, backupStatuses)),
    check("backups_completed", sql`(${table.status} in ('completed', 'failed')) = (${table.completedAt} is not null)`),
    check("backups_failed", sql`(${table.status} = 'failed') = (${table.failure} is not null)`),
  ],
);
