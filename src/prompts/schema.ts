import { type Static, Type } from "@sinclair/typebox";
import { promptStatuses } from "../db/tables.ts";
import { HttpUrl, Id, Nullable, OneOf, Time } from "../schema.ts";
import { Limits } from "./limits.ts";

const words = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, pattern: "\\S", description });

const title = Nullable(Type.String());
const endGoal = Nullable(Type.String({ description: "What must be true at the end" }));
const status = OneOf(promptStatuses, "active; paused: not scheduled, still runnable by hand; archived: not runnable");
const templateVars = Nullable(Type.Array(Type.String(), { description: "Variables in order of first appearance" }));

export const promptExample = {
  id: "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11",
  title: "Upload a file",
  text: "Upload a file with the {{language}} SDK.",
  endGoal: "A file was uploaded and its address printed.",
  status: "active",
  templateVars: ["language"],
  createdAt: "2026-11-21T09:30:00.000Z",
};

export const PromptSummary = Type.Object(
  {
    id: Id,
    title,
    text: Type.String({ description: "The task that the agent is given" }),
    endGoal,
    status,
    templateVars,
    createdAt: Time,
  },
  { title: "PromptSummary", examples: [promptExample] },
);
export type PromptSummary = Static<typeof PromptSummary>;

export const DeclaredCheck = Type.Object(
  {
    url: HttpUrl("Address to ask at the end, by GET"),
    status: Type.Optional(Type.Integer({ minimum: 100, maximum: 599, default: 200 })),
    contains: Type.Optional(words(1000, "Text that the body must contain")),
  },
  { description: "A part of the end goal that a machine can test" },
);

export const AdditionalUrl = Type.Object(
  { url: HttpUrl("Where a session may start") },
  {
    additionalProperties: true,
    description: "name and kind (docs, openapi, competitor, mcp) are understood; the rest is kept",
  },
);

/** What a person decides about a prompt beside its words; the same in what is sent and in what is asked for. */
const choices = {
  frequency: Nullable(
    Type.String({
      maxLength: 200,
      description: "hourly, daily, weekly, monthly or a five-field cron expression; null: by hand only",
    }),
  ),
  runsPerEval: Nullable(Type.Integer({ minimum: 1, maximum: 50, description: "Runs of one evaluation; null means 1" })),
  targetProviderId: Nullable(Id),
  additionalUrls: Nullable(Type.Array(AdditionalUrl, { maxItems: 100 })),
  templateDefaults: Nullable(
    Type.Record(Type.String(), Type.String({ maxLength: 2000 }), { description: "Values for scheduled runs" }),
  ),
  declaredChecks: Nullable(Type.Array(DeclaredCheck, { maxItems: 50 })),
  agent: Nullable(
    Type.String({
      maxLength: 100,
      description: "explorer or llm; null: llm where a model is set and its key is there, else explorer",
    }),
  ),
  model: Nullable(Type.String({ maxLength: 200, description: "provider/model, for agents that use one" })),
  limits: Nullable(Limits),
  reviewBeforePublishing: Type.Boolean({ description: "Reports begin as drafts" }),
  isCanary: Type.Boolean({ description: "Its docs never change: what moves it moves the agent, not the docs" }),
  baselineRequestId: Nullable(
    Type.String({
      format: "uuid",
      description:
        "Eval request that others are held against; null: the last ten comparable published runs. It must have two runs with a score",
    }),
  ),
};

const choicesExample = {
  frequency: "weekly",
  runsPerEval: 3,
  targetProviderId: null,
  additionalUrls: [{ url: "https://docs.example.com/llms.txt", kind: "docs" }],
  templateDefaults: { language: "Python" },
  declaredChecks: null,
  agent: null,
  model: null,
  limits: { costUsd: 0.5, toolCalls: 80 },
  reviewBeforePublishing: false,
  isCanary: false,
  baselineRequestId: null,
};

export const Prompt = Type.Object(
  {
    ...PromptSummary.properties,
    ...choices,
    nextRunsAt: Nullable(
      Type.Array(Time, {
        maxItems: 3,
        description: "The next three slots of its schedule; null if it is not scheduled",
      }),
    ),
    warnings: Type.Array(Type.String(), { description: "What to know before relying on its evaluations" }),
  },
  {
    title: "Prompt",
    examples: [
      {
        ...promptExample,
        ...choicesExample,
        nextRunsAt: ["2026-11-27T04:12:00.000Z", "2026-12-04T04:12:00.000Z", "2026-12-11T04:12:00.000Z"],
        warnings: [],
      },
    ],
  },
);
export type Prompt = Static<typeof Prompt>;

export const PromptInput = Type.Object(
  {
    text: words(100_000, "The task that the agent is given; {{name}} is a variable, \\{{ is a literal"),
    title: Type.Optional(Nullable(words(200, "A name for people"))),
    endGoal: Type.Optional(Nullable(words(100_000, "What must be true at the end"))),
    ...Type.Partial(Type.Object(choices)).properties,
  },
  {
    title: "PromptInput",
    examples: [{ title: "Upload a file", text: "Upload a file with the {{language}} SDK.", ...choicesExample }],
  },
);
export type PromptInput = Static<typeof PromptInput>;

export const PromptPatch = Type.Object(
  { ...Type.Partial(PromptInput).properties, status: Type.Optional(status) },
  { title: "PromptPatch", examples: [{ status: "archived" }] },
);
export type PromptPatch = Static<typeof PromptPatch>;
