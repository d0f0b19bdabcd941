import { sql } from "drizzle-orm";
import { check, index, integer, primaryKey, real, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import { json, oneOf, orgReference, timestamp } from "./columns.ts";
import { prompts } from "./prompts.ts";
import { runs, triggers } from "./runs.ts";

export const bisectStatuses = ["running", "found", "stopped"] as const;
/**
 * `no_difference`: the good and the bad build don't differ; `undecided`: all runs are used up; `not_measured`: the good or the bad build can't be
 * run; `refused`: the next runs could not be requested. A running bisect with `cancelled` is about to end.
 */
export const bisectStopReasons = [
  "no_difference",
  "undecided",
  "not_measured",
  "budget",
  "cancelled",
  "refused",
] as const;
/** Why a build is left out. `status`: of the HTTP response. */
export type SkippedBuild = { build: number; reason: "no_answer" | "http_error" | "runs_failed"; status: number | null };
/** The numbers of the builds that may be the first with the change, and the probability that one of them is. */
export type BisectResult = { builds: number[]; probability: number };

/** Searches for the commit with which the score of a prompt changed. */
export const bisects = sqliteTable(
  "bisects",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** The chosen agent and model, as requested. */
    agent: text(),
    model: text(),
    /** The address of a build, with `{commit}` in it. */
    urlTemplate: text("url_template").notNull(),
    /** From the good one to the bad one. Builds are numbered by them, from 0. */
    commits: json<string[]>("commits").notNull(),
    skipped: json<SkippedBuild[]>("skipped").notNull(),
    templateArgs: json<Record<string, string>>("template_args"),
    budgetUsd: real("budget_usd"),
    /** How it was requested, and by which person or API key, as in evaluations. */
    trigger: text({ enum: triggers }).notNull(),
    personId: text("person_id"),
    keyId: text("key_id"),
    status: text({ enum: bisectStatuses }).notNull(),
    stopReason: text("stop_reason", { enum: bisectStopReasons }),
    /** null: nothing was compared yet. */
    result: json<BisectResult>("result"),
    /** The cost of its runs when it ended. */
    spentUsd: real("spent_usd"),
    createdAt: timestamp("created_at").notNull(),
    completedAt: timestamp("completed_at"),
  },
  (table) => [
    unique("bisects_of_org").on(table.orgId, table.id),
    index("bisects_running").on(table.id).where(sql`${table.status} = 'running'`),
    orgReference("bisects_prompt", [table.orgId, table.promptId], prompts),
    check("bisects_trigger", oneOf(table.trigger, triggers)),
    check("bisects_status", oneOf(table.status, bisectStatuses)),
    check("bisects_stop_reason", sql`${table.status} <> 'stopped' or ${table.stopReason} is not null`),
    check("bisects_completed", sql`(${table.status} = 'running') = (${table.completedAt} is null)`),
  ],
);

/** The runs of bisects. */
export const bisectRuns = sqliteTable(
  "bisect_runs",
  {
    orgId: text("org_id").notNull(),
    bisectId: text("bisect_id").notNull(),
    runId: text("run_id").notNull(),
    build: integer().notNull(),
    /** The step that requested it, from 0. */
    step: integer().notNull(),
    /** The requested model. A finished run names the model that answered. */
    model: text(),
  },
  (table) => [
    primaryKey({ columns: [table.bisectId, table.runId] }),
    index("bisect_runs_by_run").on(table.orgId, table.runId),
    orgReference("bisect_runs_bisect", [table.orgId, table.bisectId], bisects),
    orgReference("bisect_runs_run", [table.orgId, table.runId], runs),
  ],
);
