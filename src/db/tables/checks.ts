import { primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { json, timestamp } from "./columns.ts";

/** What checks of the service found at their last run. */
export const checkProblems = sqliteTable(
  "check_problems",
  {
    check: text().notNull(),
    cause: text().notNull(),
    /** What it is about; empty: the check says it. */
    subject: text().notNull(),
    state: text().notNull(),
    detail: text().notNull(),
    /** When it was first found since it was last gone. */
    since: timestamp("since").notNull(),
  },
  (table) => [primaryKey({ columns: [table.check, table.cause, table.subject] })],
);

/** The workers that the service knew last, by name, so that one which is away is still missed after a restart of the service. */
export const knownWorkers = sqliteTable("known_workers", {
  name: text().primaryKey(),
  /** The name of its credential. */
  credential: text().notNull(),
  agents: json<string[]>("agents").notNull(),
  labels: json<string[]>("labels").notNull(),
  /** When it was last heard of; null: it was connected. */
  awayAt: timestamp("away_at"),
});
