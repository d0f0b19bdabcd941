import { type Static, Type } from "@sinclair/typebox";
import { experimentStatuses, leftOutParts, stopReasons } from "../db/tables/experiments.ts";
import { Edits } from "../net/edits.ts";
import { WorkspaceSetup } from "../prompts/workspace-schema.ts";
import { RunRequest, runExample } from "../runs/schema.ts";
import { Id, Nullable, notBlank, OneOf, Time, Url } from "../schema.ts";
import { Interval } from "../stats/repeats.ts";

const Labels = Type.Array(Type.String({ maxLength: 50 }), {
  maxItems: 50,
  title: "PromptLabels",
  description: "IDs or tags",
});

const { urlMap, sites, templateArgs, agent, model } = RunRequest.properties;

export const maxPrompts = 50;
const maxArms = 20;
export const maxRuns = 2_000;

/** An arm: its name, and what it changes about its prompts. */
const ArmInput = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 60, ...notBlank }),
    urlMap: Type.Optional(urlMap),
    sites,
    edits: Type.Optional(Edits),
    providerId: Type.Optional(
      Type.String({ format: "uuid", description: "Provider whose docs and product are used, such as a competitor" }),
    ),
    agent,
    model,
    workspace: Type.Optional(WorkspaceSetup),
    without: Type.Optional(
      Type.Array(OneOf(leftOutParts), { maxItems: 3, description: "Parts of the prompts' workspaces to leave out" }),
    ),
    markers: Type.Optional(
      Type.Array(Type.String({ maxLength: 2000 }), {
        maxItems: 20,
        description:
          "URLs, exact or with * at the end, that lead to the arm's treatment: runs of others must not meet them",
      }),
    ),
  },
  { title: "Arm", additionalProperties: false, examples: [{ name: "codex", agent: "codex" }] },
);

const Triggering = Type.Object(
  {
    of: Type.Optional(Type.String({ maxLength: 100, description: "Its name; default: any" })),
    should: Type.Optional(Labels),
    shouldNot: Type.Optional(Labels),
  },
  { description: "Prompts that should make agents use a skill or MCP server, and others" },
);

const armsExample = [
  { name: "baseline" },
  { name: "no llms.txt", edits: { hidden: ["https://docs.example.com/llms.txt"], replacements: [] } },
];

export const ExperimentRequest = Type.Object(
  {
    title: Type.Optional(Type.String({ minLength: 1, maxLength: 200, ...notBlank })),
    promptIds: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: maxPrompts, uniqueItems: true })),
    tag: Type.Optional(
      Type.String({ maxLength: 50, description: "All prompts with this tag; pass this or promptIds" }),
    ),
    arms: Type.Array(ArmInput, { minItems: 2, maxItems: maxArms, description: "The first one is the base" }),
    repeats: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 50,
        description: "Runs per prompt and arm. Default: 5; always 1 for the explorer",
      }),
    ),
    seed: Type.Optional(Type.Integer({ minimum: 0, maximum: 999_999, description: "Of the random order" })),
    everyWeeks: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 52, description: "Repeats a comparison of the base with itself" }),
    ),
    budgetUsd: Type.Optional(
      Type.Number({ exclusiveMinimum: 0, description: "Repeats that would exceed it are not started" }),
    ),
    templateArgs,
    triggering: Type.Optional(Triggering),
  },
  {
    title: "ExperimentRequest",
    examples: [{ promptIds: [runExample.prompt.id], arms: armsExample, repeats: 10, budgetUsd: 20 }],
  },
);
export type ExperimentRequest = Static<typeof ExperimentRequest>;

export const ExperimentEstimate = Type.Object(
  {
    runs: Type.Integer(),
    repeats: Type.Integer({ description: "Runs per prompt and arm" }),
    usd: Nullable(Type.Number({ description: "By the usual cost of earlier runs, else their limits; null: unknown" })),
    maxUsd: Nullable(Type.Number({ description: "If each run costs as much as it may" })),
  },
  { title: "ExperimentEstimate" },
);
export type ExperimentEstimate = Static<typeof ExperimentEstimate>;

const bound = Nullable(Type.Number());
const p = bound;
const Bounds = Nullable(Type.Object({ low: Type.Number(), high: Type.Number() }));
const Count = Type.Object({ n: Type.Integer(), of: Type.Integer() });
const effect = { delta: Type.Number(), low: bound, high: bound, n: Type.Integer() };
const Ratio = Nullable(
  Type.Object(
    { ratio: Type.Number(), low: bound, high: bound, p, n: Type.Integer() },
    { title: "RatioChange", description: "Times the base" },
  ),
);

const Contrast = Type.Object(
  {
    score: Nullable(
      Type.Object({
        ...effect,
        p,
        adjustedP: p,
        basis: Nullable(OneOf(["blocks", "prompts", "blocks and prompts"])),
      }),
    ),
    success: Nullable(
      Type.Object({
        base: Type.Object({ n: Type.Number(), of: Type.Integer() }),
        arm: Type.Object({ n: Type.Number(), of: Type.Integer() }),
        difference: Type.Number(),
        low: bound,
        high: bound,
        p,
        adjustedP: p,
      }),
    ),
    cost: Ratio,
    seconds: Ratio,
    exact: Type.Boolean({ description: "Runs of the agent don't vary, so the difference needs no test" }),
  },
  { title: "Contrast" },
);

const experimentVerdicts = ["better", "worse", "not_distinguishable", "insufficient_data", "not_comparable"] as const;

const Analysis = Type.Object(
  {
    contrasts: Type.Array(
      Type.Object({
        arm: Type.String(),
        overall: Contrast,
        prompts: Type.Array(Type.Object({ promptId: Type.String(), contrast: Contrast })),
        usedOnly: Nullable(
          Type.Object(effect, { description: "Of runs that used the treatment: not causal. null: not known" }),
        ),
        verdict: OneOf(experimentVerdicts, "not_comparable: more than 20% of the runs met another arm's treatment"),
        causes: Type.Array(OneOf(["score", "success"])),
        withinThreshold: Type.Boolean({ description: "The score changed by less than 5 points" }),
        runsForVerdict: Nullable(Type.Integer({ description: "Runs per prompt and arm that would show 5 points" })),
        promptsForVerdict: Nullable(Type.Integer()),
        contaminated: Type.Integer(),
        failed: Type.Integer(),
      }),
      { description: "Each arm compared with the base, by all runs assigned to it" },
    ),
    arms: Type.Array(
      Type.Object({
        arm: Type.String(),
        n: Type.Integer(),
        failed: Type.Integer(),
        contaminated: Type.Integer(),
        meanScore: Nullable(Type.Number()),
        interval: Bounds,
        successes: Type.Integer(),
        judged: Type.Integer(),
        successInterval: Bounds,
        used: Nullable(Count),
      }),
    ),
    triggering: Type.Array(
      Type.Object({
        arm: Type.String(),
        agent: Type.String(),
        truePositives: Type.Integer(),
        falsePositives: Type.Integer(),
        falseNegatives: Type.Integer(),
        trueNegatives: Type.Integer(),
        precision: Nullable(Interval),
        recall: Nullable(Interval),
        f1: Nullable(Interval),
        wrong: Type.Array(
          Type.Object({
            promptId: Type.String(),
            shouldTrigger: Type.Boolean(),
            triggered: Type.Integer(),
            of: Type.Integer(),
          }),
        ),
      }),
      { description: "Of labeled prompts" },
    ),
    uninformative: Type.Array(Type.String(), { description: "Prompts that all arms always pass, or always fail" }),
    level: Type.Number(),
  },
  { title: "ExperimentAnalysis" },
);

const FalseAlarms = Type.Object(
  {
    runsPerSide: Type.Integer({ description: "Of one gate" }),
    gates: Type.Integer({ description: "Gates that the runs make" }),
    alarms: Type.Integer({ description: "Gates that found a change although there was none" }),
    rate: Nullable(Interval),
    excessP: p,
    smallestChange: Nullable(Type.Number({ description: "Points that the next gate shows in 4 of 5 cases" })),
  },
  { title: "FalseAlarms", description: "If both arms are the same: what a gate of these prompts and this agent finds" },
);

/** An experiment that has just been requested. */
const experimentExample = {
  id: "0199f3a5-1c2d-7e3f-8a4b-5c6d7e8f9a0b",
  statusUrl: "https://evald.example.com/api/v1/experiments/0199f3a5-1c2d-7e3f-8a4b-5c6d7e8f9a0b",
  pageUrl: "https://evald.example.com/experiments/0199f3a5-1c2d-7e3f-8a4b-5c6d7e8f9a0b",
  title: "baseline · no llms.txt",
  status: "running",
  stopReason: null,
  arms: armsExample,
  prompts: [{ id: runExample.prompt.id, title: runExample.prompt.title, shouldTrigger: null, fromSkill: false }],
  triggerOf: null,
  repeats: 10,
  seed: 4711,
  everyWeeks: null,
  budgetUsd: 20,
  spentUsd: 0,
  progress: { ended: 0, of: 2 },
  analysis: { contrasts: [], arms: [], triggering: [], uninformative: [], level: 0.05 },
  falseAlarms: null,
  friction: [],
  createdAt: "2026-11-21T09:30:00.000Z",
  completedAt: null,
};

export const Experiment = Type.Object(
  {
    id: Id,
    statusUrl: Url,
    pageUrl: Url,
    title: Type.String(),
    status: OneOf(experimentStatuses),
    stopReason: Nullable(OneOf(stopReasons)),
    arms: Type.Array(ArmInput),
    prompts: Type.Array(
      Type.Object({
        id: Id,
        title: Nullable(Type.String()),
        shouldTrigger: Nullable(Type.Boolean()),
        fromSkill: Type.Boolean({ description: "Derived from the skill" }),
      }),
    ),
    triggerOf: Nullable(Type.String()),
    repeats: Type.Integer(),
    seed: Type.Integer(),
    everyWeeks: Nullable(Type.Integer()),
    budgetUsd: Nullable(Type.Number()),
    spentUsd: Nullable(Type.Number()),
    progress: Type.Object({ ended: Type.Integer(), of: Type.Integer() }),
    analysis: Analysis,
    falseAlarms: Nullable(FalseAlarms),
    friction: Type.Array(
      Type.Object({
        fingerprint: Type.String(),
        title: Type.String(),
        runs: Type.Array(Type.Integer(), { description: "Runs of each arm that met it, in the order of the arms" }),
      }),
      { description: "Friction points by their difference between arms" },
    ),
    createdAt: Time,
    completedAt: Nullable(Time),
  },
  { title: "Experiment", examples: [experimentExample] },
);
export type Experiment = Static<typeof Experiment>;

const { contrasts } = Analysis.properties;

export const ExperimentSummary = Type.Object(
  {
    ...Type.Pick(Experiment, [
      ...(["id", "statusUrl", "pageUrl", "title", "status", "stopReason"] as const),
      ...(["everyWeeks", "progress", "createdAt", "completedAt"] as const),
    ]).properties,
    verdicts: Type.Array(Type.Pick(contrasts.items, ["arm", "verdict"]), {
      description: "On each arm besides the base. Empty until it has ended",
    }),
  },
  { title: "ExperimentSummary" },
);
export type ExperimentSummary = Static<typeof ExperimentSummary>;

/** A run of an experiment that has ended, as its analysis reads it. */
export const ExperimentRun = Type.Object(
  {
    runId: Id,
    promptId: Id,
    block: Type.Integer({ description: "The repeat, from 0, in which each arm ran once" }),
    arm: Type.String(),
    agent: Type.String(),
    score: Nullable(Type.Number()),
    success: Nullable(Type.Boolean()),
    costUsd: Nullable(Type.Number()),
    seconds: Nullable(Type.Number()),
    excluded: Nullable(OneOf(["contaminated", "failed"], "Why it does not count; null: it does")),
    offered: Nullable(Type.Boolean({ description: "Whether the model received the treatment" })),
    used: Nullable(Type.Boolean({ description: "Whether the agent requested, called or read it" })),
    shouldTrigger: Nullable(Type.Boolean()),
    triggered: Nullable(Type.Boolean()),
    slug: Nullable(Type.String({ description: "Of its report" })),
  },
  { title: "ExperimentRun" },
);
export type ExperimentRun = Static<typeof ExperimentRun>;
