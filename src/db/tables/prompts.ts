import { sql } from "drizzle-orm";
import { blob, check, index, integer, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { AgentOptions, DeclaredCheck, WorkspaceSetup } from "../../agents/task.ts";
import type { Limits } from "../../config/limits.ts";
import type { Scope } from "../../grading/grade.ts";
import { boolean, json, oneOf, orgReference, timestamp } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";

export const promptStatuses = ["active", "paused", "archived"] as const;
/**
 * What happens to scheduled evaluations that the service missed. `skip`: none runs. `latest`: the latest one runs, however late. `window`: the latest
 * one runs if it is only some hours late. `automatic`: the latest one runs if it is late by up to half of the time to the next one. That limit is at
 * least 1 day and at most 7 days.
 */
export const catchUpPolicies = ["automatic", "skip", "latest", "window"] as const;
/** What happens to a scheduled evaluation while runs of the previous one are active. `queue`: one waits for their end. */
export const overlapPolicies = ["skip", "queue", "allow"] as const;
/** An agent of a prompt that names several, or one with options. `model` null: the default. */
export type PromptAgent = { agent: string; model: string | null; options?: AgentOptions };
/** If its goal was not tested, a run succeeds with at least this score. The score must have this scope. */
export type SuccessBar = { scope: Exclude<Scope, "goal">; minScore: number };
/** A URL that a prompt adds to its provider's; unknown keys are kept and returned. */
export type AdditionalUrl = { url: string; [key: string]: unknown };

/**
 * The text of a page or file that a prompt was proposed from. `digest`: SHA-256 of the quote. `ownGoal`: the proposed end goal if it
 * repeats words of the docs.
 */
export type PromptBasis = { url: string; line: number; quote: string; digest: string; ownGoal: string | null };
/** The first run that read the page after the quote was gone. */
type PromptBasisChange = { runId: string; at: number };

/** The place of a prompt in a version of a suite. */
export type SuiteReference = { id: string; version: number; slot: string };

export const providers = sqliteTable(
  "providers",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    name: text().notNull(),
    docsUrl: text("docs_url"),
    productUrl: text("product_url"),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [unique("providers_of_org").on(table.orgId, table.id)],
);

export const prompts = sqliteTable(
  "prompts",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    title: text(),
    text: text().notNull(),
    endGoal: text("end_goal"),
    /** Other wordings of the end goal. */
    wordings: json<string[]>("wordings"),
    /** The text of the docs that it was proposed from; null: it wasn't proposed. */
    basis: json<PromptBasis>("basis"),
    /** Set once that text is gone. */
    basisChange: json<PromptBasisChange>("basis_change"),
    /** The suite that it was created from; null: none. */
    suite: json<SuiteReference>("suite"),
    status: text({ enum: promptStatuses }).notNull(),
    frequency: text(),
    runsPerEval: integer("runs_per_eval"),
    catchUp: text("catch_up", { enum: catchUpPolicies }).notNull().default("automatic"),
    /** How late a missed evaluation still runs with the policy `window`; null with others. */
    catchUpHours: integer("catch_up_hours"),
    overlap: text({ enum: overlapPolicies }).notNull().default("skip"),
    targetProviderId: text("target_provider_id"),
    additionalUrls: json<AdditionalUrl[]>("additional_urls"),
    /** The variables in order of first appearance. They are derived from text and endGoal whenever these change. */
    templateVars: json<string[]>("template_vars"),
    templateDefaults: json<Record<string, string>>("template_defaults"),
    declaredChecks: json<DeclaredCheck[]>("declared_checks"),
    workspace: json<WorkspaceSetup>("workspace"),
    agent: text(),
    model: text(),
    /** Several agents, or one with options. `agent` and `model` repeat the first of them. null: only `agent` and `model` count. */
    agents: json<PromptAgent[]>("agents"),
    limits: json<Limits>("limits"),
    reviewBeforePublishing: boolean("review_before_publishing").notNull(),
    /** Its docs never change, so any change of its score comes from the agent. */
    isCanary: boolean("is_canary").notNull().default(false),
    tags: json<string[]>("tags").notNull().default([]),
    /** Requests over REST supersede unfinished runs of the same preview unless they say otherwise. */
    supersedesByDefault: boolean("supersedes_by_default").notNull().default(false),
    /** The score with which a run succeeds if its goal was not tested; null: none. */
    successBar: json<SuccessBar>("success_bar"),
    isOnResultsPage: boolean("is_on_results_page").notNull().default(false),
    /** Labels of the workers that may run it. */
    workerLabels: json<string[]>("worker_labels").notNull().default([]),
    /** Secret part of the URL of its badge, which is shown without signing in; null: there is none. */
    badgeToken: text("badge_token").unique(),
    /** The evaluation that a person pinned as the baseline; null: the last published runs. */
    baselineRequestId: text("baseline_request_id"),
    createdAt: timestamp("created_at").notNull(),
    /** The next scheduled evaluation to process; null if the prompt is not scheduled. */
    nextEvaluationAt: timestamp("next_evaluation_at"),
  },
  (table) => [
    unique("prompts_of_org").on(table.orgId, table.id),
    index("prompts_by_status").on(table.orgId, table.status, table.id),
    index("prompts_by_provider").on(table.orgId, table.targetProviderId, table.id),
    index("prompts_of_suites").on(table.orgId, table.id).where(sql`${table.suite} is not null`),
    index("prompts_due").on(table.nextEvaluationAt).where(sql`${table.nextEvaluationAt} is not null`),
    orgReference("prompts_provider", [table.orgId, table.targetProviderId], providers),
    check("prompts_status", oneOf(table.status, promptStatuses)),
    check("prompts_catch_up", oneOf(table.catchUp, catchUpPolicies)),
    check("prompts_catch_up_hours", sql`(${table.catchUp} = 'window') = (${table.catchUpHours} is not null)`),
    check("prompts_overlap", oneOf(table.overlap, overlapPolicies)),
    check("prompts_runs_per_eval", sql`${table.runsPerEval} between 1 and 50`),
  ],
);

/** What an archive holds: the files that a workspace starts with, or a built docs site. */
export const archiveKinds = ["workspace", "site"] as const;

/** Uploaded tar.gz files. `digest` is their SHA-256. */
export const archives = sqliteTable(
  "archives",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    digest: text().notNull(),
    bytes: integer().notNull(),
    files: integer().notNull(),
    kind: text({ enum: archiveKinds }).notNull().default("workspace"),
    /** When a run last used a site, or when it was uploaded; null: files of a workspace, which are kept. */
    usedAt: timestamp("used_at"),
    data: blob({ mode: "buffer" }).notNull(),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [
    unique("archives_once").on(table.orgId, table.digest),
    check("archives_digest", sql`length(${table.digest}) = 64`),
    check("archives_data", sql`length(${table.data}) = ${table.bytes}`),
  ],
);
