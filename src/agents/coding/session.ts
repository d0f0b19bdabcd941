import { settlesWithin } from "../../deadline.ts";
import { lazy } from "../../once.ts";
import {
  type AgentContext,
  type AgentEvent,
  AgentFailure,
  type AgentResources,
  runInfrastructureStep,
  type SandboxResources,
  toAgentFailure,
} from "../agent.ts";
import { createStartReporter, startCpuMeter, toShortage } from "../cpu-meter.ts";
import type { Fields } from "../fields.ts";
import { checkGoal, decideEnding } from "../goal-checks.ts";
import { toPrompt } from "../llm/instructions.ts";
import { createReader } from "../reader.ts";
import type { Relay } from "../relay/relay.ts";
import { bridgePorts } from "../sandbox/bridge.ts";
import { diskFull } from "../sandbox/command.ts";
import { runSandboxed } from "../sandbox/sandbox.ts";
import type { Task } from "../task.ts";
import { openWorkspaceDiff, reportWorkspaceDiff, setUpWorkspace } from "../workspace-setup.ts";
import type { RunningAgent } from "./acp.ts";
import type { ClientCommand } from "./acp-client.ts";
import { applyOptions } from "./agent-options.ts";
import { type ProgramResult, readOutput } from "./agent-output.ts";
import { createContextDetector } from "./context-detector.ts";
import { keepOutput } from "./kept-output.ts";
import { argsAndEnvOf, mcpPrefixesOf, presetFilesOf } from "./mcp-servers.ts";
import { fillAsText, isTested, type Preset, type TemplateValues, taskChannelOf } from "./preset.ts";
import { recordPrinted } from "./printed.ts";
import { findProgram, type InstalledProgram, programBinFolder } from "./program.ts";
import { type ModelRecord, startRecord } from "./record.ts";
import { toEnding, type Wait } from "./session-ending.ts";
import { report, reportModelCalls, reportUnreadable, type SessionReporter, startReporter } from "./session-reporter.ts";
import { watchSilence } from "./silence.ts";
import { unfinishedResult } from "./streams/stream.ts";

const home = "/workspace/.home";
const maxProcesses = 1024;
/** Time in which an agent reports a call that its model has made. */
const callReportMs = 500;

/** Path of the file with the task in the agent's home. */
const promptFile = ".evald/prompt.md";
/** The longest text that Linux passes in one argument or variable. */
const maxArgumentBytes = 128 * 1024 - 1;

const systemPath = "/usr/local/bin:/usr/bin:/bin";
/** Path of the login file in the sandbox of the agent. */
const loginInSandbox = "/opt/agent/login";

/**
 * Prepares the home of the agent as the agent's own user, then becomes the agent. Its arguments come in this order: the file that stdin is written
 * to; the file of the login, and `copy` or `link`; each file of the preset, followed by its text; `--`; and the command. An empty name means that
 * there is no such file. A link keeps the login out of the workspace, which other sandboxes see.
 */
const launchScript = `
make_folder() { [ -d "$HOME/$1" ] || mkdir -p "$HOME/$1"; }
make_folder_of() {
  case $1 in
    */*) make_folder "\${1%/*}" ;;
    *) make_folder "" ;;
  esac
}
if [ -n "$1" ]; then
  make_folder_of "$1"
  cat >"$HOME/$1"
fi
if [ -n "$2" ]; then
  make_folder_of "$2"
  case $3 in
    copy) (umask 077; cat ${loginInSandbox} >"$HOME/$2") ;;
    link) ln -s ${loginInSandbox} "$HOME/$2" ;;
  esac
fi
shift 3
while [ "$1" != -- ]; do
  make_folder_of "$1"
  printf %s "$2" >"$HOME/$1"
  shift 2
done
shift
make_folder ""
exec "$@"`;

/**
 * A coding agent that is installed on this machine. `path`: where its program is searched for. `version`: the versions of the program and of the
 * preset.
 */
type CodingAgent = { preset: Preset; path: string; version: string };

/** One session of a coding agent: reports its events and ends with `end`. Throws an AgentFailure. */
export async function runSession(
  agent: CodingAgent,
  task: Task,
  context: AgentContext,
  send: (event: AgentEvent) => void,
): Promise<void> {
  const preset = applyOptions(agent.preset, task.agentOptions);
  const { resources, sandbox, program } = requireProgram(preset, agent.path, context);
  const { model } = resources;
  const values = toTemplateValues(preset, model, task);
  send(toStartedEvent({ ...agent, preset }, program, task, resources));
  let lastId = 0;
  const session = { task, context, nextId: () => `check${++lastId}`, report: send };
  const prepared = await setUpWorkspace(session, sandbox, preset);
  await checkGoal(session, "before");

  const setup = task.workspace ?? {};
  const mcpPrefixes = mcpPrefixesOf(preset, setup.mcpServers ?? {});
  const detectContext = prepared ? createContextDetector(setup, prepared.skills, mcpPrefixes, send) : () => {};
  using meter = startCpuMeter();
  const reportStart = createStartReporter({ meter, context, report: send });
  const mcpServers = Object.keys(setup.mcpServers ?? {});
  const output = keepOutput(
    { evald: "agent-output", agent: preset.id, version: agent.version, stream: preset.stream, mcpServers },
    send,
  );
  const reporter = startReporter(preset, mcpPrefixes, output, (event) => {
    reportStart();
    send(event);
  });
  const onRequest = (body: Fields) => {
    reportStart();
    detectContext(body);
  };
  const record = startRecord(model.socketPath, { ...reportModelCalls(reporter), onRequest });
  let cancelDiff = () => {};
  const openDiff = lazy(() => {
    const diff = openWorkspaceDiff(session, sandbox);
    cancelDiff = diff.cancel;
    return diff;
  });
  try {
    await using relay = await openSessionRelay({ sandbox, task, context, reporter, record, send });
    const runningAgent = await startAgent({ preset, program, values, task, context, sandbox, record, relay });
    const { ending, claimedUsd } = await endUnlessReplaced(preset, agent.path, program, async () => {
      const { result, wait } = await readUntilEnd(runningAgent, task, record, reporter, send, openDiff);
      context.signal.throwIfAborted();
      // Nothing is read after the end.
      output.close();
      reportUnreadable(reporter);
      if (result.wasDiskFull) throw toAgentFailure("disk_full", diskFull);
      return { ending: toEnding({ reporter, record, result, wait }), claimedUsd: result.claimedUsd };
    });
    if (claimedUsd !== null) send({ type: "milestone", name: "agent_usage", detail: { costUsd: claimedUsd } });
    const shortage = toShortage(meter.read());
    if (shortage) send(shortage);
    await reportWorkspaceDiff(session, openDiff());
    send({ type: "end", ...(await decideEnding(ending, session)) });
  } finally {
    cancelDiff();
    output.close();
    await record.close();
  }
}

/** What every session needs: a model, a sandbox and the program of its agent. Throws an AgentFailure if one of them is missing. */
function requireProgram(preset: Preset, path: string, { resources }: AgentContext) {
  if (!resources) throw toAgentFailure("unusable", "the agent was started without a model");
  const { sandbox } = resources;
  if ("missing" in sandbox)
    throw toAgentFailure("unusable", `${preset.name} only runs in a sandbox, and there is none: ${sandbox.missing}`, {
      code: "sandbox_unavailable",
    });
  const program = findProgram(preset, path);
  if ("missing" in program)
    throw toAgentFailure("unusable", `${preset.name}: ${program.missing}`, {
      code: "agent_not_installed",
      ...(preset.install !== null && { subject: preset.install }),
    });
  return { resources, sandbox, program };
}

type RelayContext = {
  sandbox: SandboxResources;
  task: Task;
  context: AgentContext;
  reporter: SessionReporter;
  record: ModelRecord;
  send: (event: AgentEvent) => void;
};

/** Opens the network of a session's sandboxes. */
async function openSessionRelay({ sandbox, task, context, reporter, record, send }: RelayContext): Promise<Relay> {
  const { openRelay } = await import("../relay/relay.ts");
  return runInfrastructureStep("workspace_failed", "the relay could not be opened", () =>
    openRelay({
      ...sandbox,
      task,
      reader: createReader(task),
      report: send,
      now: context.now,
      findCurrentCallId: () => waitForCurrentCallId(reporter, record),
    }),
  );
}

type StartContext = {
  preset: Preset;
  program: InstalledProgram;
  values: TemplateValues;
  task: Task;
  context: AgentContext;
  sandbox: SandboxResources;
  record: ModelRecord;
  relay: Relay;
};

/** Starts the agent in its sandbox. Commands that it asks evald to start get sandboxes of their own, without access to the model. */
async function startAgent(start: StartContext): Promise<RunningAgent> {
  const { preset, program, values, task, context, sandbox, record, relay } = start;
  const sandboxRun = {
    workspace: sandbox.workspace,
    limits: { ...task.limits, processes: maxProcesses },
    signal: context.signal,
  };
  const { command, variables } = toSandboxCommand(preset, program, values, task, sandbox.login);
  const agentProcess = await runInfrastructureStep("agent_not_started", `${preset.name} could not be started`, () =>
    runSandboxed({ ...sandboxRun, ...command, sockets: { gateway: record.socketPath, egress: relay.toProxy() } }),
  );
  const startCommand = ({ argv, env }: ClientCommand) =>
    runSandboxed({ ...sandboxRun, argv, env: { ...variables, ...env }, sockets: { egress: relay.toProxy() } });
  return { process: agentProcess, startCommand };
}

/** ID of the only call in progress, as reported by the agent or else by its model; null if there is no such call, or more than one. */
async function waitForCurrentCallId(reporter: SessionReporter, record: ModelRecord): Promise<string | null> {
  const { openCalls, preset } = reporter;
  const isUnreported = findOnly(openCalls) === null && findOnly(record.pending.keys()) !== null;
  // A command may fetch a page before the agent has reported its call.
  if (isUnreported && preset.stream !== "none") await settlesWithin(reporter.nextCall.promise, callReportMs);
  return findOnly(openCalls) ?? findOnly(record.pending.keys());
}

/** The only item; null if there is none, or more than one. */
function findOnly(items: Iterable<string>): string | null {
  const [first, second] = items;
  return second === undefined ? (first ?? null) : null;
}

/** The values for the templates of a preset. Throws an AgentFailure if the agent can't use the model, or can't be passed the task. */
function toTemplateValues(
  preset: Preset,
  { id, provider, name: model, token }: AgentResources["model"],
  task: Task,
): TemplateValues {
  const { name, providers } = preset;
  const providerValues = providers[provider];
  if (!providerValues) {
    const supported = Object.keys(providers).join(" or ");
    throw toAgentFailure("unusable", `${name} supports only models of ${supported}, not ${id}`);
  }
  const prompt = toPrompt(task);
  if (taskChannelOf(preset) === "argument" && Buffer.byteLength(prompt) > maxArgumentBytes)
    throw toAgentFailure(
      "unusable",
      `the task is longer than the 128 KiB that ${name} can get as an argument; shorten it, or pass it with {promptFile}`,
    );
  const gateway = `http://127.0.0.1:${bridgePorts.gateway}`;
  return {
    ...providerValues,
    gateway,
    token,
    model,
    provider,
    home,
    prompt,
    promptFile: `${home}/${promptFile}`,
    systemPrompt: task.agentOptions?.systemPrompt ?? "",
  };
}

function toStartedEvent(
  { preset, version }: CodingAgent,
  program: InstalledProgram,
  task: Task,
  { model }: AgentResources,
): AgentEvent {
  const goal = (task.endGoal ?? task.text).slice(0, 2000);
  const detail = {
    agent: preset.id,
    version,
    kind: "model" as const,
    model: model.id,
    goal,
    starts: task.startUrls,
    product: task.productUrl,
    preset: preset.revision,
    isTested: isTested(preset, program.version),
  };
  return { type: "milestone", name: "started", detail };
}

/**
 * The command that starts the agent, with its environment and program. The commands that evald starts in the agent's name have variables of their
 * own, because the agent's may hold its token.
 */
function toSandboxCommand(
  preset: Preset,
  { argv, binds }: InstalledProgram,
  values: TemplateValues,
  { workspace: { mcpServers = {}, env: ownVariables = {} } = {} }: Task,
  login: string | null,
) {
  const files = Object.entries(presetFilesOf(preset, values, mcpServers, Object.keys(ownVariables))).flat();
  const stdinFile = taskChannelOf(preset) === "file" ? promptFile : "";
  const settings = argsAndEnvOf(preset, mcpServers);
  const args = settings.args.map((arg) => fillAsText(arg, values));
  const env = Object.fromEntries(
    Object.entries(settings.env).map(([name, value]) => [name, fillAsText(value, values)]),
  );
  const toVariables = (path: string) => ({ PATH: path, HOME: home, TERM: "dumb", ...ownVariables });
  const loginArguments = [preset.login?.file ?? "", preset.login?.copied ? "copy" : "link"];
  const command = {
    argv: ["sh", "-c", launchScript, "sh", stdinFile, ...loginArguments, ...files, "--", ...argv, ...args],
    env: { ...toVariables(`${programBinFolder}:${systemPath}`), ...env },
    binds: login === null ? binds : [...binds, { from: login, to: loginInSandbox }],
  };
  return { command, variables: toVariables(systemPath) };
}

/**
 * Sends the prompt to the agent and reads its output until it ends, exits or waits. Then kills everything that it started, and calls `onEnd` without
 * waiting until all of that is gone.
 */
async function readUntilEnd(
  agent: RunningAgent,
  task: Task,
  record: ModelRecord,
  reporter: SessionReporter,
  send: (event: AgentEvent) => void,
  onEnd: () => void,
): Promise<{ result: ProgramResult; wait: Wait | null }> {
  const { process: agentProcess } = agent;
  const { preset, printed } = reporter;
  const output = recordPrinted(agentProcess, printed);
  const silence = watchSilence(reporter, record, task.limits.idleMs, send);
  try {
    const recordedAgent = { ...agent, process: { ...agentProcess, stdout: output.stdout } };
    const reading = readOutput(recordedAgent, task, reporter, record);
    const outcome = await Promise.race([reading, silence.waits]);
    const [result, wait] = typeof outcome === "string" ? [unfinishedResult, outcome] : [outcome, null];
    if (wait || result.hasReportedEnd) agentProcess.kill();
    onEnd();
    const { exitCode, limit, hasRun, wasDiskFull } = await agentProcess.ended;
    await Promise.all([output.stderr, reading]);
    const hasCalled = reporter.callCount > 0 || record.callCount > 0;
    const hasStarted = hasRun || hasCalled || wait !== null || result.hasReportedEnd;
    if (!hasStarted && !limit)
      throw toAgentFailure("not_started", `${preset.name} could not be started: ${printed.stderr.trim().slice(-300)}`);
    if (limit) report(reporter, { type: "limit", ...limit });
    return { result: { ...result, exitCode, limit, wasDiskFull }, wait };
  } finally {
    silence.stop();
    agentProcess.kill();
    await agentProcess.ended;
    await output.stderr;
  }
}

/** Follows an agent to its end. If its program was replaced or removed in the meantime, a failure counts as a failure of the machine. */
async function endUnlessReplaced<T>(
  preset: Preset,
  path: string,
  { state }: InstalledProgram,
  follow: () => Promise<T>,
): Promise<T> {
  try {
    return await follow();
  } catch (error) {
    const program = findProgram(preset, path);
    if (!(error instanceof AgentFailure) || ("state" in program && Bun.deepEquals(program.state, state))) throw error;
    const detail = `${preset.name} was upgraded or removed during the session: ${error.detail}`;
    throw toAgentFailure("replaced", detail);
  }
}
