import { version } from "../../package.json" with { type: "json" };
import { customAgentsSetting } from "../config/custom-agents.ts";
import { ConfigError } from "../errors.ts";
import { type Agent, optionalParts } from "./agent.ts";
import { createChildAgent } from "./child.ts";
import { createCodingAgent } from "./coding/coding.ts";
import { type Preset, toPreset } from "./coding/preset.ts";
import { presets } from "./coding/presets.ts";
import { ownCommand } from "./process.ts";
import {
  inAgentSandbox,
  inModelAgentSandbox,
  testAgentSandbox,
  testModelAgentSandbox,
} from "./sandbox/agent-command.ts";
import { createStandby } from "./standby.ts";

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
  explorer: onDemand({ id: "explorer", version, model: null, kind: "rules", lacks: optionalParts }, async () => {
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

/** Variables that the processes of agents get: the program path and the operator's trusted certificates. */
const passedVariables = ["PATH", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

export type AgentStandby = ReturnType<typeof agentStandby>;

/**
 * Starts the processes of agents, in sandboxes where that is possible. Agents with a model start a further sandbox for each command, so theirs
 * is a wider one. `env`: the service's environment, from which they get the variables that they need. `dataDir`: what they must not see.
 */
export function agentStandby(env: Env, dataDir: () => string) {
  const passed = {
    ...Object.fromEntries(passedVariables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))),
    // Not the path of a file: the processes have another working directory and don't see the data directory.
    ...(env.EVALD_AGENTS && { EVALD_AGENTS: JSON.stringify(customAgentsSetting(env.EVALD_AGENTS)) }),
  };
  let problem: Promise<string | null> | undefined;
  const ofRules = createStandby(
    async (socketPath) => {
      problem ??= testAgentSandbox(passed);
      return ((await problem) === null ? inAgentSandbox(["__agent"], passed, socketPath) : null) ?? ownCommand();
    },
    passed,
    "rules",
  );
  let modelProblem: Promise<string | null> | undefined;
  const withModel = createStandby(
    async () => {
      modelProblem ??= testModelAgentSandbox();
      return ((await modelProblem) === null ? inModelAgentSandbox(dataDir()) : null) ?? ownCommand();
    },
    passed,
    "model",
  );
  return {
    /** `socketPath`: of the proxy by which an agent without a model connects. */
    take: (kind: "rules" | "model", socketPath: string | null) =>
      (kind === "rules" ? ofRules : withModel).take(socketPath),
    start(socketPath: () => Promise<string>) {
      ofRules.start(socketPath);
      withModel.start(async () => null, "afterFirst");
    },
    stop() {
      ofRules.stop();
      withModel.stop();
    },
  };
}

/** The same agents, each run in its own process. */
export const allAgents = (env: Env, { take }: Pick<AgentStandby, "take">): Record<string, Agent> =>
  Object.fromEntries(
    Object.entries(ownAgents(env)).map(([id, agent]) => [
      id,
      createChildAgent(agent, { start: (wayOut) => take(agent.describe().kind, wayOut?.path ?? null) }),
    ]),
  );

/** Loads the code of agents with or without a model, in a process that waits for an order. */
export const loadAgents = (kind: "rules" | "model"): Promise<unknown> =>
  kind === "model" ? import("./llm/llm.ts") : import("./explorer/explorer.ts");

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
