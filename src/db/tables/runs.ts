import { sql } from "drizzle-orm";
import {
  type AnySQLiteColumn,
  blob,
  check,
  index,
  integer,
  primaryKey,
  real,
  sqliteTable,
  text,
  unique,
} from "drizzle-orm/sqlite-core";
import { eventSources, eventTypes } from "../../agents/agent.ts";
import type { Basis } from "../../agents/basis.ts";
import { endCauses, type FailureCode, failureCodes } from "../../agents/failure.ts";
import type { AgentOptions, DeclaredCheck, TaskSite, WorkspaceSetup } from "../../agents/task.ts";
import type { Limits } from "../../config/limits.ts";
import type { Edits } from "../../net/edits.ts";
import { json, oneOf, orgReference, timestamp } from "./columns.ts";
import { prompts } from "./prompts.ts";

export const runStatuses = ["pending", "running", "completed", "failed", "superseded"] as const;
/** `ci`: a gate, or a job that signed in with its ID token. */
export const triggers = ["schedule", "ci", "api", "mcp", "web", "cli"] as const;
/** `worker`: no connected worker has what a run needs; `slot`: all that have it are busy; `budget`: active runs have reserved the rest of it. */
export const waitingReasons = ["worker", "slot", "budget", "paused_organization", "paused_agent"] as const;
export type Trigger = (typeof triggers)[number];

/** The task of a run: the prompt when the run was accepted, with variables filled in. */
export type RunTask = {
  title: string | null;
  text: string;
  endGoal: string | null;
  /** Other wordings of the end goal. */
  wordings?: string[];
  /** The text of a page that the prompt rests on. */
  basis?: Basis;
  startUrls: string[];
  productUrl: string | null;
  site?: TaskSite;
  edits?: Edits;
  declaredChecks: DeclaredCheck[];
  workspace?: WorkspaceSetup;
  agentOptions?: AgentOptions;
  reviewBeforePublishing: boolean;
  /** The limits of the prompt. */
  limits: Limits | null;
  /** Labels that the worker must have. */
  workerLabels?: string[];
  /** What the request chose in place of the prompt's agent and model. */
  chosen?: { agent?: string; model?: string };
};

/** What an active run waits for. `failsAt`: in epoch milliseconds; null: it waits without limit. */
export type WaitingFor = {
  what: (typeof waitingReasons)[number];
  agent: string;
  sandbox: boolean;
  labels: readonly string[];
  failsAt: number | null;
};

/**
 * The runs of one evaluation. Triggers derive its `status` from the statuses of the runs: pending until one has started, running until all have
 * ended, then the best one among them.
 */
export const evalRequests = sqliteTable(
  "eval_requests",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    trigger: text({ enum: triggers }).notNull(),
    /** Who requested it: a person, or an API key; both null: a schedule, the operator, or an instance that it was imported from. */
    personId: text("person_id"),
    keyId: text("key_id"),
    createdAt: timestamp("created_at").notNull(),
    status: text({ enum: runStatuses }).notNull().default("pending"),
  },
  (table) => [
    unique("eval_requests_of_org").on(table.orgId, table.id),
    // Both indexes include the prompt, so that SQLite needs only the index to skip rows before a page and rows of deleted prompts.
    index("eval_requests_newest").on(table.orgId, table.id, table.promptId),
    index("eval_requests_by_status").on(table.orgId, table.status, table.id, table.promptId),
    index("eval_requests_by_prompt_and_status").on(table.orgId, table.promptId, table.status, table.id),
    index("eval_requests_by_prompt").on(table.orgId, table.promptId, table.id),
    index("eval_requests_by_trigger").on(table.orgId, table.trigger, table.id),
    orgReference("eval_requests_prompt", [table.orgId, table.promptId], prompts),
    check("eval_requests_trigger", oneOf(table.trigger, triggers)),
    check("eval_requests_status", oneOf(table.status, runStatuses)),
  ],
);

/** How many evaluations each prompt has by status. Triggers keep it up to date. */
export const evalCounts = sqliteTable(
  "eval_counts",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    status: text({ enum: runStatuses }).notNull(),
    count: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.orgId, table.promptId, table.status] })],
);

/** Milliseconds that a run took; -1 if it has not ended. It contains no commas, because drizzle-kit splits indexes at them. */
export const durationOf = ({ completedAt, startedAt }: { completedAt: AnySQLiteColumn; startedAt: AnySQLiteColumn }) =>
  sql<number>`case when ${completedAt} > ${startedAt} then ${completedAt} - ${startedAt} else -1 end`;

/** IDs are UUIDv7 of `createdAt`, so lists can be sorted by ID alone. */
export const runs = sqliteTable(
  "runs",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    evalRequestId: text("eval_request_id").notNull(),
    status: text({ enum: runStatuses }).notNull(),
    urlMap: json<Record<string, string>>("url_map").notNull(),
    /** SHA-256 of the edits of its docs, and of what an experiment changed about its prompt, in hex; null: both are as they are. */
    editsDigest: text("edits_digest"),
    templateArgs: json<Record<string, string>>("template_args"),
    task: json<RunTask>("task").notNull(),
    agent: text().notNull(),
    agentVersion: text("agent_version"),
    /** Digest of the content of its workspace when the agent started; null: it was empty. */
    contextDigest: text("context_digest"),
    model: text(),
    /** Position of its agent among the agents of the evaluation. */
    agentIndex: integer("agent_index").notNull().default(0),
    attempt: integer().notNull(),
    failureCause: text("failure_cause", { enum: endCauses }),
    /** What exactly happened, and with what: see `failureRules`. */
    failureCode: text("failure_code", { enum: failureCodes as [FailureCode, ...FailureCode[]] }),
    failureSubject: text("failure_subject"),
    failureDetail: text("failure_detail"),
    createdAt: timestamp("created_at").notNull(),
    startedAt: timestamp("started_at"),
    completedAt: timestamp("completed_at"),
    /** Why its agent has not started, although the run is active; null: it has. */
    waitingFor: json<WaitingFor>("waiting_for"),
    /** Budget reserved for it while it is active; null: none. */
    reservedUsd: real("reserved_usd"),
    /** Cost of the model calls of all its attempts and of its judge, with estimates; null: it was imported. */
    spentUsd: real("spent_usd"),
    idempotencyKey: text("idempotency_key"),
    /** SHA-256 of the request with the idempotency key, in hex. */
    idempotencyHash: text("idempotency_hash"),
  },
  (table) => [
    unique("runs_of_org").on(table.orgId, table.id),
    // This index includes the prompt, so that SQLite needs only the index to skip rows before a page and rows of deleted prompts.
    index("runs_newest").on(table.orgId, table.id, table.promptId),
    // The index has the columns that say how a run ended, so that the runs of a prompt are counted without reading them.
    index("runs_by_prompt").on(
      table.orgId,
      table.promptId,
      table.id,
      table.agent,
      table.status,
      table.failureCause,
      table.urlMap,
      table.editsDigest,
      table.model,
    ),
    index("runs_unfinished").on(table.orgId, table.promptId).where(sql`${table.completedAt} is null`),
    // For operators, who see the failures of all organizations.
    index("runs_failed_newest")
      .on(table.id, table.failureCause, table.failureCode)
      .where(sql`${table.status} = 'failed'`),
    // The index has the columns that say whether a failure counts, so that the oldest and newest such failures are found without reading runs.
    index("runs_failed")
      .on(table.orgId, table.promptId, table.agent, table.id, table.failureCause, table.urlMap, table.editsDigest)
      .where(sql`${table.status} = 'failed'`),
    index("runs_reserved").on(table.orgId).where(sql`${table.reservedUsd} is not null`),
    index("runs_by_agent").on(table.orgId, table.agent, table.id),
    // The index is partial, because almost all runs are completed.
    index("runs_without_report")
      .on(table.orgId, table.status, table.id)
      .where(sql`${table.status} in ('failed', 'superseded')`),
    /** Failed runs that cost money. */
    index("runs_failed_paid")
      .on(table.orgId, table.id, table.spentUsd)
      .where(sql`${table.status} = 'failed' and ${table.spentUsd} > 0`),
    index("runs_by_eval_request").on(table.orgId, table.evalRequestId, table.id),
    /** The index has all filters of lists, so that only listed rows are read. */
    index("runs_by_duration").on(
      table.orgId,
      durationOf(table),
      table.id,
      table.promptId,
      table.agent,
      table.status,
      table.model,
    ),
    index("runs_by_idempotency_key")
      .on(table.orgId, table.idempotencyKey)
      .where(sql`${table.idempotencyKey} is not null`),
    orgReference("runs_prompt", [table.orgId, table.promptId], prompts),
    orgReference("runs_eval_request", [table.orgId, table.evalRequestId], evalRequests),
    check("runs_status", oneOf(table.status, runStatuses)),
    check(
      "runs_terminal",
      sql`(${table.completedAt} is not null) = (${table.status} in ('completed', 'failed', 'superseded'))`,
    ),
    check("runs_failure_cause", oneOf(table.failureCause, endCauses)),
    check("runs_failure_code", oneOf(table.failureCode, failureCodes)),
    check(
      "runs_failure",
      sql`(${table.failureCause} is not null) = (${table.status} in ('failed', 'superseded')) and (${table.failureDetail} is null) = (${table.failureCause} is null) and (${table.failureCode} is null) = (${table.failureCause} is null)`,
    ),
  ],
);

/** Whether a run read the live docs as they are. Only such runs count in the figures of their prompt. */
export const isLiveRun = sql`${runs.urlMap} = '{}' and ${runs.editsDigest} is null`;

/**
 * How many live runs of a prompt and agent, created in an hour that starts at `from`, completed, and how many failed without being cancelled.
 * Triggers keep it up to date, so that the runs of a week are not counted one by one. An hour with neither has no row.
 */
export const runHours = sqliteTable(
  "run_hours",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    agent: text().notNull(),
    from: timestamp("from").notNull(),
    completed: integer().notNull(),
    failed: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.promptId, table.agent, table.from] }),
    index("run_hours_failed").on(table.orgId, table.from, table.promptId, table.agent).where(sql`${table.failed} > 0`),
  ],
);

/** The session of a run: one row per event, append-only. `data` contains the fields of the event's type. */
export const sessionEvents = sqliteTable(
  "session_events",
  {
    orgId: text("org_id").notNull(),
    runId: text("run_id").notNull(),
    attempt: integer().notNull(),
    seq: integer().notNull(),
    at: timestamp("at").notNull(),
    tMs: integer("t_ms").notNull(),
    type: text({ enum: eventTypes }).notNull(),
    source: text({ enum: eventSources }).notNull(),
    data: json<Record<string, unknown>>("data").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.runId, table.attempt, table.seq] }),
    index("session_events_usage").on(table.runId, table.attempt).where(sql`${table.type} = 'usage'`),
    orgReference("session_events_run", [table.orgId, table.runId], runs),
    check("session_events_type", oneOf(table.type, eventTypes)),
    check("session_events_source", oneOf(table.source, eventSources)),
  ],
);

/** Screenshots by agents, referenced by events. They are deleted with the events. */
export const artifacts = sqliteTable(
  "artifacts",
  {
    orgId: text("org_id").notNull(),
    runId: text("run_id").notNull(),
    attempt: integer().notNull(),
    name: text().notNull(),
    data: blob({ mode: "buffer" }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.runId, table.attempt, table.name] }),
    orgReference("artifacts_run", [table.orgId, table.runId], runs),
    check("artifacts_data", sql`length(${table.data}) between 1 and 524288`),
  ],
);

/** The text of a version of a page, once per organization. A trigger deletes it with the last session that read it. */
export const pageTexts = sqliteTable(
  "page_texts",
  {
    id: integer().primaryKey(),
    orgId: text("org_id").notNull(),
    /** SHA-256 of the text, in hex. */
    digest: text().notNull(),
    /** The text, compressed with Zstandard. */
    data: blob({ mode: "buffer" }).notNull(),
  },
  (table) => [
    unique("page_texts_of_org").on(table.orgId, table.id),
    unique("page_texts_by_digest").on(table.orgId, table.digest),
  ],
);

/** Which text an agent read, by the event that says so. They are deleted with the events. */
export const sessionPages = sqliteTable(
  "session_pages",
  {
    orgId: text("org_id").notNull(),
    runId: text("run_id").notNull(),
    attempt: integer().notNull(),
    seq: integer().notNull(),
    textId: integer("text_id").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.runId, table.attempt, table.seq] }),
    index("session_pages_by_text").on(table.orgId, table.textId),
    orgReference("session_pages_run", [table.orgId, table.runId], runs),
    orgReference("session_pages_text", [table.orgId, table.textId], pageTexts),
  ],
);
