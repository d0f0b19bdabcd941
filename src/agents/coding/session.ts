import { settlesWithin } from "../../deadline.ts";
import { type AgentContext, type AgentEvent, AgentFailure, type Means, runInfrastructureStep } from "../agent.ts";
import { createStartReporter, startCpuMeter, toShortage } from "../cpu-meter.ts";
import type { Fields } from "../fields.ts";
import { checkGoal, decideEnding, type Ending } from "../goal-checks.ts";
import { tailOf } from "../lines.ts";
import { toPrompt } from "../llm/instructions.ts";
import { createReader } from "../reader.ts";
import { bridgePorts } from "../sandbox/bridge.ts";
import { diskFull } from "../sandbox/command.ts";
import { runSandboxed, type SandboxProcess } from "../sandbox/sandbox.ts";
import type { Task } from "../task.ts";
import { reportWorkspaceDiff, setUpWorkspace } from "../workspace-setup.ts";
import { applyOptions } from "./agent-options.ts";
import { type ProgramResult, readOutput } from "./agent-output.ts";
import { createContextDetector } from "./context-detector.ts";
import { argsAndEnvOf, mcpPrefixesOf, presetFilesOf } from "./mcp-servers.ts";
import { fillAsText, isTried, type Preset, type TemplateValues, taskChannelOf } from "./preset.ts";
import { findProgram, type InstalledProgram, programBinFolder } from "./program.ts";
import { type ModelRecord, startRecord, wasCut } from "./record.ts";
import { report, reportModelCalls, reportUnreadable, type SessionReporter, startReporter } from "./session-reporter.ts";

const home = "/workspace/.home";
const maxProcesses = 1024;
const stderrChars = 4096;
/** Time in which an agent reports a call that its model has made. */
const callReportMs = 500;

/** Path of the file with the task in the agent's home. */
const promptFile = ".evald/prompt.md";
/** The longest text that Linux passes in one argument or variable. */
const maxArgumentBytes = 128 * 1024 - 1;

/** Writes the files of a preset, and stdin to the file `$1` unless that is empty, as the agent's own user; then becomes the agent. */
const launchScript = `mkdir -p "$HOME"
if [ -n "$1" ]; then mkdir -p "$HOME/$(dirname "$1")"; cat >"$HOME/$1"; fi; shift
while [ "$1" != -- ]; do mkdir -p "$HOME/$(dirname "$1")"; printf %s "$2" >"$HOME/$1"; shift 2; done; shift; exec "$@"`;

/** One session of a coding agent: reports its events and ends with `end`. Throws an AgentFailure. `path`: where its program is looked for. */
export async function runSession(
  basePreset: Preset,
  path: string,
  version: string,
  task: Task,
  context: AgentContext,
  send: (event: AgentEvent) => void,
): Promise<void> {
  const { means, signal } = context;
  if (!means) throw new AgentFailure("infrastructure", "the agent was started without a model");
  const { sandbox, model } = means;
  const preset = applyOptions(basePreset, task.agentOptions);
  if ("missing" in sandbox)
    throw new AgentFailure(
      "infrastructure",
      `${preset.name} only runs in a sandbox, and there is none: ${sandbox.missing}`,
    );
  const program = findProgram(preset, path);
  if ("missing" in program) throw new AgentFailure("infrastructure", `${preset.name}: ${program.missing}`);
  const values = toTemplateValues(preset, model, task);
  send(toStartedEvent(preset, version, program, task, means));
  let ids = 0;
  const session = { task, context, nextId: () => `check${++ids}`, report: send };
  const prepared = await setUpWorkspace(session, sandbox, preset);
  await checkGoal(session, "before");

  const setup = task.workspace ?? {};
  const mcpPrefixes = mcpPrefixesOf(preset, setup.mcpServers ?? {});
  const detectContext = prepared ? createContextDetector(setup, prepared.skills, mcpPrefixes, send) : () => {};
  using meter = startCpuMeter();
  const reportStart = createStartReporter({ meter, context, report: send });
  const reporter = startReporter(preset, mcpPrefixes, (event) => {
    reportStart();
    send(event);
  });
  const onRequest = (body: Fields) => {
    reportStart();
    detectContext(body);
  };
  const record = startRecord(model.socketPath, { ...reportModelCalls(reporter), onRequest });
  try {
    const findCurrentCallId = async () => {
      const { openCalls } = reporter;
      // A command may fetch a page before the agent has reported its call.
      if (findOnly(openCalls) === null && findOnly(record.pending.keys()) !== null && preset.stream !== "none")
        await settlesWithin(reporter.nextCall.promise, callReportMs);
      return findOnly(openCalls) ?? findOnly(record.pending.keys());
    };
    const { openRelay } = await import("../relay/relay.ts");
    await using relay = await runInfrastructureStep("the relay could not be opened", () =>
      openRelay({
        ...sandbox,
        task,
        reader: createReader(task),
        report: send,
        now: context.now,
        findCurrentCallId,
      }),
    );
    const run = toSandboxRun(preset, program, values, task);
    const agentProcess = await runInfrastructureStep(`${preset.name} could not be started`, () =>
      runSandboxed({
        ...run,
        workspace: sandbox.workspace,
        sockets: { gateway: record.socketPath, egress: relay.toProxy() },
        limits: { ...task.limits, processes: maxProcesses },
        signal,
      }),
    );
    const { ending, claimedUsd } = await endUnlessReplaced(preset, path, program, async () => {
      const result = await readUntilEnd(preset, agentProcess, task, record, reporter);
      signal.throwIfAborted();
      reportUnreadable(reporter);
      if (result.wasDiskFull) throw new AgentFailure("infrastructure", diskFull, { retryable: true });
      return { ...result, ending: toEnding(preset, result, record, reporter.callCount) };
    });
    if (claimedUsd !== null) send({ type: "milestone", name: "agent_usage", detail: { costUsd: claimedUsd } });
    const shortage = toShortage(meter.read());
    if (shortage) send(shortage);
    await reportWorkspaceDiff(session, sandbox);
    send({ type: "end", ...(await decideEnding(ending, session)) });
  } finally {
    await record.close();
  }
}

/** The only item; null if there are none or several. */
function findOnly(items: Iterable<string>): string | null {
  const [first, second] = items;
  return second === undefined ? (first ?? null) : null;
}

/** The values for the templates of a preset. Throws an AgentFailure if the agent can't use the model, or can't be passed the task. */
function toTemplateValues(
  preset: Preset,
  { id, provider, name: model, token }: Means["model"],
  task: Task,
): TemplateValues {
  const { name, providers } = preset;
  const providerValues = providers[provider];
  if (!providerValues) {
    const supported = Object.keys(providers).join(" or ");
    throw new AgentFailure("infrastructure", `${name} supports only models of ${supported}, not ${id}`);
  }
  const prompt = toPrompt(task);
  if (taskChannelOf(preset) === "argument" && Buffer.byteLength(prompt) > maxArgumentBytes)
    throw new AgentFailure(
      "infrastructure",
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
  preset: Preset,
  version: string,
  program: InstalledProgram,
  task: Task,
  { model }: Means,
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
    isTried: isTried(preset, program.version),
  };
  return { type: "milestone", name: "started", detail };
}

/** The command that starts the agent, with its environment and program. */
function toSandboxRun(
  preset: Preset,
  { argv, binds }: InstalledProgram,
  values: TemplateValues,
  { workspace = {} }: Task,
) {
  const { mcpServers = {}, env: variables = {} } = workspace;
  const files = Object.entries(presetFilesOf(preset, values, mcpServers, Object.keys(variables))).flat();
  const isInFile = taskChannelOf(preset) === "file";
  const settings = argsAndEnvOf(preset, mcpServers);
  const args = settings.args.map((arg) => fillAsText(arg, values));
  const env = Object.fromEntries(
    Object.entries(settings.env).map(([name, value]) => [name, fillAsText(value, values)]),
  );
  return {
    argv: ["sh", "-c", launchScript, "sh", isInFile ? promptFile : "", ...files, "--", ...argv, ...args],
    env: { PATH: `${programBinFolder}:/usr/local/bin:/usr/bin:/bin`, HOME: home, TERM: "dumb", ...variables, ...env },
    binds,
  };
}

/** Sends the prompt to the agent and reads its output until it ends or exits. Then kills everything it started. */
async function readUntilEnd(
  preset: Preset,
  agentProcess: SandboxProcess,
  task: Task,
  record: ModelRecord,
  reporter: SessionReporter,
): Promise<ProgramResult> {
  const stderr = tailOf(agentProcess.stderr, stderrChars);
  try {
    const result = await readOutput(preset, agentProcess, task, reporter, record);
    if (result.hasReportedEnd) agentProcess.kill();
    const { exitCode, limit, hasRun, wasDiskFull } = await agentProcess.ended;
    const { lastAnswer, lastFailure } = record;
    const hasStarted =
      hasRun || result.hasReportedEnd || reporter.callCount > 0 || lastAnswer !== null || lastFailure !== null;
    if (!hasStarted && !limit)
      throw new AgentFailure("infrastructure", `${preset.name} could not be started: ${stderr.text().slice(-300)}`, {
        retryable: true,
      });
    if (limit) report(reporter, { type: "limit", ...limit });
    return { ...result, exitCode, limit, wasDiskFull, stderr: stderr.text() };
  } finally {
    agentProcess.kill();
    await agentProcess.ended;
    await stderr.ended;
  }
}

/** Follows an agent to its end. If its program was replaced or removed meanwhile, its failure is that of the machine. */
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
    throw new AgentFailure("infrastructure", detail, { retryable: true });
  }
}

/** What the end of the process means for the session. Throws an AgentFailure if there is nothing to grade. */
function toEnding({ name }: Preset, result: ProgramResult, record: ModelRecord, calls: number): Ending {
  const { hasReportedEnd, text, error, exitCode, limit, stderr } = result;
  const { lastFailure } = record;
  if (record.isOverBudget) {
    const reason = lastFailure?.message ?? "it used up its model budget";
    if (calls === 0) throw new AgentFailure("budget", `${reason} before ${name} called a tool`);
    return { outcome: "goal_not_met", reason: `The run reached a limit: ${reason}.` };
  }
  if (limit && !hasReportedEnd) {
    const description = `${name} reached its limit of ${limit.value} ${limit.unit} (${limit.limit}) and was stopped`;
    throw new AgentFailure("budget", description);
  }
  if (error) {
    const status = lastFailure?.status ?? error.status;
    const cause =
      status === 401 || status === 403 ? "credentials" : status !== null ? "infrastructure" : "agent_crashed";
    const retryable = status !== null && (status === 429 || status >= 500);
    const reason = (lastFailure?.message ?? error.message).slice(0, 500);
    throw new AgentFailure(cause, `${name} stopped with an error: ${reason}`, { retryable });
  }
  if ((hasReportedEnd || exitCode === 0) && wasCut(record))
    throw new AgentFailure("infrastructure", `the last answer of the model of ${name} was cut or broken`, {
      retryable: true,
    });
  const answer = (text ?? "").trim() || record.lastAnswer;
  if (hasReportedEnd || exitCode === 0) {
    if (answer !== null) return { outcome: "not_judged", reason: answer.slice(0, 2000) };
    if (calls > 0 && hasReportedEnd) return { outcome: "not_judged", reason: `${name} ended without an answer.` };
    const ending = hasReportedEnd ? "ended" : `exited with code ${exitCode}`;
    throw new AgentFailure(
      "agent_crashed",
      `${name} ${ending} without an answer${stderr && `; stderr: ${stderr.slice(-500)}`}`,
    );
  }
  const exit = exitCode > 128 ? `was killed by signal ${exitCode - 128}` : `exited with code ${exitCode}`;
  throw new AgentFailure(
    "agent_crashed",
    `${name} ${exit} in mid-session${stderr && `; stderr: ${stderr.slice(-500)}`}`,
  );
}
