import { primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { timestamp } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";

/** What people decided about lines of the inbox. A line whose problem comes back later has another ID. */
export const inboxMarks = sqliteTable(
  "inbox_marks",
  {
    orgId: orgIdColumn(),
    itemId: text("item_id").notNull(),
    /** Hidden until then; null: shown. */
    snoozedUntil: timestamp("snoozed_until"),
    /** The email address of a member; null: nobody. */
    assignee: text(),
    markedBy: text("marked_by").notNull(),
    markedAt: timestamp("marked_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.orgId, table.itemId] })],
);
