import { sql } from "drizzle-orm";
import { check, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { oneOf } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";

/**
 * Who reads docs and is counted. `coding`: coding agents; `answer`: assistants that fetch a page to answer a person; `search`: indexes of search
 * engines; `training`: crawlers for models; `program`: HTTP clients and fetch tools.
 */
export const countedKinds = ["coding", "answer", "search", "training", "program"] as const;
export type CountedKind = (typeof countedKinds)[number];

/** How often agents outside of runs asked for a page in a month, by access log. */
export const fieldTraffic = sqliteTable(
  "field_traffic",
  {
    orgId: orgIdColumn(),
    /** The page key of its URL, without a query. */
    page: text().notNull(),
    /** Such as `2026-11`. */
    month: text().notNull(),
    kind: text({ enum: countedKinds }).notNull(),
    /** What the agent calls itself. */
    name: text().notNull(),
    /** The SHA-256 of the log, so that a log that is imported again counts once. */
    log: text().notNull(),
    reads: integer().notNull(),
    /** Reads that were answered with Markdown. */
    markdown: integer().notNull(),
    /** Requests that were answered by 404 or 410. */
    missing: integer().notNull(),
  },
  (table) => {
    const { orgId, page, month, kind, name, log, reads, markdown, missing } = table;
    return [
      primaryKey({ columns: [orgId, page, month, kind, name, log] }),
      index("field_traffic_by_month").on(month),
      check("field_traffic_kind", oneOf(kind, countedKinds)),
      check("field_traffic_counts", sql`${reads} >= 0 and ${missing} >= 0 and ${markdown} between 0 and ${reads}`),
    ];
  },
);
