import { type Static, Type } from "@sinclair/typebox";
import { Limits } from "../config/limits.ts";
import { modelProviders } from "../config/model-settings.ts";
import { promptStatuses } from "../db/tables.ts";
import { HttpUrl, Id, Nullable, OneOf, Time } from "../schema.ts";

const textOf = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, pattern: "\\S", description });

const title = Nullable(Type.String());
const endGoal = Nullable(Type.String({ description: "What must be true when the agent is done" }));
const status = OneOf(promptStatuses, "active; paused: not scheduled, but can be run manually; archived: cannot be run");
const templateVars = Nullable(
  Type.Array(Type.String(), { description: "Template variables, in order of first appearance" }),
);

/** A name to group prompts by. */
const Tag = Type.String({
  pattern: "^[A-Za-z0-9][A-Za-z0-9._:/-]{0,49}$",
  description: "Tag: 1 to 50 letters, digits and . _ : / -, starting with a letter or digit",
});
export const Tags = Type.Array(Tag, { maxItems: 20, uniqueItems: true, description: "Tags to group prompts by" });

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
    text: Type.String({ description: "Task for the agent" }),
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
    url: Type.Optional(HttpUrl("URL to request with GET")),
    command: Type.Optional(
      textOf(4000, "Shell command to run in a new sandbox over the workspace. Requires an agent with a model"),
    ),
    file: Type.Optional(
      textOf(1000, "Path of a file that must exist, relative to the workspace. Requires an agent with a model"),
    ),
    status: Type.Optional(
      Type.Integer({ minimum: 100, maximum: 599, description: "Expected status of the response; default 200" }),
    ),
    exitCode: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 255, description: "Expected exit code of the command; default 0" }),
    ),
    contains: Type.Optional(textOf(1000, "Text that the response, the output or the file must contain")),
    invariant: Type.Optional(
      Type.Boolean({ description: "Counts even if it already passes before the run; others must fail before the run" }),
    ),
  },
  {
    description: "Verifies a part of the end goal before and after the run. Set exactly one of url, command and file",
  },
);
export type DeclaredCheck = Static<typeof DeclaredCheck>;

export const WorkspaceSetup = Type.Object(
  {
    archive: Type.Optional(
      Type.String({ format: "uuid", description: "ID of an uploaded archive whose files are unpacked" }),
    ),
    repository: Type.Optional(
      Type.Object(
        {
          url: HttpUrl("URL to clone from"),
          ref: Type.String({
            minLength: 1,
            maxLength: 200,
            pattern: "^[A-Za-z0-9][A-Za-z0-9._/+-]*$",
            description: "Branch, tag or commit",
          }),
        },
        { description: "Public Git repository whose files are checked out. Not together with archive" },
      ),
    ),
    setup: Type.Optional(textOf(4000, "Shell command that runs in the workspace before the agent")),
    env: Type.Optional(
      Type.Record(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,99}$" }), Type.String({ maxLength: 2000 }), {
        maxProperties: 50,
        additionalProperties: false,
        description: "Environment variables of commands. They are stored and shown: do not put secrets here",
      }),
    ),
    instructions: Type.Optional(textOf(50_000, "Content of AGENTS.md, which agents read when they start")),
  },
  {
    title: "WorkspaceSetup",
    additionalProperties: false,
    description: "Content of the workspace when the agent starts. Requires an agent with a workspace",
  },
);
export type WorkspaceSetup = Static<typeof WorkspaceSetup>;

export const AdditionalUrl = Type.Object(
  { url: HttpUrl("Start URL") },
  {
    additionalProperties: true,
    description:
      "name and kind (docs, openapi, competitor, mcp) are used by evald; other fields are returned unchanged",
  },
);

/** The settings of a prompt besides its texts, in requests and responses. */
const choices = {
  tags: Tags,
  frequency: Nullable(
    Type.String({
      maxLength: 200,
      description: "hourly, daily, weekly, monthly or a five-field cron expression; null: manual only",
    }),
  ),
  runsPerEval: Nullable(Type.Integer({ minimum: 1, maximum: 50, description: "Runs per evaluation; null means 1" })),
  targetProviderId: Nullable(Id),
  additionalUrls: Nullable(Type.Array(AdditionalUrl, { maxItems: 100 })),
  templateDefaults: Nullable(
    Type.Record(Type.String(), Type.String({ maxLength: 2000 }), {
      description: "Default values of template variables, required for scheduled runs",
    }),
  ),
  declaredChecks: Nullable(Type.Array(DeclaredCheck, { maxItems: 50 })),
  workspace: Nullable(WorkspaceSetup),
  agent: Nullable(
    Type.String({
      maxLength: 100,
      description:
        "explorer, llm or a coding agent such as codex (GET /api/v1/agents lists them); null: llm if a model with an API key is configured, else explorer",
    }),
  ),
  model: Nullable(Type.String({ maxLength: 200, description: "provider/model, for agents that use a model" })),
  limits: Nullable(Limits),
  reviewBeforePublishing: Type.Boolean({ description: "Save reports as drafts until they are reviewed" }),
  isCanary: Type.Boolean({
    description: "Canary: its docs never change, so a change in its results comes from the agent or model",
  }),
  hasPublicBadge: Type.Boolean({
    description: "Show the badge with the latest score to everyone with its URL (badgeUrl), without signing in",
  }),
  baselineRequestId: Nullable(
    Type.String({
      format: "uuid",
      description:
        "Evaluation used as the baseline, with at least two scored runs; null: the last ten comparable published runs",
    }),
  ),
};

const choicesExample = {
  tags: ["quickstart"],
  frequency: "weekly",
  runsPerEval: 3,
  targetProviderId: null,
  additionalUrls: [{ url: "https://docs.example.com/llms.txt", kind: "docs" }],
  templateDefaults: { language: "Python" },
  declaredChecks: null,
  workspace: null,
  agent: null,
  model: null,
  limits: { costUsd: 0.5, toolCalls: 80 },
  reviewBeforePublishing: false,
  isCanary: false,
  hasPublicBadge: false,
  baselineRequestId: null,
};

export const Prompt = Type.Object(
  {
    ...PromptSummary.properties,
    ...choices,
    nextRunsAt: Nullable(
      Type.Array(Time, {
        maxItems: 3,
        description: "Next three scheduled times; null if not scheduled",
      }),
    ),
    badgeUrl: Nullable(Type.String({ description: "SVG image with the latest score; null: not public" })),
    warnings: Type.Array(Type.String(), { description: "Problems that limit what its evaluations can show" }),
  },
  {
    title: "Prompt",
    examples: [
      {
        ...promptExample,
        ...choicesExample,
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
    ...Type.Partial(Type.Object(choices)).properties,
  },
  {
    title: "PromptInput",
    examples: [
      {
        title: "Upload a file",
        text: "Upload a file with the {{language}} SDK.",
        ...choicesExample,
      },
    ],
  },
);
export type PromptInput = Static<typeof PromptInput>;

export const PromptPatch = Type.Object(
  { ...Type.Partial(PromptInput).properties, status: Type.Optional(status) },
  { title: "PromptPatch", examples: [{ status: "archived" }] },
);
export type PromptPatch = Static<typeof PromptPatch>;

export const AgentInfo = Type.Object(
  {
    id: Type.String({ description: "Name it as the agent of a prompt or a run" }),
    version: Nullable(
      Type.String({ description: "Changes with everything that may change its results; null: unavailable" }),
    ),
    hasModel: Type.Boolean({ description: "Whether it uses a model" }),
    providers: Nullable(
      Type.Array(OneOf(modelProviders), { description: "Providers whose models it can use; null: all" }),
    ),
    objection: Nullable(Type.String({ description: "Why it cannot be used on this server; null: it can" })),
  },
  {
    title: "Agent",
    examples: [{ id: "codex", version: "0.169.0+preset.1", hasModel: true, providers: ["openai"], objection: null }],
  },
);
export type AgentInfo = Static<typeof AgentInfo>;
