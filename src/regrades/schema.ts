import { type Static, Type } from "@sinclair/typebox";
import { regradeStatuses } from "../db/tables.ts";
import { VarianceSplit } from "../reports/judgevariance.ts";
import { Id, Moment, Nullable, OneOf, Time, Url } from "../schema.ts";

const Count = (description: string) => Type.Integer({ minimum: 0, description });

export const RegradeRequest = Type.Object(
  {
    since: Moment("Reports made at or after"),
    until: Type.Optional(Moment("Reports made before; default: now")),
    promptId: Type.Optional(Type.String({ format: "uuid", description: "Only reports of this prompt" })),
    methodology: Type.Optional(
      Type.String({ maxLength: 40, description: "id; default: the one by which new reports are graded" }),
    ),
    judge: Type.Optional(
      Type.String({
        maxLength: 250,
        description: "provider/model that judges the sessions anew; without one the judgements that are there count",
      }),
    ),
    repeats: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 20, default: 1, description: "Times that each session is judged" }),
    ),
    maxUsd: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1_000_000, description: "What the judge may cost in all; needed with judge" }),
    ),
    dryRun: Type.Optional(Type.Boolean({ default: false, description: "Only say what would be done" })),
  },
  { title: "RegradeRequest", examples: [{ since: "2026-11-01", methodology: "1" }] },
);
export type RegradeRequest = Static<typeof RegradeRequest>;

export const Regrade = Type.Object(
  {
    regradeId: Nullable(Type.String({ format: "uuid", description: "null: a dry run" })),
    statusUrl: Nullable(Url),
    status: OneOf([...regradeStatuses, "planned"], "completed, failed and cancelled are final; planned: a dry run"),
    promptId: Nullable(Id),
    since: Time,
    until: Time,
    methodology: Type.String(),
    judge: Nullable(Type.String()),
    repeats: Type.Integer(),
    maxUsd: Nullable(Type.Number()),
    total: Count("Reports of that time"),
    graded: Count("Graded again"),
    unchanged: Count("Were graded by the same methodology and judge already"),
    withoutEvents: Count("Left as they are, for the events of their session are no longer stored"),
    failed: Count("Left as they are, for the judge gave no answer that can be used, or their events cannot be read"),
    spentUsd: Type.Number({ description: "What the judge has cost; no part of the cost of any run" }),
    unpriced: Count("Calls of the judge that were cut off or have no price; towards maxUsd each counts as the dearest"),
    estimatedUsd: Nullable(
      Type.Number({ description: "What is left may cost, by what judging took so far; null: nobody knows" }),
    ),
    variance: VarianceSplit,
    failureReason: Nullable(Type.String({ description: "budget, infrastructure or cancelled, a colon, a sentence" })),
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
