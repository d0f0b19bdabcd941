import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Limits } from "../config/limits.ts";
import { catchUpPolicies, overlapPolicies, promptStatuses } from "../db/tables/prompts.ts";
import { scopes } from "../grading/kinds.ts";
import { HttpUrl, Id, mapOf, Nullable, OneOf, Score, shape, Time } from "../schema.ts";
import { PromptAgents, WorkerLabels } from "./agent-schema.ts";
import { DeclaredCheck } from "./check-schema.ts";
import { maxVariables } from "./template.ts";
import { textOf, WorkspaceSetup } from "./workspace-schema.ts";

/** A schema that appears once in the API description, under this title. */
const Titled = <T extends TSchema>(title: string, schema: T): T => ({ ...schema, title });

const title = Nullable(Type.String());
const endGoal = Nullable(Type.String({ description: "What must be true when the agent is done" }));
const status = Titled(
  "PromptStatus",
  OneOf(promptStatuses, "active; paused: not scheduled, but can be run manually; archived: cannot be run"),
);
const templateVars = Nullable(
  Type.Array(Type.String(), { description: "Template variables, in order of first appearance" }),
);

/**
 * The stored text of the docs that a prompt was proposed from. `digest`: SHA-256 of the quote. `ownGoal`: the proposed end goal if it repeats words
 * of the docs.
 */
export const StoredBasis = Type.Object({
  url: Type.String({ maxLength: 2000 }),
  line: Type.Integer({ minimum: 1 }),
  quote: Type.String({ maxLength: 1000 }),
  digest: Type.String(),
  ownGoal: Nullable(Type.String()),
});
/** The first run that read the page without the quote, and when, in epoch ms. */
export const BasisChange = Type.Object({ runId: Id, at: Type.Integer({ minimum: 0 }) });

const basis = Nullable(
  Type.Object(
    {
      ...Type.Omit(StoredBasis, ["ownGoal"]).properties,
      repeatsDocs: Type.Boolean({
        description:
          "The end goal repeats words of the docs: trends of docs_only scores leave it out until you edit it",
      }),
      changedAt: Nullable(Time),
      changedInRunId: Nullable(Type.String({ description: "First run that read the page without the quote" })),
    },
    { title: "PromptBasis", description: "Text of the docs that it was proposed from; null: it was not proposed" },
  ),
);

/** The place of a prompt in a version of a suite. */
export const SuiteReference = Type.Object({
  id: Type.String(),
  version: Type.Integer({ minimum: 1 }),
  slot: Type.String(),
});

const tagWords = "1 to 50 letters, digits and . _ : / -, starting with a letter or digit";
/** A name to group prompts by. */
const Tag = Type.String({
  ...shape("^[A-Za-z0-9][A-Za-z0-9._:/-]{0,49}$", tagWords),
  description: `Tag: ${tagWords}`,
});
export const Tags = Type.Array(Tag, {
  title: "Tags",
  maxItems: 20,
  uniqueItems: true,
  description: "Tags to group prompts by",
});

export const promptExample = {
  id: "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11",
  title: "Upload a file",
  text: "Upload a file with the {{language}} SDK.",
  endGoal: "A file was uploaded and its address printed.",
  status: "active",
  templateVars: ["language"],
  createdAt: "2026-11-21T09:30:00.000Z",
};

const wordings = Nullable(
  Type.Array(textOf(300, "The end goal in other words"), {
    title: "GoalWordings",
    maxItems: 5,
    description: "Other wordings of the end goal. The explorer compares what each of them finds on the same pages",
  }),
);

export const PromptSummary = Type.Object(
  {
    id: Id,
    title,
    text: Type.String({ description: "Task for the agent" }),
    endGoal,
    status,
    templateVars,
    createdAt: Time,
  },
  { title: "PromptSummary", examples: [promptExample] },
);
export type PromptSummary = Static<typeof PromptSummary>;

export const AdditionalUrl = Type.Object(
  { url: HttpUrl("Start URL") },
  {
    title: "AdditionalUrl",
    additionalProperties: true,
    description:
      "name and kind (docs, openapi, competitor, mcp) are used by evald; other fields are returned unchanged",
  },
);

/** Scopes of scores whose goal was not tested. */
export const untestedScopes = scopes.filter((scope) => scope !== "goal");

export const SuccessBar = Type.Object({
  scope: OneOf(untestedScopes, "Scope that the score must have"),
  minScore: Score("Minimum score"),
});

/** Start URLs and success checks of a prompt. */
export const maxUrls = 100;
export const maxChecks = 50;

/** The settings of a prompt besides its texts, in requests and responses. */
const settings = {
  wordings,
  tags: Tags,
  workerLabels: WorkerLabels,
  frequency: Nullable(
    Type.String({
      title: "Frequency",
      maxLength: 200,
      description:
        "hourly, daily, weekly, monthly, a five-field cron expression, or in requests also `daily at 06:30`, `weekdays at 06:30` or `monday at 06:30`; null: manual only",
    }),
  ),
  catchUp: Titled(
    "CatchUpPolicy",
    OneOf(
      catchUpPolicies,
      "What becomes of scheduled evaluations that the service missed. automatic: the latest one runs if it is late by up to half of the time to the next one, but 1 to 7 days; skip: none runs; latest: the latest one runs, however late; window: the latest one runs if it is late by up to catchUpHours",
    ),
  ),
  catchUpHours: Nullable(
    Type.Integer({
      title: "CatchUpHours",
      minimum: 1,
      maximum: 8784,
      description: "Only for the catch-up policy window, which needs it",
    }),
  ),
  overlap: Titled(
    "OverlapPolicy",
    OneOf(
      overlapPolicies,
      "What becomes of a scheduled evaluation while runs of the previous one are active. skip: it doesn't run; queue: it runs when they have ended, and further ones don't run; allow: it runs",
    ),
  ),
  runsPerEval: Nullable(Type.Integer({ minimum: 1, maximum: 50, description: "Runs per evaluation; null means 1" })),
  targetProviderId: Nullable(Id),
  additionalUrls: Nullable(Type.Array(AdditionalUrl, { maxItems: maxUrls })),
  templateDefaults: Nullable(
    mapOf(Type.String({ maxLength: 2000 }), {
      title: "TemplateDefaults",
      maxProperties: maxVariables,
      description: "Default values of template variables, required for scheduled runs",
    }),
  ),
  declaredChecks: Nullable(Type.Array(DeclaredCheck, { maxItems: maxChecks })),
  workspace: Nullable(WorkspaceSetup),
  agent: Nullable(
    Type.String({
      title: "AgentId",
      maxLength: 100,
      description:
        "explorer, llm or a coding agent such as codex (GET /api/v1/agents lists them); null: llm if a model with an API key is configured, else explorer",
    }),
  ),
  model: Nullable(Type.String({ maxLength: 200, description: "provider/model, for agents that use a model" })),
  agents: Nullable(PromptAgents),
  limits: Nullable(Limits),
  reviewBeforePublishing: Type.Boolean({ description: "Save reports as drafts until they are reviewed" }),
  isCanary: Type.Boolean({
    title: "IsCanary",
    description: "Canary: its docs never change, so a change in its results comes from the agent or model",
  }),
  successBar: Nullable(
    Type.Object(SuccessBar.properties, {
      title: "SuccessBar",
      description:
        "For clients that only look at outcome in report of a run: a run whose goal was not tested succeeds with this score",
    }),
  ),
  supersedesByDefault: Type.Boolean({
    title: "SupersedesByDefault",
    description: "A run requested without supersede supersedes unfinished runs of the same preview",
  }),
  isOnResultsPage: Type.Boolean({
    title: "IsOnResultsPage",
    description: "List the prompt with its score and trend on the public results page of the organization, if it is on",
  }),
  hasPublicBadge: Type.Boolean({
    title: "HasPublicBadge",
    description:
      "Show the badge with the latest score to everyone with its URL (badgeUrl), without signing in. Turning it off revokes the URL for good",
  }),
  baselineRequestId: Nullable(
    Type.String({
      title: "BaselineRequestId",
      format: "uuid",
      description:
        "Evaluation used as the baseline, with at least two scored runs; null: the last ten comparable published runs",
    }),
  ),
};

const settingsExample = {
  wordings: ["Store a file and print its address."],
  tags: ["quickstart"],
  workerLabels: [],
  frequency: "weekly",
  catchUp: "automatic" as const,
  catchUpHours: null,
  overlap: "skip" as const,
  runsPerEval: 3,
  targetProviderId: null,
  additionalUrls: [{ url: "https://docs.example.com/llms.txt", kind: "docs" }],
  templateDefaults: { language: "Python" },
  declaredChecks: null,
  workspace: null,
  agent: null,
  model: null,
  agents: null,
  limits: { costUsd: 0.5, toolCalls: 80 },
  reviewBeforePublishing: false,
  isCanary: false,
  successBar: { scope: "docs_only" as const, minScore: 80 },
  supersedesByDefault: false,
  isOnResultsPage: false,
  hasPublicBadge: false,
  baselineRequestId: null,
};

export const Prompt = Type.Object(
  {
    ...PromptSummary.properties,
    ...settings,
    basis,
    suite: Nullable(SuiteReference),
    nextRunsAt: Nullable(
      Type.Array(Time, {
        maxItems: 3,
        description: "Next three scheduled times; null if not scheduled",
      }),
    ),
    badgeUrl: Nullable(
      Type.String({
        description:
          "SVG image with the latest score; with .json in place of .svg, the JSON of a Shields endpoint badge. null: not public",
      }),
    ),
    warnings: Type.Array(Type.String(), { description: "Problems that limit what its evaluations can show" }),
  },
  {
    title: "Prompt",
    examples: [
      {
        ...promptExample,
        ...settingsExample,
        basis: null,
        suite: null,
        badgeUrl: null,
        nextRunsAt: ["2026-11-27T04:12:00.000Z", "2026-12-04T04:12:00.000Z", "2026-12-11T04:12:00.000Z"],
        warnings: [],
      },
    ],
  },
);
export type Prompt = Static<typeof Prompt>;

export const PromptInput = Type.Object(
  {
    text: textOf(100_000, "Task for the agent; {{name}} is a template variable, \\{{ is a literal"),
    title: Type.Optional(Nullable(textOf(200, "Title shown in lists and reports"))),
    endGoal: Type.Optional(Nullable(textOf(100_000, "What must be true when the agent is done"))),
    status: Type.Optional(status),
    ...Type.Partial(Type.Object(settings)).properties,
  },
  {
    title: "PromptInput",
    examples: [
      {
        title: "Upload a file",
        text: "Upload a file with the {{language}} SDK.",
        ...settingsExample,
      },
    ],
  },
);
export type PromptInput = Static<typeof PromptInput>;

export const PromptPatch = Type.Partial(PromptInput, { title: "PromptPatch", examples: [{ status: "archived" }] });
export type PromptPatch = Static<typeof PromptPatch>;
