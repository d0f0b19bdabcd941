import { type Static, Type } from "@sinclair/typebox";
import { Comparison } from "../comparisons/compare.ts";
import { gateStatuses } from "../db/tables/gates.ts";
import { scopes } from "../grading/kinds.ts";
import { RunRequest, runExample } from "../runs/schema.ts";
import { Id, mapOf, Nullable, OneOf, Time, Url } from "../schema.ts";
import { EvalResult } from "../stats/repeats.ts";

const { urlMap, sites, templateArgs } = RunRequest.properties;

/** Prompts of one gate. */
export const maxPrompts = 20;

export const GateRequest = Type.Object(
  {
    promptId: Type.Optional(Id),
    promptIds: Type.Optional(
      Type.Array(Id, {
        minItems: 1,
        maxItems: maxPrompts,
        uniqueItems: true,
        description:
          "Several prompts that get one verdict; all must use the same agents and models. Pass this, promptId or tag",
      }),
    ),
    tag: Type.Optional(
      Type.String({ description: `All prompts with this tag that are not archived, at most ${maxPrompts}` }),
    ),
    urlMap: Type.Optional(
      Type.Unsafe<Static<typeof urlMap>>({
        ...urlMap,
        description:
          "URL map of the head, as in a run: a preview of the docs. The base runs without it. If empty, the head is compared with the prompt's baseline",
      }),
    ),
    sites,
    baseSites: Type.Optional({ ...sites, description: "The same for the base. Default: the live docs" }),
    templateArgs,
    runs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 50,
        description:
          "Runs per prompt and side; the maximum if adaptive. Default: 5, adaptive: 12. Always 1 for the explorer, whose runs do not vary",
      }),
    ),
    adaptive: Type.Optional(
      Type.Boolean({
        description: "Evaluate after 3, 5, 8 and 12 runs per side, and stop as soon as the verdict is clear",
      }),
    ),
    minScore: Type.Optional(
      Nullable(Type.Number({ minimum: 0, maximum: 100, description: "Fail if the mean score of the head is lower" })),
    ),
    scope: Type.Optional(
      OneOf(scopes, "Scope of the score that minScore applies to. Default: goal, where the goal was measured"),
    ),
    budgetUsd: Type.Optional(
      Nullable(
        Type.Number({
          exclusiveMinimum: 0,
          description: "Maximum total cost; runs that would exceed it are not started",
        }),
      ),
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

const GateAgent = Type.Object({
  agent: Type.String(),
  model: Nullable(Type.String()),
  status: OneOf(["passed", "failed", "error"]),
  reason: Type.String(),
  comparison: Nullable(Comparison),
});

/** A gate that has just been requested. */
const gateExample = {
  id: "0199f3a4-2b1c-7e00-9d3f-1a2b3c4d5e6f",
  statusUrl: "https://evald.example.com/api/v1/gates/0199f3a4-2b1c-7e00-9d3f-1a2b3c4d5e6f",
  pageUrl: "https://evald.example.com/gates/0199f3a4-2b1c-7e00-9d3f-1a2b3c4d5e6f",
  prompts: [
    {
      id: runExample.prompt.id,
      title: runExample.prompt.title,
      headRequestId: "0199f3a4-2b1d-7c40-8a51-3c5d7e9f0b12",
      baseRequestId: "0199f3a4-2b1e-7b10-9c62-4d6e8f0a1c23",
    },
  ],
  status: "running",
  reason: null,
  cause: null,
  urlMap: { "docs.example.com": "https://preview-42.example.com" },
  templateArgs: { language: "Python" },
  runs: 5,
  adaptive: false,
  minScore: null,
  scope: "goal",
  budgetUsd: null,
  spentUsd: 0,
  progress: { ended: 0, of: 10 },
  head: {
    n: 0,
    infraFailures: 0,
    score: null,
    successRate: null,
    medianSeconds: null,
    medianCostUsd: null,
    label: "5 runs",
    unfinished: 5,
    sd: null,
    successes: null,
    smallestChange: null,
  },
  comparison: null,
  agents: null,
  warnings: [],
  createdAt: "2026-11-21T09:30:00.000Z",
  completedAt: null,
};

export const Gate = Type.Object(
  {
    id: Id,
    statusUrl: Url,
    pageUrl: Url,
    prompts: Type.Array(
      Type.Object({
        id: Id,
        title: Nullable(Type.String()),
        headRequestId: Id,
        baseRequestId: Nullable(Id),
      }),
    ),
    status: OneOf(
      gateStatuses,
      "passed; failed: regressed, or below minScore; error: inconclusive, since runs failed or there are too few. All three are final",
    ),
    reason: Nullable(Type.String({ description: "Reason for the status; null while running" })),
    cause: Nullable(
      Type.String({ description: "The part of the reason that the comparison doesn't tell; null: none" }),
    ),
    urlMap,
    templateArgs: Nullable(mapOf(Type.String())),
    runs: Type.Integer({ description: "Runs per prompt and side; the maximum if adaptive" }),
    adaptive: Type.Boolean(),
    minScore: Nullable(Type.Number()),
    scope: OneOf(scopes),
    budgetUsd: Nullable(Type.Number()),
    spentUsd: Nullable(Type.Number({ description: "null: unknown" })),
    progress: Type.Object({ ended: Type.Integer(), of: Type.Integer() }, { description: "Runs on both sides" }),
    head: EvalResult,
    comparison: Nullable(Comparison),
    agents: Nullable(
      Type.Array(GateAgent, {
        description:
          "If the prompts name several agents: the decision for each. The gate passes if all pass; head and comparison are those of the agent that decided. null: one agent, or still running",
      }),
    ),
    warnings: Type.Array(Type.String(), { description: "Reasons why the gate may not detect a change" }),
    createdAt: Time,
    completedAt: Nullable(Time),
  },
  { title: "Gate", examples: [gateExample] },
);
export type Gate = Static<typeof Gate>;
