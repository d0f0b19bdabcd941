import { type Static, Type } from "@sinclair/typebox";
import { Nullable, OneOf } from "../schema.ts";

const range = (description: string) =>
  Type.Object(
    { median: Nullable(Type.Number()), low: Nullable(Type.Number()), high: Type.Number() },
    {
      description: `${description}; median is null if only the limits are known, and low unless the size of the agent's first request is known`,
    },
  );

const AgentEstimate = Type.Object({
  agent: Type.String(),
  model: Nullable(Type.String()),
  firstRequestTokens: Nullable(
    Type.Integer({
      description: "Tokens of instructions and tools that the agent sends before it reads anything; null: unknown",
    }),
  ),
  basis: OneOf(["earlier runs", "limits"], "Basis of the estimate; earlier runs: of the same prompt, agent and model"),
  of: Type.Integer({ description: "Number of earlier runs used, at most 20" }),
  seconds: { ...range("From start to report"), title: "EstimatedSeconds" },
  costUsd: Nullable({
    ...range("Cost of the agent's model; if based on earlier runs, of the judge too; null: unknown"),
    title: "EstimatedCost",
  }),
});
export type AgentEstimate = Static<typeof AgentEstimate>;

export const Estimate = Type.Object(
  {
    runs: Type.Integer({ description: "Runs per evaluation with each agent; the other figures are per run" }),
    ...AgentEstimate.properties,
    others: Type.Array(AgentEstimate, {
      description: "If the prompt names several agents: the same for each of the others",
    }),
  },
  {
    title: "Estimate",
    examples: [
      {
        runs: 3,
        agent: "llm",
        model: "anthropic/claude-opus-4-8",
        firstRequestTokens: null,
        basis: "earlier runs",
        of: 12,
        seconds: { median: 184.2, low: 96.5, high: 412 },
        costUsd: { median: 0.41, low: 0.22, high: 0.98 },
        others: [],
      },
    ],
  },
);
export type Estimate = Static<typeof Estimate>;
