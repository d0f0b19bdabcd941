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
  sqliteView,
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
  Scope,
  Visit,
  Wordings,
} from "../grading/grade.ts";
import { frictionCategories, frictionStates, phases, scopes, severities } from "../grading/kinds.ts";
import type { Life } from "../stats/lifecycle.ts";

export const promptStatuses = ["active", "paused", "archived"] as const;
export const runStatuses = ["pending", "running", "completed", "failed", "superseded"] as const;
export const reportStatuses = ["published", "draft", "archived"] as const;
export const triggers = ["schedule", "api", "mcp", "web", "cli"] as const;
/** Statuses of a regrade. */
export const regradeStatuses = ["pending", "running", "completed", "failed", "cancelled"] as const;
/** Jobs that share a runner. A delivery must neither wait for runs nor keep them waiting. */
export const jobPools = ["runs", "deliveries"] as const;
const jobStates = ["queued", "running", "done", "failed", "cancelled"] as const;
/** `worker`: no connected worker has what a run needs; `slot`: every worker that has is busy. */
export const waitingReasons = ["worker", "slot"] as const;
/** How an attempt that did not end its job ended. `retried`: will be retried; `released`: shutdown; `lost`: its process crashed. */
export const returnOutcomes = ["retried", "released", "lost"] as const;
export const attemptOutcomes = ["done", "failed", ...returnOutcomes, "cancelled"] as const;
/** Outcome of a due slot. `missed`: the service was down; `skipped_overlap`: earlier runs were still active; `failed`: the runs could not be requested. */
export const slotOutcomes = ["ran", "missed", "skipped_overlap", "failed"] as const;

/** Roles of people in an organization, highest first. */
export const roles = ["owner", "admin", "member", "viewer"] as const;
const invitationStatuses = ["pending", "accepted", "rejected", "canceled"] as const;

export type Role = (typeof roles)[number];

export const destinationKinds = ["webhook", "slack", "email"] as const;
export const disableReasons = ["request", "gone", "failing"] as const;
export const deliveryStatuses = ["pending", "delivered", "failed"] as const;
/** Why a delivery failed for good. `exhausted`: all tries failed; `interrupted`: the service crashed too often during them. */
export const deliveryFailures = ["exhausted", "gone", "disabled", "interrupted"] as const;

/** `regressed`: reported again after it was resolved. */
export const fieldStates = ["open", "regressed", "resolved", "dismissed"] as const;

export const gateStatuses = ["running", "passed", "failed", "error"] as const;

export type ReportStatus = (typeof reportStatuses)[number];
export type Trigger = (typeof triggers)[number];

/** The task of a run: the prompt when the run was accepted, with variables filled in. */
export type RunTask = {
  title: string | null;
  text: string;
  endGoal: string | null;
  /** Other wordings of the end goal. */
  wordings?: string[];
  startUrls: string[];
  productUrl: string | null;
  declaredChecks: DeclaredCheck[];
  workspace?: WorkspaceSetup;
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

/** An agent of a prompt that names several. `model` null: the default. */
export type PromptAgent = { agent: string; model: string | null };

/** A grade with the IDs of its friction points and recommended fixes. */
export type StoredGrade = Omit<Grade, "frictions" | "recommendations" | "exposure"> & {
  frictions: (Friction & { id: string })[];
  recommendations: (Omit<Recommendation, "frictions"> & { id: string; frictionIds: string[] })[];
};

/** The lowest score with which a run succeeds whose goal was not tested, and the scope that it must have. */
export type SuccessBar = { scope: Exclude<Scope, "goal">; minScore: number };

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
    /** Secret part of the URL of its results page, which is shown without signing in; null: there is none. */
    resultsToken: text("results_token").unique(),
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
    /** The person who created it; null: the operator, or a version of evald that didn't record it. */
    createdBy: text("created_by"),
    /** The trust whose job exchanged an ID token for it; null: created by hand. */
    trustId: text("trust_id"),
    /** For clients that were not written for evald. */
    isCompatible: yes("is_compatible").notNull().default(false),
  },
  (t) => [index("api_keys_newest").on(t.orgId, t.id), check("api_keys_hash", sql`length(${t.hash}) = 32`)],
);

export const ciProviders = ["github", "gitlab"] as const;

/** CI jobs that may exchange an ID token for an API key. */
export const trusts = sqliteTable(
  "trusts",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    provider: text({ enum: ciProviders }).notNull(),
    issuer: text().notNull(),
    repository: text().notNull(),
    /** Of the repository: names are given away, IDs never. null: that of the first job. */
    repositoryId: text("repository_id"),
    /** May end with `*`. null: any. */
    ref: text(),
    environment: text(),
    /** Of the keys that it gives. */
    scopes: json<string[]>("scopes").notNull(),
    minutes: integer().notNull(),
    createdAt: at("created_at").notNull(),
    /** The person who created it; null: the operator. */
    createdBy: text("created_by"),
  },
  (t) => [
    index("trusts_of_org").on(t.orgId, t.id),
    foreignKey({ name: "trusts_org", columns: [t.orgId], foreignColumns: [orgs.id] }),
  ],
);

/** ID tokens that were exchanged, until they expire: each works once. */
export const usedTokens = sqliteTable(
  "used_tokens",
  { issuer: text().notNull(), jti: text().notNull(), expiresAt: at("expires_at").notNull() },
  (t) => [primaryKey({ columns: [t.issuer, t.jti] }), index("used_tokens_expiry").on(t.expiresAt)],
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
    /** Other wordings of the end goal. */
    wordings: json<string[]>("wordings"),
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
    /** At least two, of which `agent` and `model` are the first; null: only those. */
    agents: json<PromptAgent[]>("agents"),
    limits: json<Limits>("limits"),
    reviewBeforePublishing: yes("review_before_publishing").notNull(),
    /** Its docs never change, so any change of its score comes from the agent. */
    isCanary: yes("is_canary").notNull().default(false),
    tags: json<string[]>("tags").notNull().default([]),
    /** Requests over REST supersede unfinished runs of the same preview unless they say otherwise. */
    supersedesByDefault: yes("supersedes_by_default").notNull().default(false),
    /** Scores with which runs succeed whose goal was not tested; null: none. */
    successBar: json<SuccessBar>("success_bar"),
    isOnResultsPage: yes("is_on_results_page").notNull().default(false),
    /** Labels of the workers that may run it. */
    workerLabels: json<string[]>("worker_labels").notNull().default([]),
    /** Secret part of the URL of its badge, which is shown without signing in; null: there is none. */
    badgeToken: text("badge_token").unique(),
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

/** Milliseconds that a run took; -1 if it has not ended. Without commas, which drizzle-kit splits indexes at. */
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
    templateArgs: json<Record<string, string>>("template_args"),
    task: json<RunTask>("task").notNull(),
    agent: text().notNull(),
    agentVersion: text("agent_version"),
    /** Digest of what its workspace held when the agent started; null: nothing. */
    contextDigest: text("context_digest"),
    model: text(),
    /** Position of its agent among those of the evaluation. */
    agentIndex: integer("agent_index").notNull().default(0),
    attempt: integer().notNull(),
    failureCause: text("failure_cause", { enum: endCauses }),
    failureDetail: text("failure_detail"),
    createdAt: at("created_at").notNull(),
    startedAt: at("started_at"),
    completedAt: at("completed_at"),
    /** Why its agent has not started, although the run is active; null: it has. */
    waitingFor: json<WaitingFor>("waiting_for"),
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
    /** All filters of lists, so that only listed rows are read. */
    index("runs_by_duration").on(t.orgId, durationOf(t), t.id, t.promptId, t.agent, t.status),
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
export const artifacts = sqliteTable(
  "artifacts",
  {
    orgId: text("org_id").notNull(),
    runId: text("run_id").notNull(),
    attempt: integer().notNull(),
    name: text().notNull(),
    data: blob({ mode: "buffer" }).notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.attempt, t.name] }),
    foreignKey({ name: "artifacts_run", columns: [t.orgId, t.runId], foreignColumns: [runs.orgId, runs.id] }),
    check("artifacts_data", sql`length(${t.data}) between 1 and 524288`),
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
    wordings: json<Wordings>("wordings"),
    methodology: json<Grade["methodology"]>("methodology").notNull(),
    judge: json<NonNullable<Grade["judge"]>>("judge"),
    context: json<NonNullable<Grade["context"]>>("context"),
    /** The grading that this row, its friction points and recommended fixes show; null: it was graded once. */
    gradingId: text("grading_id"),
    /** A person selected it, so a newer one doesn't replace it. */
    gradingPinned: yes("grading_pinned").notNull().default(false),
    /** Those of its run, which a trigger copies: lists are filtered by them without reading runs. */
    agent: text(),
    agentVersion: text("agent_version"),
    createdAt: at("created_at").notNull(),
  },
  (t) => [
    unique("reports_of_org").on(t.orgId, t.id),
    index("reports_by_status").on(t.orgId, t.status, t.runId),
    /** These have all filters of lists, so that selecting and counting need only the index. */
    index("reports_by_prompt").on(
      ...([t.orgId, t.promptId, t.status, t.runId, t.scope, t.score, t.outcome, t.createdAt] as const),
      ...[t.agent, t.agentVersion],
    ),
    index("reports_by_agent").on(
      ...([t.orgId, t.agent, t.id, t.promptId, t.scope, t.score, t.outcome, t.status, t.createdAt] as const),
      t.agentVersion,
    ),
    index("reports_filtered").on(
      ...([t.orgId, t.id, t.promptId, t.scope, t.score, t.outcome, t.status, t.createdAt] as const),
      ...[t.agent, t.agentVersion],
    ),
    index("reports_by_score").on(
      ...([t.orgId, t.score, t.id, t.promptId, t.scope, t.outcome, t.status, t.createdAt] as const),
      ...[t.agent, t.agentVersion],
    ),
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
    lostPoints: real("lost_points"),
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
    index("friction_lifecycles_by_fingerprint").on(t.orgId, t.fingerprint),
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

/** Dismissed friction points. A dismissal also applies to later reports, until it is undone. */
export const dismissals = sqliteTable(
  "dismissals",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    fingerprints: json<string[]>("fingerprints").notNull(),
    /** Title of the friction point when it was dismissed. */
    title: text().notNull(),
    reason: text().notNull(),
    dismissedBy: text("dismissed_by").notNull(),
    createdAt: at("created_at").notNull(),
    withdrawnBy: text("withdrawn_by"),
    withdrawnAt: at("withdrawn_at"),
  },
  (t) => [
    index("dismissals_of_org").on(t.orgId, t.id),
    foreignKey({ name: "dismissals_org", columns: [t.orgId], foreignColumns: [orgs.id] }),
    check("dismissals_withdrawn", sql`(${t.withdrawnBy} is null) = (${t.withdrawnAt} is null)`),
  ],
);

/** Friction that agents outside of runs reported, one row per place and category. */
export const fieldFriction = sqliteTable(
  "field_friction",
  {
    id: text().primaryKey(),
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    /** Its own first, then those that friction of a run at the same place may have. */
    fingerprints: json<string[]>("fingerprints").notNull(),
    fingerprint: text().notNull(),
    category: text({ enum: frictionCategories }).notNull(),
    /** A URL, or the name of a command or function. */
    place: text().notNull(),
    title: text().notNull(),
    /** Number of reports; only the newest are kept. */
    reports: integer().notNull(),
    firstReportedAt: at("first_reported_at").notNull(),
    lastReportedAt: at("last_reported_at").notNull(),
    state: text({ enum: fieldStates }).notNull(),
    /** Why a person resolved or dismissed it, who, and when it was last changed. */
    reason: text(),
    changedBy: text("changed_by"),
    changedAt: at("changed_at"),
  },
  (t) => [
    unique("field_friction_of_org").on(t.orgId, t.id),
    index("field_friction_by_fingerprint").on(t.orgId, t.fingerprint),
    index("field_friction_by_state").on(t.orgId, t.state, t.lastReportedAt),
    check("field_friction_state", oneOf(t.state, fieldStates)),
    check("field_friction_category", oneOf(t.category, frictionCategories)),
    check("field_friction_changed", sql`(${t.changedBy} is null) = (${t.changedAt} is null)`),
  ],
);

/** What agents wrote about field friction. Secrets are removed before it is stored. */
export const fieldReports = sqliteTable(
  "field_reports",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    frictionId: text("friction_id").notNull(),
    tried: text().notNull(),
    happened: text().notNull(),
    agent: text(),
    createdAt: at("created_at").notNull(),
  },
  (t) => [
    index("field_reports_of_friction").on(t.orgId, t.frictionId, t.id),
    foreignKey({
      name: "field_reports_friction",
      columns: [t.orgId, t.frictionId],
      foreignColumns: [fieldFriction.orgId, fieldFriction.id],
    }),
  ],
);

/**
 * Published live results per day in UTC, one row per agent, version, context, model, methodology and scope. The lists have
 * one entry per run, in order of request, so that a row can be split at the midnight of any time zone.
 */
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
    /** Empty if there is none. */
    contextDigest: text("context_digest").notNull().default(""),
    model: text().notNull(),
    methodology: json<Grade["methodology"]>("methodology").notNull(),
    /** The scope of its scores: different scopes are separate series. */
    scope: text({ enum: scopes }).notNull().default("docs_only"),
    /** When each run was requested, in ms since the start of the day. */
    times: json<number[]>("times").notNull(),
    scores: json<(number | null)[]>("scores").notNull(),
    seconds: json<(number | null)[]>("seconds").notNull(),
    costsUsd: json<(number | null)[]>("costs_usd").notNull(),
    /** 1: the goal was met, 0: it was not, null: it was not judged. */
    met: json<(0 | 1 | null)[]>("met").notNull(),
  },
  (t) => [
    primaryKey({
      columns: [t.orgId, t.promptId, t.day, t.agent, t.version, t.contextDigest, t.model, t.methodology, t.scope],
    }),
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
    /** The calendar month of the run in the time zone of the organization, as the start of that month in UTC. */
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
    /** The part of the reason that the comparison doesn't tell; null: there is none. */
    cause: text(),
    comparison: json<object>("comparison"),
    /** The decision for each agent of prompts with several; null: one agent, or no decision yet. */
    agents: json<GateAgent[]>("agents"),
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
    pool: text({ enum: jobPools }).notNull().default("runs"),
    kind: text().notNull(),
    subject: text().notNull(),
    /** The organization, and the first host that it requests: limits apply to these. */
    orgId: text("org_id").notNull(),
    host: text().notNull(),
    state: text({ enum: jobStates }).notNull(),
    /** 0: immediately, even if the clock is set back. */
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
    /** Start of the first attempt. */
    startedAt: at("started_at"),
    /** Start of the attempt in progress or of the one that ended the job; null: queued, or cancelled while queued. */
    attemptStartedAt: at("attempt_started_at"),
    completedAt: at("completed_at"),
    /** Model cost of the attempt that ended the job; null if unknown. */
    costUsd: real("cost_usd"),
  },
  (t) => [
    unique("jobs_subject").on(t.kind, t.subject),
    index("jobs_claim").on(t.pool, t.orgId, t.host, t.availableAt, t.id).where(sql`${t.state} = 'queued'`),
    index("jobs_waiting").on(t.availableAt).where(sql`${t.state} = 'queued' and ${t.availableAt} > 0`),
    index("jobs_running").on(t.leaseUntil).where(sql`${t.state} = 'running'`),
    index("jobs_started").on(t.orgId, t.startedAt).where(sql`${t.startedAt} is not null`),
    check("jobs_state", oneOf(t.state, jobStates)),
    check("jobs_lease", sql`(${t.state} = 'running') = (${t.leaseUntil} is not null)`),
    check("jobs_completed", sql`(${t.state} in ('done', 'failed', 'cancelled')) = (${t.completedAt} is not null)`),
  ],
);

/**
 * The attempts after which a job was queued again. Its table is WITHOUT ROWID, which Drizzle does not know: a migration that rebuilds it
 * must say so.
 */
export const earlierAttempts = sqliteTable(
  "earlier_attempts",
  {
    jobId: text("job_id").notNull(),
    attempt: integer().notNull(),
    owner: text().notNull(),
    startedAt: at("started_at").notNull(),
    completedAt: at("completed_at").notNull(),
    outcome: text({ enum: returnOutcomes }).notNull(),
    reason: text(),
    /** Model cost when it ended; null if unknown. */
    costUsd: real("cost_usd"),
  },
  (t) => [
    primaryKey({ columns: [t.jobId, t.attempt] }),
    check("earlier_attempts_outcome", oneOf(t.outcome, returnOutcomes)),
  ],
);

/**
 * All attempts of all jobs: the earlier ones, and from the row of each job the one in progress or the one that ended it.
 * Select them by the IDs of their jobs. For a join, SQLite reads the whole view.
 */
export const attempts = sqliteView("attempts", {
  jobId: text("job_id").notNull(),
  attempt: integer().notNull(),
  owner: text().notNull(),
  startedAt: at("started_at").notNull(),
  completedAt: at("completed_at"),
  outcome: text({ enum: attemptOutcomes }),
  reason: text(),
  costUsd: real("cost_usd"),
}).as(sql`
  select job_id, attempt, owner, started_at, completed_at, outcome, reason, cost_usd from earlier_attempts
  union all
  select id, attempt, owner, attempt_started_at, completed_at, iif(completed_at is null, null, state),
    iif(completed_at is null, null, last_error), cost_usd
  from jobs where attempt_started_at is not null`);

/** Where an organization is notified: a webhook, a Slack channel, or the inboxes of members. */
export const destinations = sqliteTable(
  "destinations",
  {
    id: text().primaryKey(),
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    kind: text({ enum: destinationKinds }).notNull(),
    name: text().notNull(),
    /** Of a webhook its URL, of Slack only the origin, since the rest is secret; null: email. */
    url: text(),
    /** The signing secrets and headers of a webhook or the URL of Slack, encrypted as model keys are; null: email. */
    sealed: blob({ mode: "buffer" }),
    /** Email addresses of members; null: those of all owners. */
    recipients: json<string[]>("recipients"),
    events: json<string[]>("events").notNull(),
    disabledAt: at("disabled_at"),
    disableReason: text("disable_reason", { enum: disableReasons }),
    /** The first failed try since the last success; null: the last try succeeded. */
    failingSince: at("failing_since"),
    /** Until then deliveries are also signed with the previous secret. */
    overlapUntil: at("overlap_until"),
    createdAt: at("created_at").notNull(),
  },
  (t) => [
    unique("destinations_of_org").on(t.orgId, t.id),
    check("destinations_kind", oneOf(t.kind, destinationKinds)),
    check(
      "destinations_address",
      sql`(${t.kind} = 'email') = (${t.url} is null) and (${t.url} is null) = (${t.sealed} is null)`,
    ),
    check("destinations_disabled", sql`(${t.disabledAt} is null) = (${t.disableReason} is null)`),
    check("destinations_disable_reason", oneOf(t.disableReason, disableReasons)),
  ],
);

/** The outbox: one row per event that a destination wants, written in the transaction of what happened. */
export const notifications = sqliteTable(
  "notifications",
  {
    id: text().primaryKey(),
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    type: text().notNull(),
    /** Of an event that is sent once, such as a budget in a month. */
    onceKey: text("once_key"),
    data: json<Record<string, unknown>>("data").notNull(),
    createdAt: at("created_at").notNull(),
  },
  (t) => [unique("notifications_of_org").on(t.orgId, t.id), unique("notifications_once").on(t.orgId, t.onceKey)],
);

/** A notification to a destination, with one job. A replay is a delivery of its own. */
export const deliveries = sqliteTable(
  "deliveries",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    notificationId: text("notification_id").notNull(),
    destinationId: text("destination_id").notNull(),
    status: text({ enum: deliveryStatuses }).notNull(),
    failure: text({ enum: deliveryFailures }),
    createdAt: at("created_at").notNull(),
    completedAt: at("completed_at"),
  },
  (t) => [
    unique("deliveries_of_org").on(t.orgId, t.id),
    index("deliveries_by_destination").on(t.orgId, t.destinationId, t.id),
    index("deliveries_by_notification").on(t.orgId, t.notificationId),
    foreignKey({
      name: "deliveries_notification",
      columns: [t.orgId, t.notificationId],
      foreignColumns: [notifications.orgId, notifications.id],
    }),
    foreignKey({
      name: "deliveries_destination",
      columns: [t.orgId, t.destinationId],
      foreignColumns: [destinations.orgId, destinations.id],
    }),
    check("deliveries_status", oneOf(t.status, deliveryStatuses)),
    check("deliveries_completed", sql`(${t.status} = 'pending') = (${t.completedAt} is null)`),
    check("deliveries_failure", sql`(${t.status} = 'failed') = (${t.failure} is not null)`),
  ],
);

/** The tries of a delivery. */
export const deliveryTries = sqliteTable(
  "delivery_tries",
  {
    orgId: text("org_id").notNull(),
    deliveryId: text("delivery_id").notNull(),
    attempt: integer().notNull(),
    at: at("at").notNull(),
    ms: integer().notNull(),
    /** HTTP status; null: no response. */
    status: integer(),
    /** Start of the response body; null: none. */
    body: text(),
    /** Why there was no response, or why nothing was sent. */
    error: text(),
  },
  (t) => [
    primaryKey({ columns: [t.deliveryId, t.attempt] }),
    foreignKey({
      name: "delivery_tries_delivery",
      columns: [t.orgId, t.deliveryId],
      foreignColumns: [deliveries.orgId, deliveries.id],
    }),
  ],
);
