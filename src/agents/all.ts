import { version } from "../../package.json" with { type: "json" };
import { parseAgentEntries } from "../config/agent-entries.ts";
import { parseSetting } from "../config/setting.ts";
import { ConfigError } from "../errors.ts";
import { once } from "../once.ts";
import { type Agent, optionalParts } from "./agent.ts";
import { createChildAgent } from "./child.ts";
import { createCodingAgent } from "./coding/coding.ts";
import { type Preset, toPresets } from "./coding/preset.ts";
import { presets } from "./coding/presets.ts";
import { type ProgramFiles, programFilesOf, stateOf } from "./coding/program.ts";
import { ownCommand } from "./process.ts";
import { agentCommand, type ProcessAccess, testAgentSandbox } from "./sandbox/agent-command.ts";
import { ownExecutable } from "./sandbox/own-executable.ts";
import { createStandby } from "./standby.ts";

type Env = Record<string, string | undefined>;

/** The coding agents that evald knows, then the agents of EVALD_AGENTS. Throws ConfigError. */
export function listPresets(env: Env): Preset[] {
  const customPresets = readAgentEntries(env).flatMap((entry) => toPresets(entry));
  const duplicate = customPresets.find(({ id }) => reservedIds.has(id));
  if (duplicate) throw new ConfigError(`Invalid EVALD_AGENTS: the id ${duplicate.id} is used by a built-in agent.`);
  return [...presets, ...customPresets];
}

const readAgentEntries = ({ EVALD_AGENTS: value = "" }: Env) =>
  parseSetting({ name: "EVALD_AGENTS", parse: parseAgentEntries, isSecret: false }, value);

/** IDs of built-in agents. */
export const reservedIds = new Set(["explorer", "llm", ...presets.map(({ id }) => id)]);

/** All agents of this executable by ID, running in this process. Coding agents are searched for on the PATH of `env`. */
export const inProcessAgents = (env: Env): Record<string, Agent> => ({
  explorer: lazyAgent({ id: "explorer", version, model: null, kind: "rules", lacks: optionalParts }, async () => {
    const { createExplorer } = await import("./explorer/explorer.ts");
    return createExplorer({ version });
  }),
  llm: lazyAgent({ id: "llm", version, model: null, kind: "model" }, async () => {
    const { createModelAgent } = await import("./llm/llm.ts");
    return createModelAgent({ version });
  }),
  ...Object.fromEntries(
    listPresets(env).map((preset) => [preset.id, createCodingAgent(preset, { path: env.PATH ?? "" })]),
  ),
});

/** The part of this executable's environment that its processes get: the program path and the operator's trusted certificates. */
export const passedEnvOf = (env: Env): Record<string, string> =>
  Object.fromEntries(
    ["PATH", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"].flatMap((name) =>
      env[name] === undefined ? [] : [[name, env[name]]],
    ),
  );

export type AgentStandby = ReturnType<typeof createAgentStandby>;

/** Opens what runs need before they start: the socket of the network proxy, which all runs share, and the folders of one run. */
type RunFiles = { openSocket: () => Promise<string>; openFolders: () => Promise<string[]> };

/**
 * `programs`: the programs that the process starts in further sandboxes; null if it starts none. `executable`: the state of this executable's file.
 */
type ProcessNeeds = ProcessAccess & { programs: ProgramFiles | null; executable: string[] };

const findExecutable = () => stateOf([ownExecutable()]);

/** For this many concurrent runs, one process is kept waiting. */
const runsPerStandby = 3;

/** Starts the processes of agents, in sandboxes where possible. `env`: the service's environment, from which the processes get what they need. */
export function createAgentStandby(env: Env) {
  const passedEnv = {
    ...passedEnvOf(env),
    // The content, not the path: the processes have another working directory and don't see the data directory.
    ...(env.EVALD_AGENTS && { EVALD_AGENTS: JSON.stringify(readAgentEntries(env)) }),
  };
  const createCommandFinder = (kind: "rules" | "model") => {
    const findProblem = once(
      () => testAgentSandbox(kind, passedEnv),
      // A problem may be solved while the service runs, so it is looked for again.
      (problem) => problem === null,
    );
    return async ({ programs, sockets, folders }: ProcessNeeds) => {
      const access = { sockets, folders };
      const sandboxCommand = (await findProblem()) === null ? agentCommand(passedEnv, programs, access) : null;
      return sandboxCommand ?? { argv: ownCommand("__agent"), group: null, status: null };
    };
  };
  // Looked up each time: agents are installed and updated while the service runs.
  const listPrograms = () => programFilesOf(listPresets(env), env.PATH ?? "");
  const standbys = {
    rules: createStandby(createCommandFinder("rules"), passedEnv, "rules"),
    model: createStandby(createCommandFinder("model"), passedEnv, "model"),
  };
  return {
    take: (kind: "rules" | "model", access: ProcessAccess) => {
      const programs = kind === "rules" ? null : listPrograms();
      return standbys[kind].take({ ...access, programs, executable: findExecutable() });
    },
    /** Keeps processes waiting for the next runs. `concurrency`: how many runs can be in progress at once. */
    start({ openSocket, openFolders }: RunFiles, concurrency: number) {
      const size = Math.max(1, Math.floor(concurrency / runsPerStandby));
      // Every run without a model needs the same.
      standbys.rules.start(size, async () => {
        const sockets = [await openSocket()];
        return { sockets, folders: [], programs: null, executable: findExecutable() };
      });
      // The last run shows whether runs with a model have a workspace, and which sockets they need. Each run has folders of its own.
      standbys.model.start(size, async (lastNeeds) => {
        if (!lastNeeds) return null;
        return {
          ...lastNeeds,
          folders: lastNeeds.folders.length > 0 ? await openFolders() : [],
          programs: listPrograms(),
          executable: findExecutable(),
        };
      });
    },
    async stop() {
      await Promise.all([standbys.rules.stop(), standbys.model.stop()]);
    },
  };
}

/** The same agents, each run in its own process. */
export const createChildAgents = (env: Env, { take }: AgentStandby): Record<string, Agent> =>
  Object.fromEntries(
    Object.entries(inProcessAgents(env)).map(([id, agent]) => [
      id,
      createChildAgent(agent, { startAgentProcess: (access) => take(agent.describe().kind, access) }),
    ]),
  );

/**
 * Loads the code of agents with or without a model, in a process that waits for an order. The rehearsal runs beside it, so an order that arrives
 * early doesn't wait for it.
 */
export async function loadAgents(kind: "rules" | "model"): Promise<void> {
  if (kind === "rules") return void (await import("./explorer/explorer.ts"));
  const [{ rehearseStart }] = await Promise.all([
    import("./coding/rehearsal.ts"),
    import("./coding/session.ts"),
    import("./llm/llm.ts"),
  ]);
  // If something doesn't work here, a run that needs it reports why.
  rehearseStart().catch(() => {});
}

/** An agent whose code is loaded when it runs. The service itself only needs its description. */
function lazyAgent(description: ReturnType<Agent["describe"]>, load: () => Promise<Agent>): Agent {
  return {
    describe: () => description,
    preflight: () => [],
    async *run(task, context) {
      yield* (await load()).run(task, context);
    },
  };
}
