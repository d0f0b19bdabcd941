import { type Static, Type } from "@sinclair/typebox";
import { regradeStatuses } from "../db/tables/reports.ts";
import { standardMethodology } from "../grading/methodology.ts";
import { VarianceSplit } from "../reports/judge-variance.ts";
import { Id, Moment, Nullable, OneOf, Time, Url } from "../schema.ts";

const Count = (description: string) => Type.Integer({ minimum: 0, description });

export const RegradeRequest = Type.Object(
  {
    since: Moment("Only reports created at or after this time"),
    until: Type.Optional(Moment("Only reports created before this time; default: now")),
    promptId: Type.Optional(Type.String({ format: "uuid", description: "Only reports of this prompt" })),
    methodology: Type.Optional(
      Type.String({ maxLength: 40, description: "Methodology ID; default: the one used for new reports" }),
    ),
    judge: Type.Optional(
      Type.String({
        maxLength: 250,
        description: "Judge the sessions again with this provider/model; without one, existing judgments are kept",
      }),
    ),
    repeats: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 20, default: 1, description: "How often to judge each session" }),
    ),
    maxUsd: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1_000_000,
        description: "Maximum total cost of the judge; required with judge",
      }),
    ),
    dryRun: Type.Optional(Type.Boolean({ default: false, description: "Only report what would be regraded" })),
  },
  { title: "RegradeRequest", examples: [{ since: "2026-11-01", methodology: standardMethodology.id }] },
);
export type RegradeRequest = Static<typeof RegradeRequest>;

export const Regrade = Type.Object(
  {
    regradeId: Nullable(Type.String({ format: "uuid", description: "null for a dry run" })),
    statusUrl: Nullable(Url),
    status: OneOf([...regradeStatuses, "planned"], "completed, failed and cancelled are final; planned: dry run"),
    promptId: Nullable(Id),
    since: Time,
    until: Time,
    methodology: Type.String(),
    judge: Nullable(Type.String()),
    repeats: Type.Integer(),
    maxUsd: Nullable(Type.Number()),
    total: Count("Reports that match the request"),
    graded: Count("Reports graded again"),
    unchanged: Count("Skipped: already graded with the same methodology and judge"),
    withoutEvents: Count("Skipped: their session events are no longer stored"),
    failed: Count("Skipped: the judge gave no usable response, or the session events cannot be read"),
    spentUsd: Type.Number({ description: "Cost of the judge in USD; not part of the cost of any run" }),
    unpriced: Count(
      "Judge calls of unknown cost, cut off or without a price; each counts as the most expensive one towards maxUsd",
    ),
    estimatedUsd: Nullable(
      Type.Number({ description: "Estimated remaining cost, based on judging so far; null: unknown" }),
    ),
    variance: VarianceSplit,
    failureReason: Nullable(
      Type.String({ description: "Cause (budget, infrastructure or cancelled), a colon and a sentence" }),
    ),
    createdAt: Time,
    completedAt: Nullable(Time),
  },
  {
    title: "Regrade",
    examples: [
      {
        regradeId: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c30",
        statusUrl: "https://evald.example.com/api/v1/regrades/0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c30",
        status: "completed",
        promptId: null,
        since: "2026-11-01T00:00:00.000Z",
        until: "2026-11-21T09:31:00.000Z",
        methodology: "acme-1",
        judge: "anthropic/claude-opus-4-8",
        repeats: 3,
        maxUsd: 20,
        total: 118,
        graded: 103,
        unchanged: 10,
        withoutEvents: 4,
        failed: 1,
        spentUsd: 8.41,
        unpriced: 0,
        estimatedUsd: 0,
        variance: { sessions: 103, judgeSd: 1.8, runSd: 5.2 },
        failureReason: null,
        createdAt: "2026-11-21T09:31:00.000Z",
        completedAt: "2026-11-21T09:52:40.000Z",
      },
    ],
  },
);
export type Regrade = Static<typeof Regrade>;
