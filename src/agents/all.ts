import { version } from "../../package.json" with { type: "json" };
import { customAgentsSetting } from "../config/custom-agents.ts";
import { ConfigError } from "../errors.ts";
import type { Agent } from "./agent.ts";
import { createChildAgent } from "./child.ts";
import { createCodingAgent } from "./coding/coding.ts";
import { type Preset, toPreset } from "./coding/preset.ts";
import { presets } from "./coding/presets.ts";

type Env = Record<string, string | undefined>;

/** The coding agents that evald knows, then those of EVALD_AGENTS. Throws ConfigError. */
export function listPresets(env: Env): Preset[] {
  const own = customAgentsSetting(env.EVALD_AGENTS ?? "").map(toPreset);
  const taken = own.find(({ id }) => reserved.has(id));
  if (taken) throw new ConfigError(`Invalid EVALD_AGENTS: the id ${taken.id} is used by a built-in agent`);
  return [...presets, ...own];
}

const reserved = new Set(["explorer", "llm", ...presets.map(({ id }) => id)]);

/** All agents of this executable by ID, running in this process. Coding agents are searched for on the PATH of `env`. */
export const ownAgents = (env: Env): Record<string, Agent> => ({
  explorer: onDemand({ id: "explorer", version, model: null, kind: "rules" }, async () => {
    const { createExplorer } = await import("./explorer/explorer.ts");
    return createExplorer({ version });
  }),
  llm: onDemand({ id: "llm", version, model: null, kind: "model" }, async () => {
    const { createModelAgent } = await import("./llm/llm.ts");
    return createModelAgent({ version });
  }),
  ...Object.fromEntries(
    listPresets(env).map((preset) => [preset.id, createCodingAgent(preset, { path: env.PATH ?? "" })]),
  ),
});

/**
 * The same agents, each run in its own process. `env`: the service's environment, from which the process gets the
 * variables that it needs.
 */
export const allAgents = (env: Env): Record<string, Agent> =>
  Object.fromEntries(Object.entries(ownAgents(env)).map(([id, agent]) => [id, createChildAgent(agent, { env })]));

/** An agent whose code is loaded when it runs. The service itself only needs its description. */
function onDemand(description: ReturnType<Agent["describe"]>, load: () => Promise<Agent>): Agent {
  return {
    describe: () => description,
    preflight: () => [],
    async *run(task, context) {
      yield* (await load()).run(task, context);
    },
  };
}
