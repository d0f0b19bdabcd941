import { sql } from "drizzle-orm";
import { check, foreignKey, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { at, oneOf } from "./columns.ts";
import { prompts } from "./prompts.ts";
import { evalRequests } from "./runs.ts";

/** Outcome of a due slot. `missed`: the service was down; `skipped_overlap`: earlier runs were still active; `failed`: the runs could not be requested. */
export const slotOutcomes = ["ran", "missed", "skipped_overlap", "failed"] as const;

/** Due times of schedules with their outcomes. */
export const slots = sqliteTable(
  "slots",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    scheduledAt: at("scheduled_at").notNull(),
    outcome: text({ enum: slotOutcomes }).notNull(),
    evalRequestId: text("eval_request_id"),
    /** Why it did not run. */
    reason: text(),
    createdAt: at("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.promptId, table.scheduledAt] }),
    foreignKey({
      name: "slots_prompt",
      columns: [table.orgId, table.promptId],
      foreignColumns: [prompts.orgId, prompts.id],
    }),
    foreignKey({
      name: "slots_eval_request",
      columns: [table.orgId, table.evalRequestId],
      foreignColumns: [evalRequests.orgId, evalRequests.id],
    }),
    check("slots_outcome", oneOf(table.outcome, slotOutcomes)),
    check("slots_ran", sql`(${table.outcome} = 'ran') = (${table.evalRequestId} is not null)`),
    check("slots_reason", sql`(${table.outcome} = 'ran') = (${table.reason} is null)`),
  ],
);
