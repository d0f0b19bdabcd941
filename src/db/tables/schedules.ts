import { sql } from "drizzle-orm";
import { check, index, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { oneOf, orgReference, timestamp } from "./columns.ts";
import { prompts } from "./prompts.ts";
import { evalRequests } from "./runs.ts";

/**
 * `missed`: the service was down. `skipped_overlap`: earlier runs were still active. `failed`: the runs could not be requested. `waiting`: it waits
 * for the end of earlier runs, and then gets one of the other outcomes.
 */
export const scheduleOutcomes = ["ran", "missed", "skipped_overlap", "failed", "waiting"] as const;

/** The evaluations that schedules requested so far, whether or not they ran. */
export const scheduledEvaluations = sqliteTable(
  "scheduled_evaluations",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    scheduledAt: timestamp("scheduled_at").notNull(),
    outcome: text({ enum: scheduleOutcomes }).notNull(),
    evalRequestId: text("eval_request_id"),
    /** Why it did not run, or ran late; null: it ran on time. */
    reason: text(),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.promptId, table.scheduledAt] }),
    index("scheduled_evaluations_newest").on(table.orgId, table.scheduledAt),
    index("scheduled_evaluations_exceptions")
      .on(table.orgId, table.scheduledAt)
      .where(sql`${table.reason} is not null`),
    index("scheduled_evaluations_waiting").on(table.promptId).where(sql`${table.outcome} = 'waiting'`),
    index("scheduled_evaluations_of_request")
      .on(table.orgId, table.evalRequestId)
      .where(sql`${table.evalRequestId} is not null`),
    orgReference("scheduled_evaluations_prompt", [table.orgId, table.promptId], prompts),
    orgReference("scheduled_evaluations_eval_request", [table.orgId, table.evalRequestId], evalRequests),
    check("scheduled_evaluations_outcome", oneOf(table.outcome, scheduleOutcomes)),
    check("scheduled_evaluations_ran", sql`(${table.outcome} = 'ran') = (${table.evalRequestId} is not null)`),
    check("scheduled_evaluations_reason", sql`${table.outcome} = 'ran' or ${table.reason} is not null`),
  ],
);
