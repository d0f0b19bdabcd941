import { version } from "../../package.json" with { type: "json" };
import type { Agent } from "./agent.ts";
import { createChildAgent } from "./child.ts";
import { createExplorer } from "./explorer/explorer.ts";
import { createModelAgent } from "./llm/llm.ts";

/** Every agent of this executable by id, working in this very process. */
export const ownAgents = (): Record<string, Agent> => ({
  explorer: createExplorer({ version }),
  llm: createModelAgent({ version }),
});

/** The same, each run in a process of its own. `env`: the service's, from which the process gets what it needs. */
export const allAgents = (env: Record<string, string | undefined> = {}): Record<string, Agent> =>
  Object.fromEntries(Object.entries(ownAgents()).map(([id, agent]) => [id, createChildAgent(agent, { env })]));
