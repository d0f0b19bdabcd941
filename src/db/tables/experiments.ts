import { sql } from "drizzle-orm";
import { check, index, integer, primaryKey, real, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { SiteHost } from "../../agents/site/host-rules.ts";
import type { WorkspaceSetup } from "../../agents/task.ts";
import type { Edits } from "../../net/edits.ts";
import { json, oneOf, orgReference, timestamp } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";
import { runs } from "./runs.ts";

/** `stopped`: by its budget, or by a person. A running experiment with the stop reason `cancelled` is about to end. */
export const experimentStatuses = ["running", "completed", "stopped"] as const;
export const stopReasons = ["budget", "cancelled"] as const;

/**
 * `explorer`: runs of the explorer differ, which they never should. `rate`: gates find more changes where there are none. `spread`: equal arms differ
 * more.
 */
export const drifts = ["explorer", "rate", "spread"] as const;

/** Parts of a prompt's workspace that an arm can leave out. */
export const leftOutParts = ["instructions", "skills", "mcpServers"] as const;

/** What an arm changes about its prompts. What is absent stays as it is in the prompt. */
export type ArmChanges = {
  urlMap?: Record<string, string>;
  sites?: Record<string, { archiveId: string; host?: SiteHost }>;
  edits?: Edits;
  /** The provider whose docs and product are used, in place of the prompt's. */
  providerId?: string;
  agent?: string;
  model?: string;
  /** Parts of the workspace, each in place of the prompt's. */
  workspace?: WorkspaceSetup;
  without?: (typeof leftOutParts)[number][];
  /** URLs where the arm's treatment can be met outside of it. A run of another arm that requests one is contaminated. */
  markers?: string[];
};
export type Arm = ArmChanges & { name: string };

/** What the gateway and the egress saw of the treatments in a run. */
export type Treatment = {
  /** Whether the agent could use the treatment of its arm, and whether it requested, called or read it; null: there is none that leaves a trace. */
  offered: boolean | null;
  used: boolean | null;
  /** The treatment of another arm that it requested; null: none. */
  met: string | null;
  /** The skills that its model read and the MCP servers that it called; null: unknown, or it had none. */
  triggered: { skills: string[]; mcpServers: string[] } | null;
};

/**
 * Which prompts should make an agent use a skill or an MCP server, and which should not, by ID. `of`: its name; null: any of the workspace. Prompts
 * in neither list have no label.
 */
export type TriggerLabels = { of: string | null; should: string[]; shouldNot: string[] };

/** Runs of the same prompts in arms that differ in one thing each. The first arm is the base. */
export const experiments = sqliteTable(
  "experiments",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    title: text().notNull(),
    arms: json<Arm[]>("arms").notNull(),
    promptIds: json<string[]>("prompt_ids").notNull(),
    templateArgs: json<Record<string, string>>("template_args"),
    triggering: json<TriggerLabels>("triggering"),
    /** Runs of each prompt in each arm. */
    repeats: integer().notNull(),
    /** Of the random order of prompts and arms. */
    seed: integer().notNull(),
    budgetUsd: real("budget_usd"),
    status: text({ enum: experimentStatuses }).notNull(),
    stopReason: text("stop_reason", { enum: stopReasons }),
    /** The result when it ended; null: it is running. */
    analysis: json<object>("analysis"),
    /** The cost of its runs when it ended; null: unknown. */
    spentUsd: real("spent_usd"),
    /** Weeks after which a comparison of the base with itself is requested again; null: never, or it was. */
    everyWeeks: integer("every_weeks"),
    /** What a completed comparison of the base with itself shows to be wrong; null: nothing, or a newer one says. */
    drift: text({ enum: drifts }),
    createdAt: timestamp("created_at").notNull(),
    completedAt: timestamp("completed_at"),
  },
  (table) => [
    unique("experiments_of_org").on(table.orgId, table.id),
    index("experiments_running").on(table.id).where(sql`${table.status} = 'running'`),
    index("experiments_repeated").on(table.id).where(sql`${table.everyWeeks} is not null`),
    index("experiments_drifted").on(table.orgId).where(sql`${table.drift} is not null`),
    check("experiments_drift", oneOf(table.drift, drifts)),
    check("experiments_status", oneOf(table.status, experimentStatuses)),
    check("experiments_stop_reason", sql`${table.status} <> 'stopped' or ${table.stopReason} is not null`),
    check("experiments_completed", sql`(${table.status} = 'running') = (${table.completedAt} is null)`),
    check("experiments_repeats", sql`${table.repeats} between 1 and 50`),
  ],
);

/** The runs of experiments. A block has one run of each arm with the same prompt. */
export const experimentRuns = sqliteTable(
  "experiment_runs",
  {
    orgId: text("org_id").notNull(),
    experimentId: text("experiment_id").notNull(),
    runId: text("run_id").notNull(),
    arm: text().notNull(),
    /** From 0. */
    block: integer().notNull(),
    /** The requested model. A finished run names the model that answered. */
    model: text(),
    /** null: the run has not ended. */
    treatment: json<Treatment>("treatment"),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.experimentId, table.runId] }),
    index("experiment_runs_by_run").on(table.orgId, table.runId),
    orgReference("experiment_runs_experiment", [table.orgId, table.experimentId], experiments),
    orgReference("experiment_runs_run", [table.orgId, table.runId], runs),
  ],
);
