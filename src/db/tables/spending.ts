import { sql } from "drizzle-orm";
import { check, index, integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { oneOf, orgReference, timestamp } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";
import { prompts } from "./prompts.ts";
import { triggers } from "./runs.ts";

/** Model spending of an organization per 15 minutes, starting at `from`. */
export const spending = sqliteTable(
  "spending",
  {
    orgId: text("org_id").notNull(),
    from: timestamp("from").notNull(),
    usd: real().notNull(),
    /** The part of `usd` that is an estimate. */
    estimatedUsd: real("estimated_usd").notNull(),
    /** Calls of unknown cost. */
    unpricedCalls: integer("unpriced_calls").notNull(),
  },
  (table) => [primaryKey({ columns: [table.orgId, table.from] })],
);

/** What a model call is for. */
export const callPurposes = ["agent", "judge"] as const;
/** The trigger of an evaluation, or that its session was judged again later. */
const spendingTriggers = [...triggers, "regrade"] as const;

/**
 * The same spending by its purpose, once per 15 minutes and once per day in UTC. A month of any time zone is then a sum of whole days, and of
 * 15-minute parts at both ends.
 */
export const spendingDetails = sqliteTable(
  "spending_details",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** 900,000 or 86,400,000. */
    lengthMs: integer("length_ms").notNull(),
    from: timestamp("from").notNull(),
    agent: text().notNull(),
    /** The model that was called. */
    model: text().notNull(),
    purpose: text({ enum: callPurposes }).notNull(),
    trigger: text({ enum: spendingTriggers }).notNull(),
    /** Who requested the evaluation; empty: not a person, or not an API key. */
    personId: text("person_id").notNull(),
    keyId: text("key_id").notNull(),
    usd: real().notNull(),
    /** The part of `usd` that is an estimate. */
    estimatedUsd: real("estimated_usd").notNull(),
  },
  (table) => [
    primaryKey({
      columns: [
        table.orgId,
        table.promptId,
        table.lengthMs,
        table.from,
        table.agent,
        table.model,
        table.purpose,
        table.trigger,
        table.personId,
        table.keyId,
      ],
    }),
    index("spending_details_by_time").on(table.orgId, table.lengthMs, table.from),
    orgReference("spending_details_prompt", [table.orgId, table.promptId], prompts),
    check("spending_details_purpose", oneOf(table.purpose, callPurposes)),
    check("spending_details_trigger", oneOf(table.trigger, spendingTriggers)),
  ],
);

/** What one prompt, or all prompts with a tag, may spend per calendar month, beside the budget of the organization. */
export const budgets = sqliteTable(
  "budgets",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    promptId: text("prompt_id"),
    tag: text(),
    maxUsdAMonth: real("max_usd_a_month").notNull(),
  },
  (table) => [
    index("budgets_of_org").on(table.orgId),
    orgReference("budgets_prompt", [table.orgId, table.promptId], prompts),
    check("budgets_of", sql`(${table.promptId} is null) != (${table.tag} is null)`),
    check("budgets_max", sql`${table.maxUsdAMonth} > 0`),
  ],
);
