import { sql } from "drizzle-orm";
import { check, index, integer, real, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import { scopes } from "../../grading/kinds.ts";
import { boolean, json, oneOf, orgReference, timestamp } from "./columns.ts";
import { prompts } from "./prompts.ts";
import { evalRequests } from "./runs.ts";

export const gateStatuses = ["running", "passed", "failed", "error"] as const;

/** One prompt of a gate, with the evaluations of both sides; without `baseRequestId` the base is `baseRunIds`. */
export type GateTarget = {
  promptId: string;
  headRequestId: string;
  baseRequestId: string | null;
  baseRunIds: string[] | null;
  model: string | null;
};

/** The decision of a gate for one agent. `model`: as requested. */
type GateAgent = {
  agent: string;
  model: string | null;
  status: "passed" | "failed" | "error";
  reason: string;
  comparison: object | null;
};

/** Comparisons of two evaluations, or of one with the runs of a baseline, for CI. */
export const gates = sqliteTable(
  "gates",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    headRequestId: text("head_request_id").notNull(),
    /** null: the base is `baseRunIds`, the baseline when the gate was requested. */
    baseRequestId: text("base_request_id"),
    baseRunIds: json<string[]>("base_run_ids"),
    /** The requested model of its runs. A finished run names the model that answered. */
    model: text(),
    /** The second and further prompts of a gate, with the same data as the columns above. */
    others: json<GateTarget[]>("others"),
    /** Maximum runs per side of each prompt. */
    runs: integer().notNull(),
    adaptive: boolean("adaptive").notNull(),
    minScore: real("min_score"),
    /** The scope to which `minScore` applies. */
    scope: text({ enum: scopes }).notNull().default("goal"),
    budgetUsd: real("budget_usd"),
    status: text({ enum: gateStatuses }).notNull(),
    reason: text(),
    /** The part of the reason that the comparison doesn't tell; null: there is none. */
    cause: text(),
    comparison: json<object>("comparison"),
    /** The decision for each agent of prompts with several; null: one agent, or no decision yet. */
    agents: json<GateAgent[]>("agents"),
    /** Cost of its runs at the time of the decision; null: unknown. */
    spentUsd: real("spent_usd"),
    createdAt: timestamp("created_at").notNull(),
    completedAt: timestamp("completed_at"),
  },
  (table) => [
    unique("gates_of_org").on(table.orgId, table.id),
    unique("gates_of_request").on(table.orgId, table.headRequestId),
    index("gates_by_prompt").on(table.orgId, table.promptId, table.id),
    index("gates_of_base").on(table.orgId, table.baseRequestId).where(sql`${table.baseRequestId} is not null`),
    index("gates_running").on(table.id).where(sql`${table.status} = 'running'`),
    orgReference("gates_prompt", [table.orgId, table.promptId], prompts),
    orgReference("gates_head", [table.orgId, table.headRequestId], evalRequests),
    orgReference("gates_base", [table.orgId, table.baseRequestId], evalRequests),
    check("gates_scope", oneOf(table.scope, scopes)),
    check("gates_status", oneOf(table.status, gateStatuses)),
    check("gates_completed", sql`(${table.status} = 'running') = (${table.completedAt} is null)`),
    check("gates_reason", sql`(${table.status} = 'running') = (${table.reason} is null)`),
  ],
);
