import { type SQL, sql } from "drizzle-orm";
import {
  type AnySQLiteColumn,
  blob,
  check,
  foreignKey,
  index,
  integer,
  primaryKey,
  real,
  sqliteTable,
  text,
  unique,
} from "drizzle-orm/sqlite-core";
import { eventSources, eventTypes, failureCauses, outcomes, type SessionEvent } from "../agents/agent.ts";
import { endCauses } from "../agents/failure.ts";
import type { DeclaredCheck, WorkspaceSetup } from "../agents/task.ts";
import type { Limits } from "../config/limits.ts";
import { modelProviders } from "../config/model-settings.ts";
import type {
  Dimension,
  Evidence,
  Friction,
  Grade,
  LostPoints,
  Metrics,
  Recommendation,
  Visit,
} from "../grading/grade.ts";
import { frictionCategories, frictionStates, phases, scopes, severities } from "../grading/kinds.ts";
import type { Life } from "../stats/lifecycle.ts";

export const promptStatuses = ["active", "paused", "archived"] as const;
export const runStatuses = ["pending", "running", "completed", "failed", "superseded"] as const;
export const reportStatuses = ["published", "draft", "archived"] as const;
export const triggers = ["schedule", "api", "mcp", "web", "cli"] as const;
/** Statuses of a regrade. */
export const regradeStatuses = ["pending", "running", "completed", "failed", "cancelled"] as const;
const jobStates = ["queued", "running", "done", "failed", "cancelled"] as const;
/** How an attempt ended. `retried`: will be retried; `released`: shutdown; `lost`: its process crashed. */
export const attemptOutcomes = ["done", "failed", "retried", "released", "lost", "cancelled"] as const;
/** Outcome of a due slot. `missed`: the service was down; `skipped_overlap`: earlier runs were still active; `failed`: the runs could not be requested. */
export const slotOutcomes = ["ran", "missed", "skipped_overlap", "failed"] as const;

/** Roles of people in an organization, highest first. */
export const roles = ["owner", "admin", "member"] as const;
const invitationStatuses = ["pending", "accepted", "rejected", "canceled"] as const;

export type Role = (typeof roles)[number];
export const gateStatuses = ["running", "passed", "failed", "error"] as const;

export type ReportStatus = (typeof reportStatuses)[number];
export type Trigger = (typeof triggers)[number];

/** The task of a run: the prompt when the run was accepted, with variables filled in. */
export type RunTask = {
  title: string | null;
  text: string;
  endGoal: string | null;
  startUrls: string[];
  productUrl: string | null;
  declaredChecks: DeclaredCheck[];
  workspace?: WorkspaceSetup;
  reviewBeforePublishing: boolean;
  /** The limits of the prompt. */
  limits: Limits | null;
  /** What the request chose in place of the prompt's agent and model. */
  chosen?: { agent?: string; model?: string };
};

/** A grade with the IDs of its friction points and recommended fixes. */
export type StoredGrade = Omit<Grade, "frictions" | "recommendations" | "exposure"> & {
  frictions: (Friction & { id: string })[];
  recommendations: (Omit<Recommendation, "frictions"> & { id: string; frictionIds: string[] })[];
};

/** A URL that a prompt adds to its provider's; unknown keys are kept and returned. */
export type AdditionalUrl = { url: string; [key: string]: unknown };

const oneOf = (column: AnySQLiteColumn, values: readonly string[]): SQL =>
  sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(", "))})`;

/** Epoch milliseconds. */
const at = (name: string) => integer(name);
/** The same for the tables of people, whose library uses Date. */
const date = (name: string) => integer(name, { mode: "timestamp_ms" });
const json = <T>(name: string) => text(name, { mode: "json" }).$type<T>();
const yes = (name: string) => integer(name, { mode: "boolean" });

export const orgs = sqliteTable(
  "orgs",
  {
    id: text().primaryKey(),
    name: text().notNull().unique(),
    timeZone: text("time_zone").notNull(),
    /** Concurrent runs, and runs within 24 hours; null: the configured limit. */
    maxRunsAtOnce: integer("max_runs_at_once"),
    maxRunsADay: integer("max_runs_a_day"),
    /** Maximum model cost per calendar month in its time zone, and per run; null: no own limit. */
    maxUsdAMonth: real("max_usd_a_month"),
    maxUsdARun: real("max_usd_a_run"),
    /** Models that judge its sessions, best first; null: the configured ones. */
    judgeModels: json<string[]>("judge_models"),
    createdAt: at("created_at").notNull(),
  },
  (t) => [check("orgs_name", sql`length(${t.name}) between 1 and 200`)],
);

/** Only the SHA-256 of a key is stored; `display` is its first ten and last four characters. */
export const apiKeys = sqliteTable(
  "api_keys",
  {
    hash: blob({ mode: "buffer" }).primaryKey(),
    id: text().notNull().unique(),
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    name: text().notNull(),
    display: text().notNull(),
    /** null: all of them. */
    scopes: json<string[]>("scopes"),
    createdAt: at("created_at").notNull(),
    expiresAt: at("expires_at"),
    revokedAt: at("revoked_at"),
    lastUsedAt: at("last_used_at"),
  },
  (t) => [index("api_keys_newest").on(t.orgId, t.id), check("api_keys_hash", sql`length(${t.hash}) = 32`)],
);

/** People can be members of several organizations. `email` is in lower case. */
export const people = sqliteTable(
  "people",
  {
    id: text().primaryKey(),
    name: text().notNull(),
    email: text().notNull().unique(),
    emailVerified: yes("email_verified").notNull(),
    image: text(),
    createdAt: date("created_at").notNull(),
    updatedAt: date("updated_at").notNull(),
  },
  (t) => [check("people_email", sql`${t.email} = lower(${t.email})`)],
);

const personId = () =>
  text("person_id")
    .notNull()
    .references(() => people.id, { onDelete: "cascade" });

/** How a person signs in: by password (argon2id), or through the identity provider, whose tokens are not stored. */
export const accounts = sqliteTable(
  "accounts",
  {
    id: text().primaryKey(),
    personId: personId(),
    providerId: text("provider_id").notNull(),
    accountId: text("account_id").notNull(),
    password: text(),
    createdAt: date("created_at").notNull(),
    updatedAt: date("updated_at").notNull(),
  },
  (t) => [unique("accounts_of_provider").on(t.providerId, t.accountId), index("accounts_of_person").on(t.personId)],
);

/** A browser in which a person is signed in. The token alone grants no access: the cookie contains a signature that is not stored. */
export const signIns = sqliteTable(
  "sign_ins",
  {
    id: text().primaryKey(),
    token: text().notNull().unique(),
    personId: personId(),
    /** The organization that the person selected. */
    orgId: text("org_id").references(() => orgs.id),
    ipAddress: text("ip_address"),
    userAgent: text("user_agent"),
    createdAt: date("created_at").notNull(),
    updatedAt: date("updated_at").notNull(),
    expiresAt: date("expires_at").notNull(),
  },
  (t) => [index("sign_ins_of_person").on(t.personId)],
);

/** Failed sign-in attempts, counted per network and per account. */
export const signInFailures = sqliteTable("sign_in_failures", {
  key: text().primaryKey(),
  count: integer().notNull(),
  since: at("since").notNull(),
});

export const members = sqliteTable(
  "members",
  {
    id: text().primaryKey(),
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    personId: personId(),
    role: text({ enum: roles }).notNull(),
    createdAt: date("created_at").notNull(),
  },
  (t) => [
    unique("members_once").on(t.orgId, t.personId),
    index("members_of_person").on(t.personId),
    check("members_role", oneOf(t.role, roles)),
  ],
);

export const invitations = sqliteTable(
  "invitations",
  {
    id: text().primaryKey(),
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    email: text().notNull(),
    role: text({ enum: roles }).notNull(),
    status: text({ enum: invitationStatuses }).notNull(),
    inviterId: text("inviter_id")
      .notNull()
      .references(() => people.id, { onDelete: "cascade" }),
    createdAt: date("created_at").notNull(),
    expiresAt: date("expires_at").notNull(),
  },
  (t) => [
    index("invitations_newest").on(t.orgId, t.id),
    check("invitations_role", oneOf(t.role, roles)),
    check("invitations_status", oneOf(t.status, invitationStatuses)),
  ],
);

/** API keys of model providers, one per organization and provider, encrypted. */
export const modelKeys = sqliteTable(
  "model_keys",
  {
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    provider: text({ enum: modelProviders }).notNull(),
    baseUrl: text("base_url").notNull(),
    /** 12 bytes of nonce, the encrypted key, and 16 bytes of authentication tag. */
    sealed: blob({ mode: "buffer" }).notNull(),
    createdAt: at("created_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.orgId, t.provider] }),
    check("model_keys_provider", oneOf(t.provider, modelProviders)),
  ],
);

export const providers = sqliteTable(
  "providers",
  {
    id: text().primaryKey(),
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    name: text().notNull(),
    docsUrl: text("docs_url"),
    productUrl: text("product_url"),
    createdAt: at("created_at").notNull(),
  },
  (t) => [unique("providers_of_org").on(t.orgId, t.id)],
);

export const prompts = sqliteTable(
  "prompts",
  {
    id: text().primaryKey(),
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    title: text(),
    text: text().notNull(),
    endGoal: text("end_goal"),
    status: text({ enum: promptStatuses }).notNull(),
    frequency: text(),
    runsPerEval: integer("runs_per_eval"),
    targetProviderId: text("target_provider_id"),
    additionalUrls: json<AdditionalUrl[]>("additional_urls"),
    /** In order of first appearance. Derived from text and endGoal whenever those change. */
    templateVars: json<string[]>("template_vars"),
    templateDefaults: json<Record<string, string>>("template_defaults"),
    declaredChecks: json<DeclaredCheck[]>("declared_checks"),
    workspace: json<WorkspaceSetup>("workspace"),
    agent: text(),
    model: text(),
    limits: json<Limits>("limits"),
    reviewBeforePublishing: yes("review_before_publishing").notNull(),
    /** Its docs never change, so any change of its score comes from the agent. */
    isCanary: yes("is_canary").notNull().default(false),
    tags: json<string[]>("tags").notNull().default([]),
    /** Whether its badge is shown without signing in. */
    hasPublicBadge: yes("has_public_badge").notNull().default(false),
    /** The evaluation that a person pinned as the baseline; null: the last published runs. */
    baselineRequestId: text("baseline_request_id"),
    createdAt: at("created_at").notNull(),
    /** The next slot to process; null if it is not scheduled. */
    nextSlotAt: at("next_slot_at"),
  },
  (t) => [
    unique("prompts_of_org").on(t.orgId, t.id),
    index("prompts_by_status").on(t.orgId, t.status, t.id),
    index("prompts_by_provider").on(t.orgId, t.targetProviderId, t.id),
    index("prompts_due").on(t.nextSlotAt).where(sql`${t.nextSlotAt} is not null`),
    foreignKey({
      name: "prompts_provider",
      columns: [t.orgId, t.targetProviderId],
      foreignColumns: [providers.orgId, providers.id],
    }),
    check("prompts_status", oneOf(t.status, promptStatuses)),
    check("prompts_runs_per_eval", sql`${t.runsPerEval} between 1 and 50`),
  ],
);

/** Uploaded tar.gz files with the starting files of workspaces. `digest` is their SHA-256. */
export const archives = sqliteTable(
  "archives",
  {
    id: text().primaryKey(),
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    digest: text().notNull(),
    bytes: integer().notNull(),
    files: integer().notNull(),
    data: blob({ mode: "buffer" }).notNull(),
    createdAt: at("created_at").notNull(),
  },
  (t) => [
    unique("archives_once").on(t.orgId, t.digest),
    check("archives_digest", sql`length(${t.digest}) = 64`),
    check("archives_data", sql`length(${t.data}) = ${t.bytes}`),
  ],
);

/** The runs of one evaluation; its status is derived from theirs. */
export const evalRequests = sqliteTable(
  "eval_requests",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    trigger: text({ enum: triggers }).notNull(),
    createdAt: at("created_at").notNull(),
  },
  (t) => [
    unique("eval_requests_of_org").on(t.orgId, t.id),
    index("eval_requests_by_prompt").on(t.orgId, t.promptId, t.id),
    index("eval_requests_by_trigger").on(t.orgId, t.trigger, t.id),
    foreignKey({
      name: "eval_requests_prompt",
      columns: [t.orgId, t.promptId],
      foreignColumns: [prompts.orgId, prompts.id],
    }),
    check("eval_requests_trigger", oneOf(t.trigger, triggers)),
  ],
);

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
    templateArgs: json<Record<string, string>>("template_args"),
    task: json<RunTask>("task").notNull(),
    agent: text().notNull(),
    agentVersion: text("agent_version"),
    model: text(),
    attempt: integer().notNull(),
    failureCause: text("failure_cause", { enum: endCauses }),
    failureDetail: text("failure_detail"),
    createdAt: at("created_at").notNull(),
    startedAt: at("started_at"),
    completedAt: at("completed_at"),
    /** Budget reserved for it while it is active; null: none. */
    reservedUsd: real("reserved_usd"),
    idempotencyKey: text("idempotency_key"),
    /** SHA-256 of the request with the idempotency key, in hex. */
    idempotencyHash: text("idempotency_hash"),
  },
  (t) => [
    unique("runs_of_org").on(t.orgId, t.id),
    index("runs_by_prompt").on(t.orgId, t.promptId, t.id),
    index("runs_unfinished").on(t.orgId, t.promptId).where(sql`${t.completedAt} is null`),
    index("runs_failed").on(t.orgId, t.promptId, t.id).where(sql`${t.status} = 'failed'`),
    index("runs_reserved").on(t.orgId).where(sql`${t.reservedUsd} is not null`),
    index("runs_by_agent").on(t.orgId, t.agent, t.id),
    // Partial, because almost all runs are completed.
    index("runs_without_report").on(t.orgId, t.status, t.id).where(sql`${t.status} in ('failed', 'superseded')`),
    index("runs_by_eval_request").on(t.orgId, t.evalRequestId, t.id),
    index("runs_by_idempotency_key").on(t.orgId, t.idempotencyKey).where(sql`${t.idempotencyKey} is not null`),
    foreignKey({ name: "runs_prompt", columns: [t.orgId, t.promptId], foreignColumns: [prompts.orgId, prompts.id] }),
    foreignKey({
      name: "runs_eval_request",
      columns: [t.orgId, t.evalRequestId],
      foreignColumns: [evalRequests.orgId, evalRequests.id],
    }),
    check("runs_status", oneOf(t.status, runStatuses)),
    check(
      "runs_terminal",
      sql`(${t.completedAt} is not null) = (${t.status} in ('completed', 'failed', 'superseded'))`,
    ),
    check("runs_failure_cause", oneOf(t.failureCause, endCauses)),
    check(
      "runs_failure",
      sql`(${t.failureCause} is not null) = (${t.status} in ('failed', 'superseded')) and (${t.failureDetail} is null) = (${t.failureCause} is null)`,
    ),
  ],
);

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
  (t) => [primaryKey({ columns: [t.orgId, t.promptId, t.reportStatus] })],
);

/** The session of a run: one row per event, append-only. `data` contains the fields of the event's type. */
export const sessionEvents = sqliteTable(
  "session_events",
  {
    orgId: text("org_id").notNull(),
    runId: text("run_id").notNull(),
    attempt: integer().notNull(),
    seq: integer().notNull(),
    at: at("at").notNull(),
    tMs: integer("t_ms").notNull(),
    type: text({ enum: eventTypes }).notNull(),
    source: text({ enum: eventSources }).notNull(),
    data: json<Record<string, unknown>>("data").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.attempt, t.seq] }),
    index("session_events_usage").on(t.runId, t.attempt).where(sql`${t.type} = 'usage'`),
    foreignKey({ name: "session_events_run", columns: [t.orgId, t.runId], foreignColumns: [runs.orgId, runs.id] }),
    check("session_events_type", oneOf(t.type, eventTypes)),
    check("session_events_source", oneOf(t.source, eventSources)),
  ],
);

/** Screenshots by agents, referenced by events. They are deleted with the events. */
export const artefacts = sqliteTable(
  "artefacts",
  {
    orgId: text("org_id").notNull(),
    runId: text("run_id").notNull(),
    attempt: integer().notNull(),
    name: text().notNull(),
    data: blob({ mode: "buffer" }).notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.attempt, t.name] }),
    foreignKey({ name: "artefacts_run", columns: [t.orgId, t.runId], foreignColumns: [runs.orgId, runs.id] }),
    check("artefacts_data", sql`length(${t.data}) between 1 and 524288`),
  ],
);

/** Model spending of an organization per 15 minutes, starting at `from`. Maintained by a trigger on session events. */
export const spending = sqliteTable(
  "spending",
  {
    orgId: text("org_id").notNull(),
    from: at("from").notNull(),
    usd: real().notNull(),
    /** Calls of unknown cost. */
    unpricedCalls: integer("unpriced_calls").notNull(),
  },
  (t) => [primaryKey({ columns: [t.orgId, t.from] })],
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
    methodology: json<Grade["methodology"]>("methodology").notNull(),
    judge: json<NonNullable<Grade["judge"]>>("judge"),
    /** The grading that this row, its friction points and recommended fixes show; null: it was graded once. */
    gradingId: text("grading_id"),
    /** A person selected it, so a newer one doesn't replace it. */
    gradingPinned: yes("grading_pinned").notNull().default(false),
    createdAt: at("created_at").notNull(),
  },
  (t) => [
    unique("reports_of_org").on(t.orgId, t.id),
    index("reports_by_status").on(t.orgId, t.status, t.runId),
    index("reports_by_prompt").on(t.orgId, t.promptId, t.status, t.runId),
    /** All filters of lists, so that counting needs only the index. */
    index("reports_filtered").on(t.orgId, t.id, t.promptId, t.scope, t.score, t.outcome, t.status, t.createdAt),
    foreignKey({ name: "reports_run", columns: [t.orgId, t.runId], foreignColumns: [runs.orgId, runs.id] }),
    check("reports_status", oneOf(t.status, reportStatuses)),
    check("reports_outcome", oneOf(t.outcome, outcomes)),
    check("reports_score", sql`${t.score} between 0 and 100`),
    check("reports_null_score", sql`(${t.score} is null) = (${t.nullNotice} is not null)`),
  ],
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
    withSession: yes("with_session").notNull(),
    createdAt: at("created_at").notNull(),
    expiresAt: at("expires_at").notNull(),
    revokedAt: at("revoked_at"),
  },
  (t) => [
    index("share_links_by_report").on(t.orgId, t.reportId, t.id),
    foreignKey({
      name: "share_links_report",
      columns: [t.orgId, t.reportId],
      foreignColumns: [reports.orgId, reports.id],
    }),
    check("share_links_hash", sql`length(${t.tokenHash}) = 32`),
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
    createdAt: at("created_at").notNull(),
  },
  (t) => [
    unique("gradings_of_org").on(t.orgId, t.id),
    unique("gradings_of_report").on(t.reportId, t.hash, t.repeat),
    index("gradings_by_hash").on(t.orgId, t.hash, t.reportId),
    foreignKey({
      name: "gradings_report",
      columns: [t.orgId, t.reportId],
      foreignColumns: [reports.orgId, reports.id],
    }),
  ],
);

/** A regrade of stored sessions: its selection, its methodology and its progress. */
export const regrades = sqliteTable(
  "regrades",
  {
    id: text().primaryKey(),
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    promptId: text("prompt_id"),
    /** Reports created from `since` on and before `until`. */
    since: at("since").notNull(),
    until: at("until").notNull(),
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
    createdAt: at("created_at").notNull(),
    completedAt: at("completed_at"),
  },
  (t) => [
    index("regrades_newest").on(t.orgId, t.id),
    foreignKey({
      name: "regrades_prompt",
      columns: [t.orgId, t.promptId],
      foreignColumns: [prompts.orgId, prompts.id],
    }),
    check("regrades_status", oneOf(t.status, regradeStatuses)),
    check(
      "regrades_terminal",
      sql`(${t.completedAt} is not null) = (${t.status} in ('completed', 'failed', 'cancelled'))`,
    ),
    check("regrades_failure_cause", oneOf(t.failureCause, failureCauses)),
    check(
      "regrades_failure",
      sql`(${t.failureCause} is not null) = (${t.status} in ('failed', 'cancelled')) and (${t.failureDetail} is null) = (${t.failureCause} is null)`,
    ),
  ],
);

export const frictionPoints = sqliteTable(
  "friction_points",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    reportId: text("report_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Position in the report, worst first, from 0. */
    position: integer().notNull(),
    fingerprint: text().notNull(),
    severity: text({ enum: severities }).notNull(),
    phase: text({ enum: phases }).notNull(),
    category: text({ enum: frictionCategories }).notNull(),
    title: text().notNull(),
    description: text().notNull(),
    quote: text(),
    url: text(),
    /** Whether the agent met it, or the goal depends on its page. */
    onPath: yes("on_path").notNull().default(true),
    events: json<number[]>("events").notNull(),
    lostSeconds: real("lost_seconds"),
    lostUsd: real("lost_usd"),
    lostPoints: real("lost_points"),
    grounds: json<string[]>("grounds").notNull(),
  },
  (t) => [
    unique("friction_points_of_org").on(t.orgId, t.id),
    unique("friction_points_of_report").on(t.reportId, t.fingerprint),
    index("friction_points_by_prompt").on(t.orgId, t.promptId, t.fingerprint),
    foreignKey({
      name: "friction_points_report",
      columns: [t.orgId, t.reportId],
      foreignColumns: [reports.orgId, reports.id],
    }),
    check("friction_points_severity", oneOf(t.severity, severities)),
    check("friction_points_phase", oneOf(t.phase, phases)),
    check("friction_points_category", oneOf(t.category, frictionCategories)),
    check("friction_points_events", sql`json_array_length(${t.events}) > 0`),
  ],
);

export const recommendations = sqliteTable(
  "recommendations",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    reportId: text("report_id").notNull(),
    priority: integer().notNull(),
    title: text().notNull(),
    action: text().notNull(),
    url: text(),
    frictionIds: json<string[]>("friction_ids").notNull(),
    expectedGain: real("expected_gain"),
    gain: json<{ low: number; high: number }>("gain"),
    evidence: json<Evidence>("evidence"),
  },
  (t) => [
    unique("recommendations_of_report").on(t.reportId, t.priority),
    foreignKey({
      name: "recommendations_report",
      columns: [t.orgId, t.reportId],
      foreignColumns: [reports.orgId, reports.id],
    }),
    check("recommendations_frictions", sql`json_array_length(${t.frictionIds}) > 0`),
  ],
);

/** What the session reached, to determine later which friction points it could have met. */
export const exposures = sqliteTable(
  "exposures",
  {
    reportId: text("report_id").primaryKey(),
    orgId: text("org_id").notNull(),
    visits: json<Visit[]>("visits").notNull(),
    done: json<string[]>("done").notNull(),
    isComplete: yes("is_complete").notNull(),
    byRules: yes("by_rules").notNull(),
  },
  (t) => [
    foreignKey({
      name: "exposures_report",
      columns: [t.orgId, t.reportId],
      foreignColumns: [reports.orgId, reports.id],
    }),
  ],
);

/** A friction point over the published runs of a prompt, with its lifecycle. Updated whenever a report is published or withdrawn. */
export const frictionLifecycles = sqliteTable(
  "friction_lifecycles",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Empty for the live docs, a digest of the urlMap for a preview. */
    place: text().notNull(),
    fingerprint: text().notNull(),
    /** The newest report that contains it. */
    reportId: text("report_id").notNull(),
    severity: text({ enum: severities }).notNull(),
    state: text({ enum: frictionStates }).notNull(),
    firstSeenAt: at("first_seen_at").notNull(),
    lastSeenAt: at("last_seen_at").notNull(),
    fixedAt: at("fixed_at"),
    /** Runs that met it, and runs that reached its place, since it was first met. */
    met: integer().notNull(),
    reached: integer().notNull(),
    lostPoints: real("lost_points"),
    lostSeconds: real("lost_seconds"),
    lostUsd: real("lost_usd"),
    /** Its place according to the newest report, as a page key. */
    page: text(),
    /** Agents and models that met it: only their runs can miss it. */
    metBy: json<string[]>("met_by").notNull(),
    grounds: json<string[]>("grounds").notNull(),
    life: json<Life>("life").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.orgId, t.promptId, t.place, t.fingerprint] }),
    foreignKey({
      name: "friction_lifecycles_prompt",
      columns: [t.orgId, t.promptId],
      foreignColumns: [prompts.orgId, prompts.id],
    }),
    foreignKey({
      name: "friction_lifecycles_report",
      columns: [t.orgId, t.reportId],
      foreignColumns: [reports.orgId, reports.id],
    }),
    check("friction_lifecycles_state", oneOf(t.state, frictionStates)),
    check("friction_lifecycles_severity", oneOf(t.severity, severities)),
  ],
);

/** Recommended fixes that a person marked as done, and the evaluations that verify them. */
export const fixes = sqliteTable(
  "fixes",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    title: text().notNull(),
    /** Of the friction points that it should remove. */
    fingerprints: json<string[]>("fingerprints").notNull(),
    doneBy: text("done_by").notNull(),
    note: text(),
    createdAt: at("created_at").notNull(),
    /** The last evaluation that met it, and the one that was requested to verify the fix. */
    beforeId: text("before_id").notNull(),
    afterId: text("after_id").notNull(),
  },
  (t) => [
    index("fixes_by_prompt").on(t.orgId, t.promptId, t.id),
    foreignKey({ name: "fixes_prompt", columns: [t.orgId, t.promptId], foreignColumns: [prompts.orgId, prompts.id] }),
    foreignKey({
      name: "fixes_before",
      columns: [t.orgId, t.beforeId],
      foreignColumns: [evalRequests.orgId, evalRequests.id],
    }),
    foreignKey({
      name: "fixes_after",
      columns: [t.orgId, t.afterId],
      foreignColumns: [evalRequests.orgId, evalRequests.id],
    }),
  ],
);

/** Published live results per day, one row per agent, version, model and methodology. Lists are in order of completion. */
export const scoreDays = sqliteTable(
  "score_days",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Start of the day, in UTC. */
    day: at("day").notNull(),
    agent: text().notNull(),
    /** Empty if there is none. */
    version: text().notNull(),
    model: text().notNull(),
    methodology: json<Grade["methodology"]>("methodology").notNull(),
    /** The scope of its scores: different scopes are separate series. */
    scope: text({ enum: scopes }).notNull().default("docs_only"),
    /** When the last of its runs was requested. */
    lastAt: at("last_at").notNull(),
    succeeded: integer().notNull(),
    judged: integer().notNull(),
    scores: json<number[]>("scores").notNull(),
    seconds: json<number[]>("seconds").notNull(),
    costsUsd: json<number[]>("costs_usd").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.orgId, t.promptId, t.day, t.agent, t.version, t.model, t.methodology, t.scope] }),
    foreignKey({
      name: "score_days_prompt",
      columns: [t.orgId, t.promptId],
      foreignColumns: [prompts.orgId, prompts.id],
    }),
  ],
);

/** What agents did with docs pages per month, by published live runs. The row with an empty page counts the runs themselves. */
export const pageMonths = sqliteTable(
  "page_months",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Start of the month, in UTC. */
    month: at("month").notNull(),
    agent: text().notNull(),
    page: text().notNull(),
    url: text().notNull(),
    /** Runs that read it. */
    runs: integer().notNull(),
    reads: integer().notNull(),
    misses: integer().notNull(),
    guesses: integer().notNull(),
    errors: integer().notNull(),
    given: integer().notNull(),
    llmsTxt: integer("llms_txt").notNull(),
    sitemap: integer().notNull(),
    link: integer().notNull(),
    search: integer().notNull(),
    guessed: integer().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.orgId, t.promptId, t.month, t.agent, t.page] }),
    foreignKey({
      name: "page_months_prompt",
      columns: [t.orgId, t.promptId],
      foreignColumns: [prompts.orgId, prompts.id],
    }),
  ],
);

/** Pages that are linked or listed, and when each was last seen there; null: never. */
export const namedPages = sqliteTable(
  "named_pages",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    page: text().notNull(),
    url: text().notNull(),
    llmsTxtAt: at("llms_txt_at"),
    sitemapAt: at("sitemap_at"),
    linkAt: at("link_at"),
  },
  (t) => [
    primaryKey({ columns: [t.orgId, t.promptId, t.page] }),
    foreignKey({
      name: "named_pages_prompt",
      columns: [t.orgId, t.promptId],
      foreignColumns: [prompts.orgId, prompts.id],
    }),
  ],
);

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
  (t) => [
    primaryKey({ columns: [t.promptId, t.scheduledAt] }),
    foreignKey({ name: "slots_prompt", columns: [t.orgId, t.promptId], foreignColumns: [prompts.orgId, prompts.id] }),
    foreignKey({
      name: "slots_eval_request",
      columns: [t.orgId, t.evalRequestId],
      foreignColumns: [evalRequests.orgId, evalRequests.id],
    }),
    check("slots_outcome", oneOf(t.outcome, slotOutcomes)),
    check("slots_ran", sql`(${t.outcome} = 'ran') = (${t.evalRequestId} is not null)`),
    check("slots_reason", sql`(${t.outcome} = 'ran') = (${t.reason} is null)`),
  ],
);

/** One prompt of a gate, with the evaluations of both sides; without `baseRequestId` the base is `baseRunIds`. */
export type GateTarget = {
  promptId: string;
  headRequestId: string;
  baseRequestId: string | null;
  baseRunIds: string[] | null;
  model: string | null;
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
    /** The requested model of its runs; finished runs name the one that answered. */
    model: text(),
    /** The second and further prompts of a gate, with the same data as the columns above. */
    others: json<GateTarget[]>("others"),
    /** Maximum runs per side of each prompt. */
    runs: integer().notNull(),
    adaptive: yes("adaptive").notNull(),
    minScore: real("min_score"),
    /** The scope to which `minScore` applies. */
    scope: text({ enum: scopes }).notNull().default("goal"),
    budgetUsd: real("budget_usd"),
    status: text({ enum: gateStatuses }).notNull(),
    reason: text(),
    comparison: json<object>("comparison"),
    /** Cost of its runs at the time of the decision; null: unknown. */
    spentUsd: real("spent_usd"),
    createdAt: at("created_at").notNull(),
    completedAt: at("completed_at"),
  },
  (t) => [
    unique("gates_of_org").on(t.orgId, t.id),
    unique("gates_of_request").on(t.orgId, t.headRequestId),
    index("gates_by_prompt").on(t.orgId, t.promptId, t.id),
    index("gates_running").on(t.id).where(sql`${t.status} = 'running'`),
    foreignKey({ name: "gates_prompt", columns: [t.orgId, t.promptId], foreignColumns: [prompts.orgId, prompts.id] }),
    foreignKey({
      name: "gates_head",
      columns: [t.orgId, t.headRequestId],
      foreignColumns: [evalRequests.orgId, evalRequests.id],
    }),
    foreignKey({
      name: "gates_base",
      columns: [t.orgId, t.baseRequestId],
      foreignColumns: [evalRequests.orgId, evalRequests.id],
    }),
    check("gates_scope", oneOf(t.scope, scopes)),
    check("gates_status", oneOf(t.status, gateStatuses)),
    check("gates_completed", sql`(${t.status} = 'running') = (${t.completedAt} is null)`),
    check("gates_reason", sql`(${t.status} = 'running') = (${t.reason} is null)`),
  ],
);

/** Jobs for the runner. `subject` is the ID of the row that it serves; `attempt` fences off writes of an old lease. */
export const jobs = sqliteTable(
  "jobs",
  {
    id: text().primaryKey(),
    kind: text().notNull(),
    subject: text().notNull(),
    /** The organization, and the first host that it requests: limits apply to these. */
    orgId: text("org_id").notNull(),
    host: text().notNull(),
    state: text({ enum: jobStates }).notNull(),
    /** 0: immediately, whatever the clock says. */
    availableAt: at("available_at").notNull(),
    /** Number of starts. */
    attempt: integer().notNull(),
    /** Attempts that count against `maxAttempts`. Faults and crashes are counted below, each with its own limit. */
    spent: integer().notNull(),
    maxAttempts: integer("max_attempts").notNull(),
    /** Infrastructure faults: network, model provider, disk. */
    faults: integer().notNull(),
    /** Crashes of its process. */
    crashes: integer("deaths").notNull(),
    owner: text(),
    leaseUntil: at("lease_until"),
    lastError: text("last_error"),
    createdAt: at("created_at").notNull(),
    startedAt: at("started_at"),
    completedAt: at("completed_at"),
  },
  (t) => [
    unique("jobs_subject").on(t.kind, t.subject),
    index("jobs_claim").on(t.orgId, t.host, t.availableAt, t.id).where(sql`${t.state} = 'queued'`),
    index("jobs_waiting").on(t.availableAt).where(sql`${t.state} = 'queued' and ${t.availableAt} > 0`),
    index("jobs_running").on(t.leaseUntil).where(sql`${t.state} = 'running'`),
    index("jobs_started").on(t.orgId, t.startedAt).where(sql`${t.startedAt} is not null`),
    check("jobs_state", oneOf(t.state, jobStates)),
    check("jobs_lease", sql`(${t.state} = 'running') = (${t.leaseUntil} is not null)`),
    check("jobs_completed", sql`(${t.state} in ('done', 'failed', 'cancelled')) = (${t.completedAt} is not null)`),
  ],
);

/** The attempts of a job, one row per start. */
export const attempts = sqliteTable(
  "attempts",
  {
    jobId: text("job_id").notNull(),
    attempt: integer().notNull(),
    owner: text().notNull(),
    startedAt: at("started_at").notNull(),
    completedAt: at("completed_at"),
    outcome: text({ enum: attemptOutcomes }),
    reason: text(),
    /** Model cost when it ended; null if unknown. */
    costUsd: real("cost_usd"),
  },
  (t) => [
    primaryKey({ columns: [t.jobId, t.attempt] }),
    check("attempts_outcome", oneOf(t.outcome, attemptOutcomes)),
    check("attempts_completed_at", sql`(${t.outcome} is null) = (${t.completedAt} is null)`),
  ],
);
