import type { ModelProvider } from "../config/model-settings.ts";
import type { Agent, OptionalPart, SupportedOptions } from "./agent.ts";

/** An agent as a prompt or a run may name it. */
export type AgentChoice = {
  id: string;
  version: string;
  hasModel: boolean;
  /** Providers whose models it can use; null: all. */
  providers: readonly ModelProvider[] | null;
  /** Parts of a workspace that it cannot use. */
  lacks: readonly OptionalPart[];
  /** The options that it has. */
  options: SupportedOptions;
  /** Tokens of instructions and tools in its first request to a model; null: unknown. */
  firstRequestTokens: number | null;
  /** Why it cannot be used on this server; null if it can. */
  objection: string | null;
};

/** How long the list of agents is cached: every request that starts a run reads it. */
const cacheMs = 1_000;

const choicesByAgents = new WeakMap<Record<string, Agent>, { choices: AgentChoice[]; at: number }>();

/** All agents, the default first. The list is made again once a second, because coding agents are installed and updated while the service runs. */
export function listAgentChoices(agents: Record<string, Agent>): AgentChoice[] {
  let latest = choicesByAgents.get(agents);
  if (!latest || performance.now() - latest.at > cacheMs) {
    latest = { choices: Object.entries(agents).map(([id, agent]) => toChoice(id, agent)), at: performance.now() };
    choicesByAgents.set(agents, latest);
  }
  return latest.choices;
}

const toChoice = (id: string, agent: Agent): AgentChoice => {
  const { version, kind, providers = null, lacks = [], options = {}, firstRequestTokens = null } = agent.describe();
  const hasModel = kind === "model";
  return { id, version, hasModel, providers, lacks, options, firstRequestTokens, objection: objectionToAgent(agent) };
};

/** Why an agent cannot be used on this server, in words; null if it can. */
export function objectionToAgent(agent: Agent): string | null {
  const missing = agent.preflight().filter(({ isMet }) => !isMet);
  return missing.length === 0 ? null : missing.map(({ what, detail }) => `${what}: ${detail}`).join("; ");
}
