import { type Static, Type } from "@sinclair/typebox";
import { optionalParts } from "../agents/agent.ts";
import { effortLevels, permissionModes, variableName } from "../config/agent-entry.ts";
import { modelProviders } from "../config/model-settings.ts";
import { workerLabel } from "../config/worker-settings.ts";
import { mapOf, Nullable, notBlank, OneOf, shape } from "../schema.ts";

export const AgentOptions = Type.Object(
  {
    args: Type.Optional(
      Type.Array(Type.String({ maxLength: 4000 }), {
        maxItems: 50,
        description: "Further arguments at the end of its command line",
      }),
    ),
    env: Type.Optional(
      Type.Record(Type.String(variableName), Type.String({ maxLength: 4000 }), {
        additionalProperties: false,
        maxProperties: 50,
        description: "Further environment variables; not secret",
      }),
    ),
    effort: Type.Optional(OneOf(effortLevels, "How hard its model thinks")),
    systemPrompt: Type.Optional(
      Type.String({ ...notBlank, maxLength: 20_000, description: "Instructions that are added to its own" }),
    ),
    permissions: Type.Optional(
      OneOf(permissionModes, "allow: it may do everything; ask: each time that it asks counts as an interruption"),
    ),
    webSearch: Type.Optional(
      Type.Boolean({ description: "Search the web at the provider of its model; its fees are not part of the cost" }),
    ),
    login: Type.Optional(
      Type.Boolean({ description: "Use the organization's login for the agent, not an API key; its cost is unknown" }),
    ),
  },
  {
    title: "AgentOptions",
    additionalProperties: false,
    description: "Settings of a coding agent. GET /api/v1/agents lists those that it has",
  },
);
const PromptAgent = Type.Object(
  {
    agent: Type.String({ minLength: 1, maxLength: 100, description: "Agent, such as codex" }),
    model: Type.Optional(Nullable(Type.String({ maxLength: 200, description: "provider/model; null: the default" }))),
    options: Type.Optional(AgentOptions),
  },
  { title: "PromptAgent" },
);
/** Maximum agents of a prompt. */
export const maxAgents = 10;
/** The agents of a prompt that has several. The fields `agent` and `model` of the prompt repeat the first. */
export const PromptAgents = Type.Array(PromptAgent, {
  title: "PromptAgents",
  minItems: 1,
  maxItems: maxAgents,
  description:
    "Several agents: an evaluation makes runsPerEval runs with each, and compares each only with itself. agent and model are the first entry. A list of one sets the options of a single agent. null: one without options",
});

const labelWords = "1 to 50 letters, digits and . _ -, starting with a letter or digit";

/** The labels that a prompt requires of workers. */
export const WorkerLabels = Type.Array(
  Type.String({ ...shape(workerLabel.source, labelWords), description: `Label: ${labelWords}` }),
  {
    title: "WorkerLabels",
    maxItems: 10,
    uniqueItems: true,
    description: "Its runs go only to workers that have all these labels; browser matches every worker with a browser",
  },
);
export const AgentInfo = Type.Object(
  {
    id: Type.String({ description: "Pass it as the agent of a prompt or a run" }),
    version: Nullable(Type.String({ description: "Changes whenever its results may change; null: unavailable" })),
    hasModel: Type.Boolean({ description: "Whether it uses a model" }),
    providers: Nullable(
      Type.Array(OneOf(modelProviders), { description: "Providers whose models it can use; null: all" }),
    ),
    lacks: Type.Array(OneOf(optionalParts), { description: "Parts of a workspace that it can't use" }),
    options: mapOf(Nullable(Type.Array(Type.String())), {
      description: "Options of a prompt that it has, each with its values; null: any value",
    }),
    firstRequestTokens: Nullable(
      Type.Integer({
        description: "Tokens of its own instructions and tools in the first request to a model; null: unknown",
      }),
    ),
    objection: Nullable(Type.String({ description: "Why it can't be used on this server; null: available" })),
  },
  {
    title: "Agent",
    examples: [
      {
        id: "codex",
        version: "0.169.0+preset.1",
        hasModel: true,
        providers: ["openai"],
        lacks: [],
        options: { args: null, env: null, effort: ["low", "medium", "high"], webSearch: ["off", "on"] },
        firstRequestTokens: 10_000,
        objection: null,
      },
    ],
  },
);
export type AgentInfo = Static<typeof AgentInfo>;
