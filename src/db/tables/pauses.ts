import { check, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { oneOf, timestamp } from "./columns.ts";

export const pauseKinds = ["organization", "agent"] as const;

/** Organizations and agents whose runs an operator holds back. `subject`: the ID of the organization or of the agent. */
export const pauses = sqliteTable(
  "pauses",
  {
    kind: text({ enum: pauseKinds }).notNull(),
    subject: text().notNull(),
    /** What the operator wrote; null: nothing. */
    reason: text(),
    /** Name of the person or key. */
    pausedBy: text("paused_by").notNull(),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.kind, table.subject] }),
    check("pauses_kind", oneOf(table.kind, pauseKinds)),
  ],
);
