import { type Static, Type } from "@sinclair/typebox";
import { gateStatuses } from "../db/tables.ts";
import { Comparison } from "../reports/compare.ts";
import { EvalResult } from "../reports/repeats.ts";
import { RunRequest, runExample } from "../runs/schema.ts";
import { Id, Nullable, OneOf, Time, Url } from "../schema.ts";

const { urlMap, templateArgs } = RunRequest.properties;

export const GateRequest = Type.Object(
  {
    promptId: Id,
    urlMap: Type.Optional(
      Type.Unsafe<Static<typeof urlMap>>({
        ...urlMap,
        description:
          "Where the head is, as in a run: a preview of the docs. The base runs beside it without. Without one the head is held against the prompt's baseline",
      }),
    ),
    templateArgs,
    runs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 50,
        description: "Runs a side, at most if adaptive. Default 5; adaptive 12",
      }),
    ),
    adaptive: Type.Optional(
      Type.Boolean({ description: "Look at 3, 5, 8 and 12 runs a side, and stop when the verdict is plain" }),
    ),
    minScore: Type.Optional(
      Nullable(Type.Number({ minimum: 0, maximum: 100, description: "Fail if the mean score of the head is below" })),
    ),
    budgetUsd: Type.Optional(
      Nullable(Type.Number({ exclusiveMinimum: 0, description: "Begin no runs that would cost more in all" })),
    ),
  },
  {
    title: "GateRequest",
    examples: [
      {
        promptId: runExample.prompt.id,
        urlMap: { "docs.example.com": "https://preview-42.example.com" },
        templateArgs: { language: "Python" },
        runs: 5,
      },
    ],
  },
);
export type GateRequest = Static<typeof GateRequest>;

export const Gate = Type.Object(
  {
    id: Id,
    statusUrl: Url,
    prompt: Type.Object({ id: Id, title: Nullable(Type.String()) }),
    status: OneOf(
      gateStatuses,
      "passed; failed: regressed, or below minScore; error: too many runs could not be made to tell; all three are final",
    ),
    reason: Nullable(Type.String({ description: "Why it ended as it did; null while it runs" })),
    urlMap,
    templateArgs: Nullable(Type.Record(Type.String(), Type.String())),
    runs: Type.Integer({ description: "Runs a side, at most if adaptive" }),
    adaptive: Type.Boolean(),
    minScore: Nullable(Type.Number()),
    budgetUsd: Nullable(Type.Number()),
    spentUsd: Nullable(Type.Number({ description: "Null: not known" })),
    progress: Type.Object({ ended: Type.Integer(), of: Type.Integer() }, { description: "Runs of both sides" }),
    baseRequestId: Nullable(Id),
    headRequestId: Id,
    head: EvalResult,
    comparison: Nullable(Comparison),
    warnings: Type.Array(Type.String()),
    createdAt: Time,
    decidedAt: Nullable(Time),
  },
  { title: "Gate" },
);
export type Gate = Static<typeof Gate>;
