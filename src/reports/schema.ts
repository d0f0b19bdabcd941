import { type Static, Type } from "@sinclair/typebox";
import { eventSources, eventTypes, outcomes } from "../agents/agent.ts";
import { reportStatuses } from "../db/tables.ts";
import { frictionCategories, frictionStates, phases, severities } from "../grading/kinds.ts";
import { PromptSummary } from "../prompts/schema.ts";
import { Id, Moment, Nullable, OneOf, Time, Url } from "../schema.ts";

const ReportMetrics = Type.Object({
  time: Type.String({ description: "2m 14s" }),
  timeDetail: Type.String(),
  errors: Type.Number(),
  errorsDetail: Type.String(),
  toolCalls: Type.Number(),
  toolCallsDetail: Type.String(),
  cost: Type.String({ description: "$0.12, or unknown" }),
  costDetail: Type.String(),
  interruptions: Type.Number({ description: "Times that a human would have been needed" }),
  timeSeconds: Type.Optional(Nullable(Type.Number())),
  costUsd: Type.Optional(Nullable(Type.Number())),
});

const ReportDimension = Type.Object({
  name: Type.String(),
  weight: Type.String({ description: "20%" }),
  score: Type.Number(),
  grade: Type.String(),
  desc: Type.String({ description: "What was measured, and what would be 100 and 0" }),
});

/** What a run says of its report: the specified fields first. */
export const RunReport = Type.Object(
  {
    slug: Type.String(),
    url: Url,
    score: Nullable(Type.Number({ minimum: 0, maximum: 100 })),
    grade: Nullable(Type.String({ description: "A+ to F" })),
    metrics: ReportMetrics,
    dimensions: Type.Array(ReportDimension),
    status: OneOf(reportStatuses),
    outcome: OneOf(outcomes),
    nullNotice: Nullable(Type.String({ description: "Why there is no score" })),
    keyFinding: Type.String(),
    verdict: Type.String(),
    summary: Type.Object({ whatWorked: Type.String(), whatDidnt: Type.String() }),
    coverage: Type.Number({ minimum: 0, maximum: 1, description: "Share of the weights that was measured" }),
    methodology: Type.Object({ id: Type.String(), hash: Type.String(), judge: Nullable(Type.String()) }),
  },
  { title: "RunReport" },
);
export type RunReport = Static<typeof RunReport>;

export const RunAgent = Type.Object({
  id: Type.String(),
  version: Nullable(Type.String()),
  model: Nullable(Type.String()),
});

export const FrictionPoint = Type.Object(
  {
    id: Id,
    fingerprint: Type.String({ description: "The same thing in another run has the same one" }),
    severity: OneOf(severities),
    phase: OneOf(phases),
    category: OneOf(frictionCategories),
    title: Type.String(),
    description: Type.String(),
    quote: Nullable(Type.String({ description: "Words of the target, not of this service" })),
    url: Nullable(Type.String()),
    events: Type.Array(Type.Integer(), { minItems: 1, description: "seq of the events in the trace that prove it" }),
    lostSeconds: Nullable(Type.Number()),
    lostUsd: Nullable(Type.Number()),
    lostPoints: Nullable(Type.Number({ description: "Points of the score; null: no measured number" })),
    seenIn: Type.Object(
      { runs: Type.Integer(), of: Type.Integer() },
      { description: "Published runs that met it, of those that came to where it stands, since it was first met" },
    ),
    state: OneOf(frictionStates, "Until now, by evaluations that came to where it stands"),
  },
  { title: "FrictionPoint" },
);
export type FrictionPoint = Static<typeof FrictionPoint>;

export const fixStatuses = ["running", "verified", "did_not_help", "undecided", "reopened"] as const;

const Side = Type.Object({
  evalRequestId: Id,
  runs: Type.Integer(),
  met: Type.Integer({ description: "Runs that met any of its friction" }),
  score: Nullable(Type.Number({ description: "Mean" })),
});

export const Fix = Type.Object(
  {
    id: Id,
    promptId: Id,
    title: Type.String(),
    fingerprints: Type.Array(Type.String(), { description: "Of the friction that it was to remove" }),
    doneBy: Type.String(),
    doneAt: Time,
    note: Nullable(Type.String()),
    status: OneOf(
      fixStatuses,
      "running: its runs have not ended; verified: they came by and met none of it; did_not_help: they met it again; undecided: see reason; reopened: verified, and met again later",
    ),
    reason: Type.String(),
    before: Side,
    after: Side,
    delta: Nullable(
      Type.Object(
        { value: Type.Number(), low: Nullable(Type.Number()), high: Nullable(Type.Number()) },
        { description: "Points that the score gained, with Welch's 95 % interval; null under two scores a side" },
      ),
    ),
  },
  { title: "Fix" },
);
export type Fix = Static<typeof Fix>;

/** What became of a recommendation that was marked done. */
export const Done = Nullable(
  Type.Pick(Fix, ["id", "status", "reason", "doneAt", "doneBy"], { description: "null: not marked done" }),
);
export type Done = Static<typeof Done>;

export const Recommendation = Type.Object(
  {
    id: Id,
    priority: Type.Integer({ minimum: 1 }),
    title: Type.String(),
    action: Type.String({ description: "What to change, and where" }),
    url: Nullable(Type.String()),
    frictionIds: Type.Array(Id, { minItems: 1 }),
    expectedGain: Nullable(Type.Number({ description: "Points of the score that its friction cost" })),
    done: Done,
  },
  { title: "Recommendation" },
);
export type Recommendation = Static<typeof Recommendation>;

const GoalPart = Type.Object({
  text: Type.String({ description: "One part of the end goal" }),
  met: OneOf(["yes", "no", "unclear"]),
  events: Type.Array(Type.Integer(), { description: "seq of the events that prove it, the one with the quote first" }),
  quote: Nullable(Type.String({ description: "Words of the first of its events" })),
  why: Type.String({ description: "In the judge's words" }),
});

const ReportJudge = Type.Object(
  {
    model: Type.String(),
    costUsd: Nullable(Type.Number({ description: "Not part of the cost in metrics; null: unknown" })),
    inputTokens: Type.Integer(),
    outputTokens: Type.Integer(),
    calls: Type.Integer({ description: "Failed ones included" }),
    confidence: Nullable(Type.Number({ description: "0 to 1, by the judge's own word" })),
    parts: Type.Array(GoalPart),
    dropped: Type.Array(Type.String(), { description: "Claims of the judge that no event proves; they count nowhere" }),
    notice: Nullable(Type.String({ description: "What to know before relying on it" })),
  },
  { title: "ReportJudge", description: "The model that judged the session, and what it said of the end goal" },
);

const RunTask = Type.Object(
  {
    title: Nullable(Type.String()),
    text: Type.String(),
    endGoal: Nullable(Type.String()),
    startUrls: Type.Array(Type.String(), { description: "Their hosts are what a urlMap maps" }),
  },
  { description: "The prompt as it stood then, variables filled in" },
);

export const Report = Type.Object(
  {
    ...RunReport.properties,
    createdAt: Time,
    run: Type.Object({
      runId: Id,
      statusUrl: Url,
      runUrl: Url,
      evalRequestId: Id,
      attempt: Type.Integer(),
      urlMap: Type.Record(Type.String(), Type.String()),
      templateArgs: Nullable(Type.Record(Type.String(), Type.String())),
      createdAt: Time,
      startedAt: Nullable(Time),
      completedAt: Nullable(Time),
    }),
    task: RunTask,
    prompt: PromptSummary,
    agent: RunAgent,
    judge: Nullable(ReportJudge),
    frictionPoints: Type.Array(FrictionPoint),
    recommendations: Type.Array(Recommendation),
  },
  { title: "Report" },
);
export type Report = Static<typeof Report>;

export const ReportSummary = Type.Object(
  {
    slug: Type.String(),
    url: Url,
    status: OneOf(reportStatuses),
    prompt: Type.Object({ id: Id, title: Nullable(Type.String()) }),
    runId: Id,
    agent: RunAgent,
    score: RunReport.properties.score,
    grade: RunReport.properties.grade,
    outcome: OneOf(outcomes),
    keyFinding: Type.String(),
    createdAt: Time,
  },
  { title: "ReportSummary" },
);
export type ReportSummary = Static<typeof ReportSummary>;

const score = (description: string) => Type.Integer({ minimum: 0, maximum: 100, description });

/** Which reports of the organisation are meant: the same for REST and MCP. */
export const reportFilter = {
  promptId: Type.Optional(Type.String({ format: "uuid", description: "Only reports of this prompt" })),
  status: Type.Optional(OneOf(reportStatuses)),
  outcome: Type.Optional(OneOf(outcomes)),
  agent: Type.Optional(Type.String({ maxLength: 100, description: "id of the agent, as explorer" })),
  minScore: Type.Optional(score("Least score; reports without one are left out")),
  maxScore: Type.Optional(score("Greatest score; reports without one are left out")),
  since: Type.Optional(Moment("Made at or after")),
  until: Type.Optional(Moment("Made before")),
};
const ReportFilter = Type.Object(reportFilter);
export type ReportFilter = Static<typeof ReportFilter>;

export const ReportPatch = Type.Object(
  { status: OneOf(reportStatuses) },
  { title: "ReportPatch", examples: [{ status: "archived" }] },
);

const TraceEvent = Type.Object(
  {
    seq: Type.Integer({ minimum: 0 }),
    at: Time,
    tMs: Type.Integer({ description: "Milliseconds since the session began" }),
    type: OneOf(eventTypes),
    source: OneOf(eventSources),
  },
  { title: "TraceEvent", additionalProperties: true, description: "The other fields are those of the type" },
);

export const Trace = Type.Object(
  {
    events: Type.Array(TraceEvent),
    total: Type.Integer({ description: "Events that match" }),
    nextSeq: Nullable(Type.Integer({ description: "fromSeq of the next page; null at the end" })),
    notice: Nullable(Type.String({ description: "Why events are missing" })),
  },
  { title: "Trace" },
);
export type Trace = Static<typeof Trace>;

export const traceQuery = {
  types: Type.Optional(Type.String({ description: `Event types, separated by commas: ${eventTypes.join(", ")}` })),
  fromSeq: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
  search: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: "Text that an event must contain" })),
};
