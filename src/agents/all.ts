import { version } from "../../package.json" with { type: "json" };
import type { Agent } from "./agent.ts";
import { createChildAgent } from "./child.ts";

/** Every agent of this executable by id, working in this very process. */
export const ownAgents = (): Record<string, Agent> => ({
  explorer: onDemand({ id: "explorer", version, model: null, kind: "rules" }, async () => {
    const { createExplorer } = await import("./explorer/explorer.ts");
    return createExplorer({ version });
  }),
  llm: onDemand({ id: "llm", version, model: null, kind: "model" }, async () => {
    const { createModelAgent } = await import("./llm/llm.ts");
    return createModelAgent({ version });
  }),
});

/** The same, each run in a process of its own. `env`: the service's, from which the process gets what it needs. */
export const allAgents = (env: Record<string, string | undefined> = {}): Record<string, Agent> =>
  Object.fromEntries(Object.entries(ownAgents()).map(([id, agent]) => [id, createChildAgent(agent, { env })]));

/** An agent whose code is loaded when it works: the service only speaks of it, and would carry it for nothing. */
function onDemand(description: ReturnType<Agent["describe"]>, load: () => Promise<Agent>): Agent {
  return {
    describe: () => description,
    preflight: () => [],
    async *run(task, context) {
      yield* (await load()).run(task, context);
    },
  };
}
