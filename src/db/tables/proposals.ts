import { sql } from "drizzle-orm";
import { check, index, integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { json, oneOf, timestamp } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";

export const proposalStatuses = ["pending", "running", "completed", "failed"] as const;

/** Prompts proposed from docs. The texts of files are dropped when the set is completed. */
export const proposalSets = sqliteTable(
  "proposal_sets",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    status: text({ enum: proposalStatuses }).notNull(),
    /** What was requested. */
    request: json<object>("request").notNull(),
    /** Pages that were read, and how long that took. */
    pages: integer(),
    readMs: integer("read_ms"),
    /** Cost of the model; null: unknown. */
    costUsd: real("cost_usd"),
    proposals: json<object[]>("proposals"),
    dropped: json<object[]>("dropped"),
    /** IDs of the prompts that were created, by the position of their proposal from 1. */
    accepted: json<Record<string, string>>("accepted").notNull(),
    failureCode: text("failure_code"),
    failureDetail: text("failure_detail"),
    createdAt: timestamp("created_at").notNull(),
    completedAt: timestamp("completed_at"),
  },
  (table) => [
    index("proposal_sets_newest").on(table.orgId, table.id),
    check("proposal_sets_status", oneOf(table.status, proposalStatuses)),
    check(
      "proposal_sets_completed",
      sql`(${table.completedAt} is not null) = (${table.status} in ('completed', 'failed')) and (${table.proposals} is not null) = (${table.status} = 'completed')`,
    ),
    check(
      "proposal_sets_failure",
      sql`(${table.failureCode} is not null) = (${table.status} = 'failed') and (${table.failureDetail} is null) = (${table.failureCode} is null)`,
    ),
  ],
);
