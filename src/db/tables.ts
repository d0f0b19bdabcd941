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
import { type DeclaredCheck, eventSources, eventTypes, outcomes } from "../agents/agent.ts";
import { frictionCategories, frictionStates, phases, severities } from "../grading/kinds.ts";
import type { Life } from "../grading/life.ts";
import type { Visit } from "../grading/reach.ts";
import type { Dimension, Grade, Metrics } from "../grading/score.ts";
import { modelProviders } from "../modelsettings.ts";

export const promptStatuses = ["active", "paused", "archived"] as const;
export const runStatuses = ["pending", "running", "completed", "failed", "superseded"] as const;
export const reportStatuses = ["published", "draft", "archived"] as const;
export const triggers = ["schedule", "api", "mcp", "web", "cli"] as const;
const jobStates = ["queued", "running", "done", "failed", "cancelled"] as const;
/** How an attempt of a job ended: with a result, for good without one, to be tried again, given back by a stop, lost with its process, or called off. */
export const attemptEnds = ["done", "failed", "retried", "released", "lost", "cancelled"] as const;
/** What became of a due slot: its runs were asked for, its moment passed while the service was down, the last ones were still running, or they could not be asked for. */
export const slotOutcomes = ["ran", "missed", "skipped_overlap", "failed"] as const;

export type ReportStatus = (typeof reportStatuses)[number];
export type Trigger = (typeof triggers)[number];

/** What a run was asked to do, as the prompt stood when it was accepted; variables are filled in. */
export type RunTask = {
  title: string | null;
  text: string;
  endGoal: string | null;
  startUrls: string[];
  /** Older runs lack it. */
  productUrl?: string | null;
  declaredChecks: DeclaredCheck[];
  reviewBeforePublishing: boolean;
};

/** An address that a prompt adds to its provider's; keys that nobody knows are kept and returned. */
export type AdditionalUrl = { url: string; [key: string]: unknown };

const oneOf = (column: AnySQLiteColumn, values: readonly string[]): SQL =>
  sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(", "))})`;

/** Epoch milliseconds. */
const at = (name: string) => integer(name);
const json = <T>(name: string) => text(name, { mode: "json" }).$type<T>();
const yes = (name: string) => integer(name, { mode: "boolean" });

export const orgs = sqliteTable(
  "orgs",
  {
    id: text().primaryKey(),
    name: text().notNull().unique(),
    timeZone: text("time_zone").notNull(),
    /** Runs at once and runs within 24 hours; null: the configuration's. */
    maxRunsAtOnce: integer("max_runs_at_once"),
    maxRunsADay: integer("max_runs_a_day"),
    createdAt: at("created_at").notNull(),
  },
  (t) => [check("orgs_name", sql`length(${t.name}) between 1 and 200`)],
);

/** Only the SHA-256 of a key is kept; `display` is its first ten and last four characters. */
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
    createdAt: at("created_at").notNull(),
    expiresAt: at("expires_at"),
    revokedAt: at("revoked_at"),
    lastUsedAt: at("last_used_at"),
  },
  (t) => [index("api_keys_newest").on(t.orgId, t.id), check("api_keys_hash", sql`length(${t.hash}) = 32`)],
);

/** Keys of model providers, one an organisation and provider, encrypted: what they are cannot be read from here. */
export const modelKeys = sqliteTable(
  "model_keys",
  {
    orgId: text("org_id")
      .notNull()
      .references(() => orgs.id),
    provider: text({ enum: modelProviders }).notNull(),
    baseUrl: text("base_url").notNull(),
    /** Twelve bytes that are new each time, the encrypted key, sixteen that prove it whole. */
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
    /** Names in order of first appearance, made of text and endGoal whenever those change. */
    templateVars: json<string[]>("template_vars"),
    templateDefaults: json<Record<string, string>>("template_defaults"),
    declaredChecks: json<DeclaredCheck[]>("declared_checks"),
    agent: text(),
    model: text(),
    reviewBeforePublishing: yes("review_before_publishing").notNull(),
    /** Its docs never change: what moves it is the agent. */
    isCanary: yes("is_canary").notNull().default(false),
    createdAt: at("created_at").notNull(),
    /** The first moment of its schedule that has not been dealt with; null if it is not scheduled. */
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

/** The runs of one evaluation; its status follows from theirs. */
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
    foreignKey({
      name: "eval_requests_prompt",
      columns: [t.orgId, t.promptId],
      foreignColumns: [prompts.orgId, prompts.id],
    }),
    check("eval_requests_trigger", oneOf(t.trigger, triggers)),
  ],
);

/** Ids are UUIDv7 made of `createdAt`, so the order of ids is the order of time: lists need no other column. */
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
    failureReason: text("failure_reason"),
    createdAt: at("created_at").notNull(),
    startedAt: at("started_at"),
    completedAt: at("completed_at"),
    idempotencyKey: text("idempotency_key"),
    /** SHA-256 of the request that bore the key, hex. */
    idempotencyHash: text("idempotency_hash"),
  },
  (t) => [
    unique("runs_of_org").on(t.orgId, t.id),
    index("runs_by_prompt").on(t.orgId, t.promptId, t.id),
    index("runs_unfinished").on(t.orgId, t.promptId).where(sql`${t.completedAt} is null`),
    index("runs_failed").on(t.orgId, t.promptId, t.id).where(sql`${t.status} = 'failed'`),
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
    check("runs_failure", sql`${t.status} != 'failed' or ${t.failureReason} is not null`),
  ],
);

/** How many runs each prompt has, in all (`any`) and by the status of their report. Kept by triggers, read instead of counting. */
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

/** The session of a run: one row an event, append-only. `data` holds the fields of the event's own type. */
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
    score: real(),
    grade: text(),
    nullNotice: text("null_notice"),
    keyFinding: text("key_finding").notNull(),
    verdict: text().notNull(),
    summary: json<{ whatWorked: string; whatDidnt: string }>("summary").notNull(),
    coverage: real().notNull(),
    metrics: json<Metrics>("metrics").notNull(),
    dimensions: json<Dimension[]>("dimensions").notNull(),
    methodology: json<Grade["methodology"]>("methodology").notNull(),
    judge: json<NonNullable<Grade["judge"]>>("judge"),
    createdAt: at("created_at").notNull(),
  },
  (t) => [
    unique("reports_of_org").on(t.orgId, t.id),
    index("reports_by_status").on(t.orgId, t.status, t.runId),
    index("reports_by_prompt").on(t.orgId, t.promptId, t.status, t.runId),
    foreignKey({ name: "reports_run", columns: [t.orgId, t.runId], foreignColumns: [runs.orgId, runs.id] }),
    check("reports_status", oneOf(t.status, reportStatuses)),
    check("reports_outcome", oneOf(t.outcome, outcomes)),
    check("reports_score", sql`${t.score} between 0 and 100`),
    check("reports_null_score", sql`(${t.score} is null) = (${t.nullNotice} is not null)`),
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
    events: json<number[]>("events").notNull(),
    lostSeconds: real("lost_seconds"),
    lostUsd: real("lost_usd"),
    lostPoints: real("lost_points"),
    /** Older ones lack them: no run is taken for one that came there. */
    grounds: json<string[]>("grounds"),
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

/** What the session behind a report came to, by which it is known later what it would have met. */
export const reaches = sqliteTable(
  "reaches",
  {
    reportId: text("report_id").primaryKey(),
    orgId: text("org_id").notNull(),
    visits: json<Visit[]>("visits").notNull(),
    done: json<string[]>("done").notNull(),
    isComplete: yes("is_complete").notNull(),
    byRules: yes("by_rules").notNull(),
  },
  (t) => [
    foreignKey({ name: "reaches_report", columns: [t.orgId, t.reportId], foreignColumns: [reports.orgId, reports.id] }),
  ],
);

/** A friction over the published runs of a prompt: one thing with a life. Kept up whenever a report begins or ceases to count. */
export const frictionLives = sqliteTable(
  "friction_lives",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Empty for the live docs, a digest of the urlMap for a preview. */
    place: text().notNull(),
    fingerprint: text().notNull(),
    /** The newest report that tells it. */
    reportId: text("report_id").notNull(),
    severity: text({ enum: severities }).notNull(),
    state: text({ enum: frictionStates }).notNull(),
    firstSeenAt: at("first_seen_at").notNull(),
    lastSeenAt: at("last_seen_at").notNull(),
    fixedAt: at("fixed_at"),
    /** Runs that met it, and runs that came to where it stands, since it was first met. */
    met: integer().notNull(),
    reached: integer().notNull(),
    lostPoints: real("lost_points"),
    lostSeconds: real("lost_seconds"),
    lostUsd: real("lost_usd"),
    /** Where the newest report says that it stands, in the one spelling of pages. */
    page: text(),
    /** Agents and models that met it: only their runs can miss it. */
    metBy: json<string[]>("met_by").notNull(),
    grounds: json<string[]>("grounds"),
    life: json<Life>("life").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.orgId, t.promptId, t.place, t.fingerprint] }),
    foreignKey({
      name: "friction_lives_prompt",
      columns: [t.orgId, t.promptId],
      foreignColumns: [prompts.orgId, prompts.id],
    }),
    foreignKey({
      name: "friction_lives_report",
      columns: [t.orgId, t.reportId],
      foreignColumns: [reports.orgId, reports.id],
    }),
    check("friction_lives_state", oneOf(t.state, frictionStates)),
    check("friction_lives_severity", oneOf(t.severity, severities)),
  ],
);

/** Recommendations that a person said were done, and the runs that were asked for to see whether it helped. */
export const fixes = sqliteTable(
  "fixes",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    title: text().notNull(),
    /** Of the friction that it was to remove. */
    fingerprints: json<string[]>("fingerprints").notNull(),
    doneBy: text("done_by").notNull(),
    note: text(),
    createdAt: at("created_at").notNull(),
    /** The last evaluation that met it, and the one that was asked for then. */
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

/** Published results of a day on the live docs, one row an agent, version, model and methodology; lists in the order in which they came. */
export const scoreDays = sqliteTable(
  "score_days",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Its first moment, in UTC. */
    day: at("day").notNull(),
    agent: text().notNull(),
    /** Empty where there is none. */
    version: text().notNull(),
    model: text().notNull(),
    methodology: json<Grade["methodology"]>("methodology").notNull(),
    /** When the last of its runs was asked for. */
    lastAt: at("last_at").notNull(),
    succeeded: integer().notNull(),
    judged: integer().notNull(),
    scores: json<number[]>("scores").notNull(),
    seconds: json<number[]>("seconds").notNull(),
    costsUsd: json<number[]>("costs_usd").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.orgId, t.promptId, t.day, t.agent, t.version, t.model, t.methodology] }),
    foreignKey({
      name: "score_days_prompt",
      columns: [t.orgId, t.promptId],
      foreignColumns: [prompts.orgId, prompts.id],
    }),
  ],
);

/** What agents did with the pages of the docs in a month, by published runs on the live docs. The empty page counts the runs themselves. */
export const pageMonths = sqliteTable(
  "page_months",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Its first moment, in UTC. */
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

/** Pages that the docs name, and when that was last seen; null: never there. */
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

/** Each moment at which a schedule was due, once: what became of it. */
export const slots = sqliteTable(
  "slots",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    at: at("at").notNull(),
    outcome: text({ enum: slotOutcomes }).notNull(),
    evalRequestId: text("eval_request_id"),
    /** Why it did not run, for a person. */
    reason: text(),
    decidedAt: at("decided_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.promptId, t.at] }),
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

/** Work to be done by the runner. `subject` is the id of the row that it serves; `attempt` tells an old holder from the present one. */
export const jobs = sqliteTable(
  "jobs",
  {
    id: text().primaryKey(),
    kind: text().notNull(),
    subject: text().notNull(),
    /** Whose it is, and the host that it will load: what the limits count by. */
    orgId: text("org_id").notNull(),
    host: text().notNull(),
    state: text({ enum: jobStates }).notNull(),
    /** 0: at once, whatever the clock says. */
    availableAt: at("available_at").notNull(),
    /** Times that it was begun. */
    attempt: integer().notNull(),
    /** Attempts that count against `maxAttempts`; the other ends of an attempt are counted below, each kind with its own bound. */
    spent: integer().notNull(),
    maxAttempts: integer("max_attempts").notNull(),
    /** Faults of what lies around it: network, model provider, disk. */
    faults: integer().notNull(),
    /** Times that its process went away. */
    deaths: integer().notNull(),
    owner: text(),
    leaseUntil: at("lease_until"),
    lastError: text("last_error"),
    createdAt: at("created_at").notNull(),
    firstBegunAt: at("first_begun_at"),
    endedAt: at("ended_at"),
  },
  (t) => [
    unique("jobs_subject").on(t.kind, t.subject),
    index("jobs_claim").on(t.orgId, t.host, t.availableAt, t.id).where(sql`${t.state} = 'queued'`),
    index("jobs_waiting").on(t.availableAt).where(sql`${t.state} = 'queued' and ${t.availableAt} > 0`),
    index("jobs_running").on(t.leaseUntil).where(sql`${t.state} = 'running'`),
    index("jobs_begun").on(t.orgId, t.firstBegunAt).where(sql`${t.firstBegunAt} is not null`),
    check("jobs_state", oneOf(t.state, jobStates)),
    check("jobs_lease", sql`(${t.state} = 'running') = (${t.leaseUntil} is not null)`),
    check("jobs_ended", sql`(${t.state} in ('done', 'failed', 'cancelled')) = (${t.endedAt} is not null)`),
  ],
);

/** The history of a job: one row each time that it was begun. */
export const attempts = sqliteTable(
  "attempts",
  {
    jobId: text("job_id").notNull(),
    attempt: integer().notNull(),
    owner: text().notNull(),
    begunAt: at("begun_at").notNull(),
    endedAt: at("ended_at"),
    ended: text({ enum: attemptEnds }),
    reason: text(),
    /** What it had spent on models when it ended; null if that is not known. */
    costUsd: real("cost_usd"),
  },
  (t) => [
    primaryKey({ columns: [t.jobId, t.attempt] }),
    check("attempts_ended", oneOf(t.ended, attemptEnds)),
    check("attempts_ended_at", sql`(${t.ended} is null) = (${t.endedAt} is null)`),
  ],
);
