import { type Static, type TObject, type TProperties, Type } from "@sinclair/typebox";
import { outcomes } from "../agents/agent.ts";
import { reportStatuses } from "../db/tables/reports.ts";
import { Dismissed } from "../friction/dismissals.ts";
import { FixState } from "../friction/fix-schema.ts";
import { FrictionPoint } from "../friction/schema.ts";
import { scopes } from "../grading/kinds.ts";
import { Edits } from "../net/edits.ts";
import { PromptSummary } from "../prompts/schema.ts";
import { Id, Moment, mapOf, Nullable, OneOf, Score, Time, Url } from "../schema.ts";
import { CalibrationFigures } from "./calibration.ts";
import { FixDetails, GradeFields, ReportDimension, splitGradeFields } from "./grade-schema.ts";
import { JudgeVariance } from "./judge-variance.ts";

const { main: runReportFields, details } = splitGradeFields(GradeFields.properties);

/** The same object, but described where it is used instead of by a reference. */
const inPlace = <T extends TProperties>(schema: TObject<T>): TObject<T> => Type.Object(schema.properties);

/** The report as a part of a run. Clients can read its properties without following references. */
export const RunReport = Type.Object(
  {
    slug: Type.String(),
    url: Url,
    ...runReportFields,
    metrics: inPlace(runReportFields.metrics),
    methodology: inPlace(runReportFields.methodology),
    dimensions: Type.Array(inPlace(ReportDimension)),
    status: OneOf(reportStatuses),
  },
  { title: "RunReport" },
);
export type RunReport = Static<typeof RunReport>;

export const RunAgent = Type.Object(
  {
    id: Type.String(),
    version: Nullable(Type.String()),
    model: Nullable(Type.String()),
    contextDigest: Nullable(Type.String({ description: "Digest of its workspace" })),
  },
  { title: "RunAgent" },
);

export const Recommendation = Type.Object(
  {
    id: Id,
    priority: Type.Integer({ minimum: 1 }),
    title: Type.String(),
    action: Type.String({ description: "What to change, and where" }),
    isConvention: Type.Boolean({
      description: "A convention that hindered no agent",
    }),
    url: Nullable(Type.String()),
    frictionIds: Type.Array(Id, { minItems: 1 }),
    expectedGain: Nullable(Type.Number({ description: "Points to gain" })),
    ...FixDetails,
    done: FixState,
    dismissed: Dismissed,
  },
  { title: "Recommendation" },
);
export type Recommendation = Static<typeof Recommendation>;

const RunTask = Type.Object(
  {
    title: Nullable(Type.String()),
    text: Type.String(),
    endGoal: Nullable(Type.String()),
    startUrls: Type.Array(Type.String(), {
      description: "URLs where the session starts; the urlMap of the run replaces their hosts",
    }),
  },
  { description: "The prompt at the time of the run, with variables filled in" },
);

export const ReportBaseline = Type.Object(
  {
    kind: OneOf(
      ["pinned", "window"],
      "pinned: by a person; otherwise the last ten comparable published runs before this one",
    ),
    evalRequestId: Nullable(Id),
    n: Type.Integer({ description: "Number of runs in the baseline" }),
    from: Time,
    to: Time,
    differences: Type.Array(Type.String(), {
      description: "Why the report is not comparable; if set, the other fields are empty",
    }),
    score: Nullable(
      Type.Object({
        mean: Type.Number(),
        change: Type.Number(),
        low: Type.Number(),
        high: Type.Number(),
        isUsual: Type.Boolean({
          description: "Whether the value is within the 95% prediction interval of the baseline",
        }),
      }),
    ),
    dimensions: Type.Array(Type.Object({ name: Type.String(), mean: Type.Number(), change: Type.Number() })),
    metrics: Type.Array(Type.Object({ name: Type.String(), median: Type.Number(), change: Type.Number() })),
  },
  { title: "ReportBaseline", description: "Difference from the baseline; a single run gives no verdict" },
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
      urlMap: mapOf(Type.String()),
      edits: Type.Optional(Edits),
      templateArgs: Nullable(mapOf(Type.String())),
      createdAt: Time,
      startedAt: Nullable(Time),
      completedAt: Nullable(Time),
    }),
    task: RunTask,
    product: Type.Object(
      { name: Nullable(Type.String()), host: Nullable(Type.String()) },
      { description: "The evaluated product: name of the prompt's provider, and host of its docs" },
    ),
    prompt: PromptSummary,
    agent: RunAgent,
    ...details,
    calibration: Nullable(CalibrationFigures),
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
    scope: RunReport.properties.scope,
    evidence: RunReport.properties.evidence,
    grade: RunReport.properties.grade,
    outcome: OneOf(outcomes),
    keyFinding: Type.String(),
    createdAt: Time,
  },
  { title: "ReportSummary" },
);
export type ReportSummary = Static<typeof ReportSummary>;

/** Filters of reports, for REST and MCP. */
export const reportFilter = {
  promptId: Type.Optional(Type.String({ format: "uuid", description: "Only reports of this prompt" })),
  status: Type.Optional(OneOf(reportStatuses)),
  outcome: Type.Optional(OneOf(outcomes)),
  agent: Type.Optional(Type.String({ maxLength: 100, description: "Such as explorer" })),
  agentVersion: Type.Optional(Type.String({ maxLength: 200 })),
  scope: Type.Optional(OneOf(scopes, "Default: goal with minScore or maxScore, otherwise any")),
  minScore: Type.Optional(Score("Excludes reports without a score")),
  maxScore: Type.Optional(Score("Excludes reports without a score")),
  since: Type.Optional(Moment("Created at this time or later")),
  until: Type.Optional(Type.String({ maxLength: 40, description: "Created before this time" })),
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
          description: "Grading to show; null: always the latest",
        }),
      ),
    ),
  },
  { title: "ReportPatch", examples: [{ status: "archived" }] },
);
export type ReportPatch = Static<typeof ReportPatch>;

/** One grading of a report, which may have several. */
const Grading = Type.Object(
  {
    id: Id,
    repeat: Type.Integer({
      minimum: 1,
      description: "Number of this repeat, among gradings by the same methodology and judge",
    }),
    isShown: Type.Boolean({ description: "Whether the report shows this grading" }),
    isPinned: Type.Boolean({ description: "Whether a person pinned it, so that newer gradings do not replace it" }),
    createdAt: Time,
    methodology: RunReport.properties.methodology,
    score: RunReport.properties.score,
    scope: RunReport.properties.scope,
    evidence: RunReport.properties.evidence,
    grade: RunReport.properties.grade,
    outcome: RunReport.properties.outcome,
    coverage: RunReport.properties.coverage,
    keyFinding: Type.String(),
    judge: details.judge,
  },
  { title: "Grading" },
);
export type Grading = Static<typeof Grading>;

export const GradingList = Type.Object(
  {
    gradings: Type.Array(Grading, { description: "Oldest first" }),
    judgeVariance: Type.Array(JudgeVariance, { description: "For each judge that judged the session more than once" }),
  },
  { title: "GradingList" },
);
export type GradingList = Static<typeof GradingList>;
