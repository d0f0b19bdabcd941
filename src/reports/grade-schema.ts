import { Type } from "@sinclair/typebox";
import { outcomes } from "../agents/agent.ts";
import { siteHosts } from "../agents/site/host-rules.ts";
import { describeDimension } from "../grading/dimensions/part.ts";
import type { Curve, Dimension, DimensionPart, Grade, PartName } from "../grading/grade.ts";
import { evidenceGrades, evidenceRoles, partNames, scopes, units } from "../grading/kinds.ts";
import { percent } from "../grading/text.ts";
import { mapOf, Nullable, OneOf } from "../schema.ts";

const share = Type.Number({ minimum: 0, maximum: 1 });
const points = Type.Number({ minimum: 0, maximum: 100 });

/** Names and units are plain strings in REST and MCP, because the closed lists are long. */
const ReportPart = Type.Object({
  name: Type.Unsafe<PartName>(Type.String()),
  value: Type.Number(),
  unit: Type.Unsafe<DimensionPart["unit"]>(
    Type.String({ description: "share (0 to 1), pages, seconds, usd or times" }),
  ),
  curve: Nullable(
    Type.Object({
      best: Type.Number(),
      worst: Type.Number(),
      floor: Type.Number(),
      scale: Type.Unsafe<Curve["scale"]>(Type.String()),
    }),
  ),
  score: Type.Number(),
  weight: Type.Number({ description: "Share of the dimension" }),
  counts: mapOf(Type.Number()),
});

/** A dimension in a report. */
export const ReportDimension = Type.Object(
  {
    name: Type.String(),
    weight: Type.String({ description: "20%" }),
    score: Type.Number(),
    grade: Type.String(),
    desc: Type.String({ description: "What it measures" }),
    parts: Type.Array(ReportPart),
    unmeasured: Type.Array(Type.Unsafe<PartName>(Type.String()), {
      description: "Parts without evidence",
    }),
  },
  { title: "ReportDimension" },
);

const EvidenceStep = Type.Object({
  role: OneOf(evidenceRoles),
  event: Type.Integer({ description: "seq of the trace event" }),
  what: Type.String({ description: "The page or request" }),
  status: Nullable(Type.Integer()),
});

/** What to change and where, and how the session shows that. */
export const TextChange = Type.Object({
  url: Nullable(Type.String()),
  line: Nullable(Type.Integer({ description: "Line in the text that the agent read" })),
  found: Nullable(Type.String({ description: "What failed" })),
  expected: Nullable(Type.String({ description: "What worked instead" })),
  text: Nullable(Type.String({ description: "The whole line" })),
  steps: Type.Array(EvidenceStep, {
    description: "What the agent read, what failed, what it guessed and what worked, in order",
  }),
});

/** The fields of a recommended fix, except its text. */
export const FixDetails = {
  gain: Nullable(Type.Object({ low: Type.Number(), high: Type.Number() })),
  lostPoints: Nullable(Type.Number({ description: "Its share of lost.fixes" })),
  evidence: Nullable(TextChange),
};

/** Who is responsible for the lost points, which are the points missing to 100. */
const LostPoints = Type.Object(
  {
    total: Type.Number(),
    fixes: Type.Number(),
    agent: Type.Number(),
    network: Type.Number(),
    unmeasured: Type.Number(),
  },
  { description: "Points that the score lacks, by cause" },
);

const Wordings = Type.Object(
  {
    spread: share,
    results: Type.Array(
      Type.Object({
        text: Type.String({ description: "The goal first, then its other wordings" }),
        state: OneOf(["likely", "unclear"], "Whether a section is likely to answer it"),
        fit: Type.Number({ minimum: 0, maximum: 1, description: "How well the nearest section matches" }),
        url: Nullable(Type.String({ description: "The nearest page" })),
      }),
    ),
  },
  {
    description:
      "What each wording of the goal finds on the same pages; spread is the difference between the highest and the lowest fit",
  },
);

const NotChecked = Type.Array(
  Type.Object({ language: Type.String({ description: "The label of the samples" }), samples: Type.Integer() }),
  { description: "Code samples that were not checked, because evald can't parse their language" },
);

const StoredPart = Type.Object({ ...ReportPart.properties, name: OneOf(partNames), unit: OneOf(units) });

/** A dimension as it is stored. */
const StoredDimension = Type.Object({
  name: Type.String(),
  weight: share,
  score: points,
  grade: Type.String(),
  parts: Type.Array(StoredPart),
  unmeasured: Type.Array(OneOf(partNames)),
});

const ReportMetrics = Type.Object(
  {
    time: Type.String({ description: "2m 14s" }),
    timeDetail: Type.String(),
    errors: Type.Number(),
    errorsDetail: Type.String(),
    toolCalls: Type.Number(),
    toolCallsDetail: Type.String(),
    cost: Type.String({ description: "$0.12, or unknown" }),
    costDetail: Type.String(),
    interruptions: Type.Number({ description: "How often the agent needed a person" }),
    timeSeconds: Nullable(Type.Number()),
    costUsd: Nullable(Type.Number()),
    estimatedUsd: Type.Optional(
      Type.Number({
        description:
          "If costUsd is null because calls were cut or did not report their usage: the cost with an estimate for those, as limits count it",
      }),
    ),
  },
  { title: "ReportMetrics" },
);

const GoalPart = Type.Object({
  text: Type.String({ description: "One part of the end goal" }),
  met: OneOf(["yes", "no", "unclear"]),
  evidence: Nullable(OneOf(evidenceGrades, "judged: the judge says that it was met, but no event proves it")),
  events: Type.Array(Type.Integer(), {
    description: "seq of the trace events that prove it, starting with the quoted one",
  }),
  quote: Nullable(Type.String({ description: "Quoted from the first of its events" })),
  why: Type.String({ description: "The judge's explanation" }),
});

const ReportJudge = Type.Object(
  {
    model: Type.String(),
    costUsd: Nullable(Type.Number({ description: "Cost of judging in USD, not included in metrics; null: unknown" })),
    inputTokens: Type.Integer(),
    outputTokens: Type.Integer(),
    calls: Type.Integer({ description: "Including failed ones" }),
    confidence: Nullable(Type.Number({ description: "0 to 1, as stated by the judge" })),
    parts: Type.Array(GoalPart),
    dropped: Type.Array(Type.String(), { description: "Claims of the judge that no event proves; ignored in grading" }),
    notice: Nullable(Type.String({ description: "Caveats about the judgment" })),
  },
  { title: "ReportJudge", description: "The model that judged the session, and its verdict on the end goal" },
);

/** null: unknown. */
const NullableBoolean = Nullable(Type.Boolean());
const contextPart = Type.Object({ name: Type.String(), isOffered: NullableBoolean, uses: Type.Integer() });

const ServedSite = Type.Object({
  at: Type.String({ description: "URL that they are published at" }),
  digest: Type.String({ description: "SHA-256 of the files" }),
  files: Type.Integer(),
  host: OneOf(siteHosts),
  form: OneOf(["html", "markdown"], "markdown: sources without a build"),
  notApplied: Type.Array(Type.String(), { description: "First rules that only the host can apply" }),
  notAppliedTotal: Type.Integer(),
});

const ReportContext = Type.Object(
  {
    instructions: Nullable(Type.Object({ chars: Type.Integer(), isUsed: NullableBoolean })),
    skills: Type.Array(contextPart),
    mcpServers: Type.Array(contextPart),
    env: Type.Array(Type.String()),
    sites: Type.Array(ServedSite, { description: "Built docs that were read in place of the live ones" }),
    /** How often each edit of the run was applied. */
    edits: Type.Optional(
      Type.Object({
        hidden: Type.Array(Type.Integer()),
        replacements: Type.Array(Type.Object({ requests: Type.Integer(), applied: Type.Integer() })),
      }),
    ),
  },
  { description: "What the agent was given and used; null: unknown" },
);

/**
 * The grade of a session, except its friction points and recommended fixes. Columns, responses, gradings and exports are all derived from this list.
 */
export const GradeFields = Type.Object({
  score: Nullable(Type.Number({ minimum: 0, maximum: 100 })),
  grade: Nullable(Type.String({ description: "A+ to F" })),
  metrics: ReportMetrics,
  dimensions: Type.Array(StoredDimension),
  outcome: OneOf(outcomes),
  scope: OneOf(scopes, "Only the scope goal has a grade"),
  evidence: Nullable(
    OneOf(evidenceGrades, "verified by a check or the product, observed from its program, or only judged"),
  ),
  nullNotice: Nullable(Type.String({ description: "Why not measured, or Goal not tested" })),
  keyFinding: Type.String(),
  verdict: Type.String(),
  summary: Type.Object({ whatWorked: Type.String(), whatDidnt: Type.String() }),
  coverage: Type.Number({ minimum: 0, maximum: 1, description: "Share of the weight that was measured" }),
  methodology: Type.Object(
    { id: Type.String(), hash: Type.String(), judge: Nullable(Type.String()) },
    { title: "Methodology" },
  ),
  lost: Nullable(LostPoints),
  wordings: Nullable(Wordings),
  notChecked: NotChecked,
  judge: Nullable(ReportJudge),
  context: Nullable(ReportContext),
});

type GradeFieldName = keyof typeof GradeFields.properties;
const gradeFieldNames = Object.keys(GradeFields.properties) as GradeFieldName[];

/** The fields of a grade, row or table that `GradeFields` lists. */
export const pickGradeFields = <T extends Record<GradeFieldName, unknown>>(from: T) =>
  Object.fromEntries(gradeFieldNames.map((field) => [field, from[field]])) as Pick<T, GradeFieldName>;

/** The fields that `GradeFields` lists, in two groups. `details` are only in a standalone report. `main` are also in the report of a run. */
export function splitGradeFields<T extends Record<GradeFieldName, unknown>>(from: T) {
  const { judge, lost, wordings, notChecked, context, ...main } = pickGradeFields(from);
  return { main, details: { judge, lost, wordings, notChecked, context } };
}

/** The scope of a report, and the evidence that its goal was reached. */
export type ScopeAndEvidence = { scope: Grade["scope"]; evidence: Grade["evidence"] };

/** The reason why nothing was measured, or why a score has no grade because the goal was not tested. */
export function toNullNotice({
  nullNotice,
  scope,
  evidence,
}: ScopeAndEvidence & { nullNotice: string | null }): string | null {
  if (nullNotice !== null || scope === "goal") return nullNotice;
  return evidence === "judged"
    ? "No grade: only the judge says that the goal was reached. Add a success check"
    : "No grade: the goal was not tested";
}

/** A stored dimension as it appears in a report. */
export const toDimension = (dimension: Dimension) => ({
  ...dimension,
  weight: percent(dimension.weight),
  desc: describeDimension(dimension),
  parts: dimension.parts.map((part) => ({ ...part, counts: { ...part.counts } })),
});
