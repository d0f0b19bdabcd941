import { type Static, Type } from "@sinclair/typebox";
import { outcomes } from "../agents/agent.ts";
import { reportStatuses } from "../db/tables.ts";
import { frictionCategories, frictionStates, phases, severities } from "../grading/kinds.ts";
import { PromptSummary } from "../prompts/schema.ts";
import { Id, Moment, Nullable, OneOf, Time, Url } from "../schema.ts";
import { Done } from "./fixschema.ts";
import { JudgeVariance } from "./judgevariance.ts";

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

export const ReportJudge = Type.Object(
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

const bound = Type.Number();
export const ReportBaseline = Type.Object(
  {
    kind: OneOf(["pinned", "window"], "pinned by a person, or the last ten comparable published runs before this one"),
    evalRequestId: Nullable(Id),
    n: Type.Integer({ description: "Its runs" }),
    from: Time,
    to: Time,
    differences: Type.Array(Type.String(), { description: "Why it is not comparable; then the rest is empty" }),
    score: Nullable(
      Type.Object({
        mean: bound,
        change: bound,
        low: bound,
        high: bound,
        isUsual: Type.Boolean({
          description: "Whether it lies between low and high, as one more run of the baseline does in 19 of 20 cases",
        }),
      }),
    ),
    dimensions: Type.Array(Type.Object({ name: Type.String(), mean: bound, change: bound })),
    metrics: Type.Array(Type.Object({ name: Type.String(), median: bound, change: bound })),
  },
  { title: "ReportBaseline", description: "How far this one run is from its baseline; a verdict needs repeats" },
);
export type ReportBaseline = Static<typeof ReportBaseline>;

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
    baseline: Nullable(ReportBaseline),
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
  {
    status: Type.Optional(OneOf(reportStatuses)),
    gradingId: Type.Optional(
      Nullable(
        Type.String({
          format: "uuid",
          description: "The grading to show from now on; null: the newest, whichever it is",
        }),
      ),
    ),
  },
  { title: "ReportPatch", examples: [{ status: "archived" }] },
);
export type ReportPatch = Static<typeof ReportPatch>;

/** One grade of a report among several. */
const Grading = Type.Object(
  {
    id: Id,
    repeat: Type.Integer({ minimum: 1, description: "Of those by the same methodology and judge" }),
    isShown: Type.Boolean({ description: "It is what the report shows" }),
    isPinned: Type.Boolean({ description: "A person chose it: a newer one does not take its place" }),
    createdAt: Time,
    methodology: RunReport.properties.methodology,
    score: RunReport.properties.score,
    grade: RunReport.properties.grade,
    outcome: RunReport.properties.outcome,
    coverage: RunReport.properties.coverage,
    keyFinding: Type.String(),
    judge: Nullable(ReportJudge),
  },
  { title: "Grading" },
);
export type Grading = Static<typeof Grading>;

export const GradingList = Type.Object(
  {
    gradings: Type.Array(Grading, { description: "Oldest first" }),
    judgeVariance: Type.Array(JudgeVariance, { description: "Of each judge that judged the session more than once" }),
  },
  { title: "GradingList" },
);
export type GradingList = Static<typeof GradingList>;
