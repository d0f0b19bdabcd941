import { type Static, Type } from "@sinclair/typebox";
import { optionalParts } from "../agents/agent.ts";
import { modelProviders } from "../config/model-settings.ts";
import { workerLabel } from "../config/worker-settings.ts";
import { Nullable, OneOf, shape } from "../schema.ts";

const PromptAgent = Type.Object(
  {
    agent: Type.String({ minLength: 1, maxLength: 100, description: "Agent, such as codex" }),
    model: Type.Optional(Nullable(Type.String({ maxLength: 200, description: "provider/model; null: the default" }))),
  },
  { title: "PromptAgent" },
);
/** Maximum agents of a prompt. */
export const maxAgents = 10;
/** The agents of a prompt that has several. The fields `agent` and `model` of the prompt repeat the first. */
export const PromptAgents = Type.Array(PromptAgent, {
  minItems: 1,
  maxItems: maxAgents,
  description:
    "Several agents: an evaluation makes runsPerEval runs with each, and compares each only with itself. agent and model are the first entry. null: only one",
});

const labelWords = "1 to 50 letters, digits and . _ -, starting with a letter or digit";

/** The labels that a prompt requires of workers. */
export const WorkerLabels = Type.Array(
  Type.String({ ...shape(workerLabel.source, labelWords), description: `Label: ${labelWords}` }),
  {
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
        firstRequestTokens: 10_000,
        objection: null,
      },
    ],
  },
);
export type AgentInfo = Static<typeof AgentInfo>;
