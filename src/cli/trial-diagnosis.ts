import type { SessionEvent } from "../agents/agent.ts";
import { type Preset, taskChannelOf } from "../agents/coding/preset.ts";
import { finalAnswer, type TrialRequest, type TrialStep } from "../agents/coding/scripted-model.ts";
import { unreadableNote } from "../agents/coding/session-reporter.ts";
import type { ToolName } from "../config/agent-entry.ts";
import { count } from "../grading/text.ts";

/** Why the events of a trial don't show something. */
type Diagnosis =
  /** The agent never called its model through evald. `printed`: the text with which it ended; null: none. */
  | { kind: "no_model_call"; printed: string | null }
  /** The agent called paths that belong to no known protocol. */
  | { kind: "unknown_path"; paths: string[] }
  /** The requests of the agent did not contain the task. */
  | { kind: "no_task"; channel: ReturnType<typeof taskChannelOf> }
  /** The requests of the agent offered no tools. */
  | { kind: "no_tools" }
  /** The session ended before the step. */
  | { kind: "not_reached" }
  /** The model called the tool, but the agent's output doesn't show it. */
  | { kind: "unrecorded_call"; tool: string; stream: Preset["stream"] }
  /** evald doesn't know what the tools do. */
  | { kind: "unknown_tools"; tools: Record<string, ToolName> }
  | { kind: "no_result"; tool: string }
  | { kind: "failed_call"; tool: string; message: string }
  /** The output of a command that exits with 3 doesn't show the exit code, or shows it in an unknown way. */
  | { kind: "no_exit_code"; tool: string; output: string }
  | { kind: "no_page_request"; tool: string }
  /** The tool call ended, but no file was written. */
  | { kind: "no_file"; tool: string; output: string }
  | { kind: "other_answer"; text: string | null }
  | { kind: "unreadable_output"; text: string }
  /** Requests of the agent to other hosts were refused. */
  | { kind: "refused_hosts"; hosts: string[] }
  /** The agent asks for a login. */
  | { kind: "login"; text: string };

/** A step that an agent was asked to do. `detail` is null if its events don't show the step. Then `diagnosis` says why. */
export type Step = { name: string; detail: string | null; diagnosis: Diagnosis | null };

type ToolCall = Extract<SessionEvent, { type: "tool_call" }>;
type ToolResult = Extract<SessionEvent, { type: "tool_result" }>;
/** A tool call for a step, as the agent reported it. */
type RecordedCall = { call: ToolCall; result: ToolResult | null };

/** `host`: the host of the page. `failureReason`: why the session failed; null if it didn't fail. */
export type Trial = {
  events: SessionEvent[];
  requests: readonly TrialRequest[];
  preset: Preset;
  host: string;
  failureReason: string | null;
};

type ToolStep = Extract<TrialStep, "command" | "failing command" | "page" | "file">;
const toolSteps: Record<ToolStep, { mark: string; tool: ToolName }> = {
  command: { mark: "echo hello", tool: "run_command" },
  "failing command": { mark: "exit 3", tool: "run_command" },
  page: { mark: "/guide", tool: "fetch_page" },
  file: { mark: "hello.txt", tool: "write_file" },
};

/** Each step, with what the events of a trial show of it. */
export function findSteps(trial: Trial): Step[] {
  const usages = trial.events.filter((event) => event.type === "usage");
  const steps = (Object.keys(toolSteps) as ToolStep[]).map((step) => findToolStep(trial, step));
  const usage =
    usages.length > 0
      ? { detail: count(usages.length, "model call"), diagnosis: null }
      : { detail: null, diagnosis: noModelCall(trial) };
  return [...steps, findAnswer(trial), { name: "usage", ...usage }];
}

function findToolStep(trial: Trial, name: ToolStep): Step {
  const recorded = findCall(trial, toolSteps[name].mark);
  const diagnosis = diagnoseStep(trial, name, recorded);
  if (diagnosis !== null || recorded === null) return { name, detail: null, diagnosis };
  const { call, result } = recorded;
  const toolName = call.ownName ?? call.tool;
  if (name === "file") return { name, detail: toolName, diagnosis: null };
  if (name === "page") {
    const request = findPageRequest(trial);
    return { name, detail: `${request?.url}, status ${request?.status}`, diagnosis: null };
  }
  return { name, detail: `${toolName}, exit code ${result?.output.exitCode ?? "unknown"}`, diagnosis: null };
}

/** Why the events don't show a step; null if they do. */
function diagnoseStep(trial: Trial, step: ToolStep, recorded: RecordedCall | null): Diagnosis | null {
  const { requests, preset } = trial;
  const modelCall = requests.find(({ call }) => call?.step === step)?.call ?? null;
  if (recorded === null) {
    if (requests.length === 0) return noModelCall(trial);
    if (modelCall === null) return findObstacle(trial) ?? { kind: "not_reached" };
    return { kind: "unrecorded_call", tool: modelCall.tool, stream: preset.stream };
  }
  const { call, result } = recorded;
  const tool = call.ownName ?? call.tool;
  const unknownTools = findUnknownTools(trial);
  if (Object.hasOwn(unknownTools, call.tool))
    return { kind: "unknown_tools", tools: { ...preset.tools, ...unknownTools } };
  if (result === null) return { kind: "no_result", tool };
  const output = String(result.output.text ?? "");
  if (step === "failing command") return showsFailure(result) ? null : { kind: "no_exit_code", tool, output };
  if (result.ok === false)
    return { kind: "failed_call", tool, message: String(result.output.message ?? output).slice(0, 300) };
  if (step === "file" && !hasWritten(trial)) return { kind: "no_file", tool, output };
  return step === "page" && !findPageRequest(trial)?.status ? { kind: "no_page_request", tool } : null;
}

/** Whether the workspace, which was empty, has files at the end. */
const hasWritten = ({ events }: Trial): boolean =>
  events.some((event) => event.type === "milestone" && event.name === "workspace_changed" && event.detail.files !== 0);

/** Whether a result says that the command failed. Some agents never show the exit code itself. */
const showsFailure = ({ ok, output }: ToolResult): boolean =>
  output.exitCode === 3 || (typeof output.exitCode !== "number" && ok === false);

function noModelCall({ events, failureReason }: Trial): Diagnosis {
  const end = events.findLast((event) => event.type === "end");
  return { kind: "no_model_call", printed: failureReason ?? end?.reason ?? null };
}

/** The problem that keeps an agent from calling any tool. */
function findObstacle({ requests, preset }: Trial): Diagnosis | null {
  const modelRequests = requests.filter(({ isKnownPath }) => isKnownPath);
  if (modelRequests.length === 0)
    return { kind: "unknown_path", paths: [...new Set(requests.map(({ path }) => path))] };
  if (!modelRequests.some(({ toolNames }) => toolNames.length > 0)) return { kind: "no_tools" };
  return modelRequests.some(({ hasTask }) => hasTask) ? null : { kind: "no_task", channel: taskChannelOf(preset) };
}

function findCall({ events }: Trial, mark: string): RecordedCall | null {
  const call = events.find((event) => event.type === "tool_call" && JSON.stringify(event.input).includes(mark));
  if (call?.type !== "tool_call") return null;
  const result = events.find((event) => event.type === "tool_result" && event.id === call.id);
  return { call, result: result?.type === "tool_result" ? result : null };
}

/** The tools that evald doesn't know: the agent's own name for each tool, with evald's name for it. */
function findUnknownTools(trial: Trial): Record<string, ToolName> {
  const knownTools: string[] = Object.values(toolSteps).map(({ tool }) => tool);
  const steps = Object.values(toolSteps).flatMap(({ mark, tool }) => {
    const name = findCall(trial, mark)?.call.tool;
    return name === undefined || knownTools.includes(name) ? [] : [[name, tool] as const];
  });
  // Agents may also fetch pages or write files with commands. The first step that used a tool decides what the tool does. The list is reversed
  // because the last of equal keys wins.
  return Object.fromEntries(steps.reverse());
}

const findPageRequest = ({ events, host }: Trial) =>
  events
    .filter((event) => event.type === "http")
    .find(({ method, url }) => method !== "CONNECT" && new URL(url).hostname === host);

/** The step of the final answer: a message, or the reason why the session ended. */
function findAnswer(trial: Trial): Step {
  const name = "answer";
  const texts = trial.events.filter(({ type }) => type !== "error").flatMap(textsOf);
  if (texts.some((text) => text.includes(finalAnswer))) return { name, detail: finalAnswer, diagnosis: null };
  return { name, detail: null, diagnosis: diagnoseAnswer(trial) };
}

function diagnoseAnswer(trial: Trial): Diagnosis {
  if (trial.requests.length === 0) return noModelCall(trial);
  const isLastStepReached = trial.requests.some(({ call }) => call?.step === "file");
  if (!isLastStepReached) return findObstacle(trial) ?? { kind: "not_reached" };
  const end = trial.events.findLast((event) => event.type === "end");
  return { kind: "other_answer", text: end?.reason.slice(0, 300) ?? null };
}

/** The texts that an agent or its program printed with an event. */
function textsOf(event: SessionEvent): string[] {
  if (event.type === "message") return [event.text];
  if (event.type === "end") return [event.reason];
  return event.type === "error" ? [event.message] : [];
}

/** Other problems of a session. */
export function findProblems({ events, failureReason, host }: Trial): Diagnosis[] {
  const problems: Diagnosis[] = [];
  const texts = events.flatMap(textsOf);
  const unreadable = texts.find((text) => text.includes(unreadableNote));
  if (unreadable !== undefined) problems.push({ kind: "unreadable_output", text: unreadable.slice(0, 300) });
  const login = [failureReason ?? "", ...texts]
    .flatMap((text) => text.split("\n"))
    .find((line) => asksForLogin.test(line));
  if (login !== undefined) problems.push({ kind: "login", text: login.trim().slice(0, 300) });
  const hosts = events.flatMap((event) =>
    event.type === "http" && event.error?.kind === "refused" ? new URL(event.url).hostname : [],
  );
  const refused = [...new Set(hosts)].filter((name) => name !== host);
  if (refused.length > 0) problems.push({ kind: "refused_hosts", hosts: refused });
  return problems;
}

/** Phrases with which programs ask for a login. */
const loginPhrases = [
  "log ?in",
  "not logged in",
  "sign ?in",
  "signed in",
  "authenticat\\w*",
  "no api key",
  "api[ _-]?key (?:is )?(?:missing|required|not)",
];
const asksForLogin = new RegExp(`\\b(?:${loginPhrases.join("|")})\\b`, "i");

/** What a person should change in the agent's entry, in sentences. */
export function explain(diagnosis: Diagnosis, { stream, providers }: Preset): string {
  const [provider = "openai"] = Object.keys(providers);
  switch (diagnosis.kind) {
    case "no_model_call":
      return `It did not call its model through evald. Set its base URL to {gateway}/${provider}/v1 (some programs add /v1 themselves) and its API key to {token}, in env, args or files.${explainPrinted(diagnosis.printed)}`;
    case "unknown_path":
      return `It called ${diagnosis.paths.join(" and ")}, which evald does not know as a path of a model. Correct its base URL, such as {gateway}/${provider}/v1, or set provider to the one whose protocol it speaks.`;
    case "no_task":
      return `Its requests did not contain the task, which it gets by ${channelNames[diagnosis.channel]}. Change args: use {prompt} to pass the task as an argument, {promptFile} to pass the path of a file, or neither to pass it on stdin.`;
    case "no_tools":
      return "Its requests offered no tools, so its model can do nothing. Look for a mode or argument that turns its tools on.";
    case "not_reached":
      return "The session ended before this step.";
    case "unrecorded_call":
      return diagnosis.stream === "none"
        ? `Its model called ${diagnosis.tool}, but that did not reach evald.`
        : `Its model called ${diagnosis.tool}, but its output does not show the call as stream ${diagnosis.stream} does. Set stream to the format that it writes, and add the argument that turns it on; or set stream to none, with which evald reads the calls from the model's requests.`;
    case "unknown_tools":
      return `evald does not know all tools. Set "tools": ${JSON.stringify(diagnosis.tools)}`;
    case "no_result":
      return `${diagnosis.tool} was called, but its result is missing. If the program waits for permission, add the argument that allows everything.`;
    case "failed_call":
      return `${diagnosis.tool} failed: ${quote(diagnosis.message)}. If it needs permission, add the argument that allows everything; if it needs a program or folder of this machine, add it to mounts.`;
    case "no_exit_code":
      return explainExitCode(diagnosis);
    case "no_page_request":
      return `${diagnosis.tool} did not fetch the page from inside the sandbox. Look for a setting that makes it fetch pages itself, or takes the tool away.`;
    case "no_file":
      return `${diagnosis.tool} was called, but there is no file: ${quote(diagnosis.output)}. ${suggestFailure(diagnosis.output)}`;
    case "other_answer": {
      if (diagnosis.text === null) return "It ended without its answer.";
      const advice =
        stream === "none"
          ? "Look for an argument with which it prints only the answer."
          : "Check that stream is the format that it writes.";
      return `It ended with ${quote(diagnosis.text)} in place of the model's answer. ${advice}`;
    }
    case "unreadable_output":
      return `${diagnosis.text}. Set stream to the format that it writes, or to none for plain text.`;
    case "refused_hosts":
      return `It was refused ${diagnosis.hosts.join(", ")}. If it works without them, turn the requests off, or add them to blockedHosts; if it needs them, add them to hosts.`;
    case "login":
      return `It seems to ask for a login: ${quote(diagnosis.text)}. Look for a setting that takes an API key and a base URL in place of a login. A program that works only with an account of its vendor cannot be run by evald.`;
  }
}

const channelNames = { protocol: "ACP", stdin: "stdin", argument: "{prompt}", file: "{promptFile}" };

/** What a program printed instead of working. Frames and colors of a terminal are removed, because they have no meaning. */
function explainPrinted(printed: string | null): string {
  const text = Bun.stripANSI(printed ?? "")
    .replace(/[\u2500-\u259f]+/g, " ")
    .trim();
  return text === ""
    ? ""
    : ` It ended with ${quote(text)}. If it asks something, such as whether to trust the folder, answer that in args or files.`;
}

const quote = (text: string): string => JSON.stringify(text.trim().replace(/\s+/g, " ").slice(0, 400));

/** The exit code in an output. The 3 in the command `exit 3` itself doesn't count. */
const exitCode = /(?<!exit )\b3\b/;

/** Suggests a pattern for the line with the 3. If no line has one, it suggests a pattern for the text before the output of the command. */
function explainExitCode({ tool, output }: Extract<Diagnosis, { kind: "no_exit_code" }>): string {
  const line = output.split("\n").findLast((each) => exitCode.test(each));
  if (line !== undefined) {
    const pattern = escapePattern(line.trim()).replace(exitCode, "(\\d+)");
    return `The exit code in ${quote(line)} was not recognized. Set "exitCode": ${JSON.stringify(pattern)}`;
  }
  return `The result of ${tool} does not show the exit code: ${quote(output)}. ${suggestFailure(output)}`;
}

function suggestFailure(output: string): string {
  const start = output.trim().split(/[:\n]/)[0] ?? "";
  return start === "" || start === "failed"
    ? "evald will not see which calls fail."
    : `If only failed calls begin in this way, set "failure": ${JSON.stringify(`^${escapePattern(start)}`)}`;
}

const escapePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
