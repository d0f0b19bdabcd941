import { sql } from "drizzle-orm";
import { blob, check, index, integer, primaryKey, real, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import { outcomes, type SessionEvent } from "../../agents/agent.ts";
import { failureCauses } from "../../agents/failure.ts";
import type { Dimension, Friction, Grade, LostPoints, Metrics, Recommendation, Wordings } from "../../grading/grade.ts";
import { evidenceGrades, scopes } from "../../grading/kinds.ts";
import { boolean, json, oneOf, orgReference, timestamp } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";
import { prompts } from "./prompts.ts";
import { runs } from "./runs.ts";

export const reportStatuses = ["published", "draft", "archived"] as const;
/** Statuses of a regrade. */
export const regradeStatuses = ["pending", "running", "completed", "failed", "cancelled"] as const;
export type ReportStatus = (typeof reportStatuses)[number];

/** A grade with the IDs of its friction points and recommended fixes. */
export type StoredGrade = Omit<Grade, "frictions" | "recommendations" | "exposure"> & {
  frictions: (Friction & { id: string })[];
  recommendations: (Omit<Recommendation, "frictions"> & { id: string; frictionIds: string[] })[];
};

/**
 * Number of runs per prompt, in total (`any`) and by the status of their report. Maintained by triggers, so that
 * nothing needs to be counted.
 */
export const runCounts = sqliteTable(
  "run_counts",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    reportStatus: text("report_status", { enum: ["any", ...reportStatuses] }).notNull(),
    count: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.orgId, table.promptId, table.reportStatus] })],
);

export const reports = sqliteTable(
  "reports",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    runId: text("run_id").notNull().unique(),
    promptId: text("prompt_id").notNull(),
    /** The attempt of the run whose session was graded. */
    attempt: integer().notNull(),
    slug: text().notNull().unique(),
    status: text({ enum: reportStatuses }).notNull(),
    outcome: text({ enum: outcomes }).notNull(),
    scope: text({ enum: scopes }).notNull().default("docs_only"),
    /** What shows the outcome; null: nothing, or the agent's own word. */
    evidence: text({ enum: evidenceGrades }),
    score: real(),
    grade: text(),
    nullNotice: text("null_notice"),
    keyFinding: text("key_finding").notNull(),
    verdict: text().notNull(),
    summary: json<{ whatWorked: string; whatDidnt: string }>("summary").notNull(),
    coverage: real().notNull(),
    metrics: json<Metrics>("metrics").notNull(),
    dimensions: json<Dimension[]>("dimensions").notNull(),
    lost: json<LostPoints>("lost"),
    wordings: json<Wordings>("wordings"),
    notChecked: json<Grade["notChecked"]>("not_checked").notNull().default([]),
    methodology: json<Grade["methodology"]>("methodology").notNull(),
    judge: json<NonNullable<Grade["judge"]>>("judge"),
    context: json<NonNullable<Grade["context"]>>("context"),
    /** The grading that this row, its friction points and recommended fixes show; null: it was graded once. */
    gradingId: text("grading_id"),
    /** A person selected it, so a newer one doesn't replace it. */
    gradingPinned: boolean("grading_pinned").notNull().default(false),
    /** A trigger copies these from its run, so that lists are filtered by them without reading runs. */
    agent: text(),
    agentVersion: text("agent_version"),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => {
    const { orgId, id, promptId, runId, status, scope, score, outcome, createdAt, agent, agentVersion } = table;
    return [
      unique("reports_of_org").on(orgId, id),
      index("reports_by_status").on(orgId, status, runId, promptId),
      // These indexes have all filters of lists, so that selecting and counting need only the index.
      index("reports_by_prompt").on(
        orgId,
        promptId,
        status,
        runId,
        scope,
        score,
        outcome,
        createdAt,
        agent,
        agentVersion,
      ),
      index("reports_by_agent").on(orgId, agent, id, promptId, scope, score, outcome, status, createdAt, agentVersion),
      index("reports_filtered").on(orgId, id, promptId, scope, score, outcome, status, createdAt, agent, agentVersion),
      index("reports_by_score").on(orgId, score, id, promptId, scope, outcome, status, createdAt, agent, agentVersion),
      orgReference("reports_run", [orgId, runId], runs),
      check("reports_status", oneOf(status, reportStatuses)),
      check("reports_outcome", oneOf(outcome, outcomes)),
      check("reports_evidence", oneOf(table.evidence, evidenceGrades)),
      check("reports_score", sql`${score} between 0 and 100`),
      check("reports_null_score", sql`(${score} is null) = (${table.nullNotice} is not null)`),
    ];
  },
);

/** Links that show a report without signing in. Only the SHA-256 of a token is stored. */
export const shareLinks = sqliteTable(
  "share_links",
  {
    tokenHash: blob("token_hash", { mode: "buffer" }).primaryKey(),
    id: text().notNull().unique(),
    orgId: text("org_id").notNull(),
    reportId: text("report_id").notNull(),
    /** Whether the session is included. */
    withSession: boolean("with_session").notNull(),
    createdAt: timestamp("created_at").notNull(),
    expiresAt: timestamp("expires_at").notNull(),
    revokedAt: timestamp("revoked_at"),
  },
  (table) => [
    index("share_links_by_report").on(table.orgId, table.reportId, table.id),
    orgReference("share_links_report", [table.orgId, table.reportId], reports),
    check("share_links_hash", sql`length(${table.tokenHash}) = 32`),
  ],
);

/** All grades of a report that was graded more than once, including the one that it shows. */
export const gradings = sqliteTable(
  "gradings",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    reportId: text("report_id").notNull(),
    /** The hash of its methodology; `repeat` numbers gradings with the same one, from 1. */
    hash: text().notNull(),
    repeat: integer().notNull(),
    grade: json<StoredGrade>("grade").notNull(),
    /** The events of its judging, unless they are in the session. */
    judging: json<SessionEvent[]>("judging"),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [
    unique("gradings_of_org").on(table.orgId, table.id),
    unique("gradings_of_report").on(table.reportId, table.hash, table.repeat),
    index("gradings_by_hash").on(table.orgId, table.hash, table.reportId),
    orgReference("gradings_report", [table.orgId, table.reportId], reports),
  ],
);

/** A regrade of stored sessions: its selection, its methodology and its progress. */
export const regrades = sqliteTable(
  "regrades",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    promptId: text("prompt_id"),
    /** Reports created from `since` on and before `until`. */
    since: timestamp("since").notNull(),
    until: timestamp("until").notNull(),
    methodology: text().notNull(),
    judge: text(),
    /** Digests of the methodology and judge at the time of the request. */
    hash: text().notNull(),
    repeats: integer().notNull(),
    maxUsd: real("max_usd"),
    status: text({ enum: regradeStatuses }).notNull(),
    /** The jobs of a regrade are numbered; this is the next or current one. */
    batch: integer().notNull(),
    /** The ID of the last processed report; empty: none. */
    cursor: text().notNull(),
    total: integer().notNull(),
    graded: integer().notNull(),
    unchanged: integer().notNull(),
    withoutEvents: integer("without_events").notNull(),
    failed: integer().notNull(),
    spentUsd: real("spent_usd").notNull(),
    /** Judge calls of unknown cost. */
    unpriced: integer().notNull(),
    failureCause: text("failure_cause", { enum: failureCauses }),
    failureDetail: text("failure_detail"),
    createdAt: timestamp("created_at").notNull(),
    completedAt: timestamp("completed_at"),
  },
  (table) => [
    index("regrades_newest").on(table.orgId, table.id),
    orgReference("regrades_prompt", [table.orgId, table.promptId], prompts),
    check("regrades_status", oneOf(table.status, regradeStatuses)),
    check(
      "regrades_terminal",
      sql`(${table.completedAt} is not null) = (${table.status} in ('completed', 'failed', 'cancelled'))`,
    ),
    check("regrades_failure_cause", oneOf(table.failureCause, failureCauses)),
    check(
      "regrades_failure",
      sql`(${table.failureCause} is not null) = (${table.status} in ('failed', 'cancelled')) and (${table.failureDetail} is null) = (${table.failureCause} is null)`,
    ),
  ],
);
