import { type AgentContext, type AgentEvent, AgentFailure, type Means, type Workspace } from "../agent.ts";
import { checkGoal, decideEnding, type Ending } from "../goal-checks.ts";
import { createReader } from "../reader.ts";
import { bridgePorts } from "../sandbox/bridge.ts";
import { runSandboxed, type Sandboxed, type SandboxProxy } from "../sandbox/sandbox.ts";
import type { Task } from "../task.ts";
import { setUpWorkspace, tellWorkspaceDiff } from "../workspace-setup.ts";
import { type Outcome, readOutput } from "./agent-output.ts";
import { tailOf } from "./lines.ts";
import { createMcpNames, filesOf, settingsOf } from "./mcp-servers.ts";
import { createOffered } from "./offered.ts";
import { isTried, type Preset, toText, type Values } from "./preset.ts";
import { findProgram, type Installed, insideBin } from "./program.ts";
import { type ModelRecord, startRecord } from "./record.ts";
import { createSessionReporter, type SessionReporter } from "./session-reporter.ts";

const home = "/workspace/.home";
const processes = 1024;
const stderrChars = 4096;
/** Time in which an agent reports a call that its model has made. */
const callMs = 500;

type Subject = { preset: Preset; path: string; version: string };

/** Writes the files of a preset as the agent's own user, then becomes the agent. */
const launcher =
  'mkdir -p "$HOME"; while [ "$1" != -- ]; do mkdir -p "$HOME/$(dirname "$1")"; printf %s "$2" >"$HOME/$1"; shift 2; done; shift; exec "$@"';

/** One session of a coding agent: reports its events and ends with `end`. Throws an AgentFailure. */
export async function runSession(
  { preset, path, version }: Subject,
  task: Task,
  context: AgentContext,
  tell: (event: AgentEvent) => void,
): Promise<void> {
  const { means, signal } = context;
  if (!means) throw new AgentFailure("infrastructure", "the agent was started without a model");
  const { sandbox, model } = means;
  if ("missing" in sandbox)
    throw new AgentFailure(
      "infrastructure",
      `${preset.name} only runs in a sandbox, and there is none: ${sandbox.missing}`,
    );
  const installed = findProgram(preset, path);
  if ("missing" in installed) throw new AgentFailure("infrastructure", `${preset.name}: ${installed.missing}`);
  const providerValues = preset.providers[model.provider];
  if (!providerValues) {
    const supported = Object.keys(preset.providers).join(" or ");
    throw new AgentFailure("infrastructure", `${preset.name} supports only models of ${supported}, not ${model.id}`);
  }
  tell(started(preset, version, installed, task, means));
  let ids = 0;
  const checking = { task, context, nextId: () => `check${++ids}`, tell };
  const setting = { task, sandbox, signal, tell };
  const prepared = await setUpWorkspace(setting, preset);
  await checkGoal(checking, "before");

  const { mcpServers = {}, instructions } = task.workspace ?? {};
  const mcpNames = createMcpNames(preset, mcpServers);
  const { skills = [] } = prepared ?? {};
  const onRequest = prepared ? createOffered({ instructions, skills, servers: mcpServers, mcpNames }, tell) : () => {};
  const reporter = createSessionReporter(preset, mcpNames, tell);
  const record = startRecord(model.socketPath, { ...reporter.ofModel, onRequest });
  try {
    const openCall = async () => {
      // A command may fetch a page before the agent has reported its call.
      if (reporter.openCall() === null && record.openCall() !== null && preset.stream !== "none")
        await reporter.nextCall(callMs);
      return reporter.openCall() ?? record.openCall();
    };
    const { openRelay } = await import("../relay/relay.ts");
    await using relay = await openRelay({
      ...sandbox,
      task,
      reader: createReader(task),
      tell,
      now: context.now,
      openCall,
    });
    const gateway = `http://127.0.0.1:${bridgePorts.gateway}`;
    const values = {
      ...providerValues,
      gateway,
      token: model.token,
      model: model.name,
      provider: model.provider,
      home,
    };
    const box = open(preset, installed, values, {
      task,
      workspace: sandbox.workspace,
      proxy: relay.toProxy(),
      record,
      signal,
    });
    const outcome = await follow(preset, box, { task, record, reporter });
    signal.throwIfAborted();
    reporter.close();
    const ending = toEnding(preset, outcome, record, reporter.callCount());
    if (outcome.claimedUsd !== null)
      tell({ type: "milestone", name: "agent_usage", detail: { costUsd: outcome.claimedUsd } });
    await tellWorkspaceDiff(setting);
    tell({ type: "end", ...(await decideEnding(ending, checking)) });
  } finally {
    await record.close();
  }
}

function started(preset: Preset, version: string, installed: Installed, task: Task, { model }: Means): AgentEvent {
  const goal = (task.endGoal ?? task.text).slice(0, 2000);
  const own = { preset: preset.revision, isTried: isTried(preset, installed.version) };
  const about = { agent: preset.id, version, kind: "model" as const, model: model.id, goal, starts: task.startUrls };
  return { type: "milestone", name: "started", detail: { ...about, product: task.productUrl, ...own } };
}

type Terms = { task: Task; workspace: Workspace; proxy: SandboxProxy; record: ModelRecord; signal: AbortSignal };

function open(preset: Preset, { argv, binds }: Installed, values: Values, terms: Terms): Sandboxed {
  const { task, workspace, proxy, record, signal } = terms;
  const { mcpServers = {}, env: variables = {} } = task.workspace ?? {};
  const files = Object.entries(filesOf(preset, values, mcpServers, Object.keys(variables))).flat();
  const settings = settingsOf(preset, mcpServers);
  const args = settings.args.map((arg) => toText(arg, values));
  const env = Object.fromEntries(Object.entries(settings.env).map(([name, value]) => [name, toText(value, values)]));
  try {
    return runSandboxed({
      argv: ["sh", "-c", launcher, "sh", ...files, "--", ...argv, ...args],
      workspace,
      env: {
        PATH: `${insideBin}:/usr/local/bin:/usr/bin:/bin`,
        HOME: home,
        TERM: "dumb",
        ...variables,
        ...env,
      },
      binds,
      sockets: { gateway: record.socketPath, egress: proxy },
      limits: { memoryBytes: task.limits.memoryBytes, workspaceBytes: task.limits.workspaceBytes, processes },
      signal,
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new AgentFailure("infrastructure", `${preset.name} could not be started: ${reason}`, { retryable: true });
  }
}

type Following = { task: Task; record: ModelRecord; reporter: SessionReporter };

/** Sends the prompt to the agent and reads its output until it ends or exits. Then kills everything it started. */
async function follow(preset: Preset, box: Sandboxed, { task, record, reporter }: Following): Promise<Outcome> {
  const stderr = tailOf(box.stderr, stderrChars);
  try {
    const result = await readOutput(preset.stream, box, task, reporter, record);
    if (result.isEnded) box.kill();
    const { exitCode, limit } = await box.ended;
    if (limit) reporter.report({ type: "limit", ...limit });
    return { ...result, exitCode, limit, stderr: stderr.text() };
  } finally {
    box.kill();
    await box.ended;
    await stderr.ended;
  }
}

/** What the end of the process means for the session. Throws an AgentFailure if there is nothing to grade. */
function toEnding({ name }: Preset, outcome: Outcome, record: ModelRecord, calls: number): Ending {
  const { isEnded, text, error, exitCode, limit, stderr } = outcome;
  const refusal = record.refusal();
  if (record.isOverBudget()) {
    const why = refusal?.message ?? "it used up its model budget";
    if (calls === 0) throw new AgentFailure("budget", `${why} before ${name} called a tool`);
    return { outcome: "goal_not_met", reason: `The run reached a limit: ${why}.` };
  }
  if (limit && !isEnded) {
    const what = `${name} reached its limit of ${limit.value} ${limit.unit} (${limit.limit}) and was stopped`;
    throw new AgentFailure("budget", what);
  }
  if (error) {
    const status = refusal?.status ?? error.status;
    const cause =
      status === 401 || status === 403 ? "credentials" : status !== null ? "infrastructure" : "agent_crashed";
    const retryable = status !== null && (status === 429 || status >= 500);
    const why = (refusal?.message ?? error.message).slice(0, 500);
    throw new AgentFailure(cause, `${name} stopped with an error: ${why}`, { retryable });
  }
  const answer = (text ?? "").trim() || record.lastAnswer();
  if (isEnded || exitCode === 0) {
    if (answer !== null) return { outcome: "not_judged", reason: answer.slice(0, 2000) };
    if (calls > 0 && isEnded) return { outcome: "not_judged", reason: `${name} ended without an answer.` };
    const where = isEnded ? "ended" : `exited with code ${exitCode}`;
    throw new AgentFailure(
      "agent_crashed",
      `${name} ${where} without an answer${stderr && `; stderr: ${stderr.slice(-500)}`}`,
    );
  }
  const how = exitCode > 128 ? `was killed by signal ${exitCode - 128}` : `exited with code ${exitCode}`;
  throw new AgentFailure(
    "agent_crashed",
    `${name} ${how} in mid-session${stderr && `; stderr: ${stderr.slice(-500)}`}`,
  );
}
