import type { AgentEvent } from "../../agent.ts";
import { type EndingName, endingOfError } from "../../endings.ts";
import { boundFields, shorten } from "../../event-size.ts";
import { type Fields, list, object, parseObject, text } from "../../fields.ts";

/** Why an agent ended early. `status`: the status of the model's response, if the agent reports it. */
type StreamError = { status: number | null; message: string };

/** How an agent says that it ended. `text`: its answer. */
type StreamEnd = {
  ending: EndingName;
  text: string | null;
  error: StreamError | null;
  /** The cost of the session according to the agent. */
  claimedUsd: number | null;
};

/** The result of an agent's stream. `hasReportedEnd`: the agent itself reported its end, in `StreamState.end`. */
export type StreamResult = StreamEnd & { hasReportedEnd: boolean };

/** The result of a stream in which the agent did not report its end. */
export const unfinishedResult: StreamResult = {
  hasReportedEnd: false,
  ending: "exited",
  text: null,
  error: null,
  claimedUsd: null,
};

/** What a parser remembers between the lines of a stream. */
export type StreamState = {
  /** Names of the called tools by the ID of the call. */
  toolNames: Map<string, string>;
  /** Pieces of a message that is not complete yet. */
  partialMessage: string;
  /** The agent's last message. */
  lastMessage: string | null;
  /** How the session ends if the agent does nothing more. It may still recover, for example after a failure. */
  likelyEnd: StreamEnd | null;
  /** The cost of the session so far, if the agent reports it in parts. */
  costUsd: number | null;
  /** Set once the agent has reported its end. */
  end: StreamEnd | null;
  /** Unknown kinds of lines. */
  unknown: Set<string>;
};

/** The state before the first line of a stream. */
export const createStreamState = (): StreamState => ({
  toolNames: new Map(),
  partialMessage: "",
  lastMessage: null,
  likelyEnd: null,
  costUsd: null,
  end: null,
  unknown: new Set(),
});

/** The object of a line; null if it holds none. Some agents color their lines even without a terminal. */
export const readLine = (line: string): Fields | null => parseObject(line) ?? parseObject(Bun.stripANSI(line));

/** Turns one line of an agent's output into events and updates the state. Never throws for unknown input. */
export type LineParser = (line: Fields, state: StreamState) => AgentEvent[];

/** The end that an agent reports: with its last message, or with an error. */
export const toStreamEnd = (
  { lastMessage, costUsd }: StreamState,
  error: StreamError | null,
  ending: EndingName = error ? endingOfError(error.status, error.message) : "finished",
): StreamEnd => ({ ending, text: error ? null : lastMessage, error, claimedUsd: costUsd });

/** The agent reports its end. */
export function endStream(state: StreamState, error: StreamError | null, ending?: EndingName): void {
  state.end = toStreamEnd(state, error, ending);
}

const workTypes = new Set<AgentEvent["type"]>(["thought", "message", "tool_call", "tool_result"]);

/** Parses a line. An agent that continues to work has not ended, whatever it reported before. */
export function parseLine(parse: LineParser, line: Fields, state: StreamState): AgentEvent[] {
  const events = parse(line, state);
  if (events.some(({ type }) => workTypes.has(type))) state.likelyEnd = null;
  return events;
}

/** A call whose result will name only its ID. */
export function startCall(state: StreamState, id: string, name: string, input: unknown): AgentEvent {
  state.toolNames.set(id, name);
  return toCall(id, name, input);
}

/** The name of the tool of a call. */
export const nameOfCall = (state: StreamState, id: string): string => state.toolNames.get(id) ?? "unknown";

const maxTextChars = 16_000;
const maxOutputChars = 12_000;

/** evald's names for tools, each with the names that agents use. With evald's names, grading can tell commands from pages. */
const agentNames = {
  run_command: "Bash bash shell run_shell_command exec_command command_execution execute",
  fetch_page: "WebFetch webfetch web_fetch fetch",
  write_file:
    "Write Edit MultiEdit NotebookEdit write edit write_file replace create apply_patch file_change str_replace_editor",
  read_file: "Read read read_file view",
  list_files: "LS Glob glob list list_directory ls",
};
const toolByAgentName = new Map(
  Object.entries(agentNames).flatMap(([tool, names]) => names.split(" ").map((name) => [name, tool] as const)),
);

/** evald's name for a tool; other tools keep the agent's name. */
const toolOf = (name: string): string => toolByAgentName.get(name) ?? name;

const ownName = (name: string, tool: string) => (tool === name ? {} : { ownName: name });

/** A tool call by the agent's name for it. `tool`: evald's name, if the agent reports the kind of tool. */
export function toCall(id: string, name: string, input: unknown, tool = toolOf(name)): AgentEvent {
  const fields = typeof input === "string" ? { input } : object(input);
  return { type: "tool_call", id, tool, input: boundFields(normalizeInput(tool, fields)), ...ownName(name, tool) };
}

/**
 * The input with the fields that grading reads: `command`, `url` or `path`. Agents call them `cmd` (Codex), `commands` (Cline), `prompt` with a URL in it (Gemini
 * CLI), `file_path` (Claude Code, Gemini CLI), `filePath` (opencode), or write only a patch or a list of changes (Codex).
 */
function normalizeInput(tool: string, input: Fields): Fields {
  if (tool === "run_command")
    return { ...without(input, "cmd", "commands"), command: unwrapShellCommand(commandIn(input)) };
  if (tool === "fetch_page") {
    const url =
      input.url ?? object(list(input.requests)[0]).url ?? /https?:\/\/[^\s"'<>]+/.exec(text(input.prompt))?.[0];
    return url === undefined ? input : { ...input, url };
  }
  if (tool !== "write_file" && tool !== "read_file") return input;
  const path =
    input.file_path ??
    input.filePath ??
    input.path ??
    object(list(input.changes)[0]).path ??
    pathIn(text(input.input ?? input.patch));
  return path === undefined ? input : { path, ...without(input, "file_path", "filePath", "path") };
}

/** The command in the input of a call. Cline runs several commands in one call. */
const commandIn = ({ command, cmd, commands }: Fields): string =>
  text(command ?? cmd) || list(commands).map(text).join("\n");

/** The first file of a patch in Codex's format. */
const pathIn = (patch: string): string | undefined => /^\*\*\* (?:Add|Update|Delete) File: (.+)$/m.exec(patch)?.[1];

/**
 * The result of a call. `ok`: null if the agent does not say whether the call succeeded. `reportedCode`: the exit code of a command; null if unknown.
 * If it is unknown, `ok` decides, unless the output says that the command was stopped.
 */
export function toResult(
  { id, name, ok, output }: { id: string; name: string; ok: boolean | null; output: string },
  reportedCode: ExitCode = null,
  tool = toolOf(name),
): AgentEvent {
  const isCommand = tool === "run_command";
  const isFromText = typeof reportedCode === "object" && reportedCode !== null;
  const commandExitCode = isFromText ? reportedCode.inText : reportedCode;
  const exitCode = isCommand ? commandExitCode : null;
  const isStopped = isCommand && exitCode === null && wasStopped(output);
  const hasSucceeded = decideSuccess(ok, exitCode, isStopped);
  return {
    type: "tool_result",
    id,
    tool,
    ok: hasSucceeded,
    output: {
      ...(hasSucceeded === false ? { message: toFailureMessage(exitCode, isStopped, output) } : {}),
      ...(isCommand ? { exitCode } : {}),
      ...(isCommand && isFromText ? { exitCodeSource: "text" } : {}),
      text: shorten(output, maxOutputChars),
    },
    ...ownName(name, tool),
  };
}

/** null: unknown. */
function decideSuccess(ok: boolean | null, exitCode: number | null, isStopped: boolean): boolean | null {
  if (exitCode !== null) return ok !== false && exitCode === 0;
  return isStopped ? false : ok;
}

function toFailureMessage(exitCode: number | null, isStopped: boolean, output: string): string {
  const reason = isStopped ? "stopped" : "failed";
  const lastLine = output.trim().split("\n").at(-1)?.slice(0, 300);
  return [exitCode ? `exit code ${exitCode}` : reason, lastLine].filter(Boolean).join(": ");
}

/** The command passed to a shell, as in `/bin/sh -lc 'ls'`. */
function unwrapShellCommand(command: string): string {
  const [, quote, inner] = /^\S*\/(?:ba|z|da)?sh -l?c (['"])(.*)\1$/s.exec(command) ?? [];
  if (inner === undefined) return command.replace(/^\S*\/(?:ba|z|da)?sh -l?c (\S+)$/, "$1");
  return quote === "'"
    ? inner.replaceAll("'\\''", "'").replaceAll("'\"'\"'", "'")
    : inner.replace(/\\([$`"\\])/g, "$1");
}

/** The thought of a line; none if it is empty. */
export const thought = (value: unknown): AgentEvent[] => {
  const content = text(value).trim();
  return content === "" ? [] : [{ type: "thought", text: content.slice(0, maxTextChars), by: "model" }];
};

/** The message of a line; none if it is empty. */
export const message = (value: unknown): AgentEvent[] => {
  const content = text(value).trim();
  return content === "" ? [] : [{ type: "message", text: content.slice(0, maxTextChars) }];
};

/** A failure between the agent and its model, or in the agent, which continues. */
export const problem = (where: "model" | "agent", value: unknown): AgentEvent => ({
  type: "error",
  where,
  message: text(value).slice(0, 1000) || "unknown error",
  url: null,
  retryable: true,
});

/** An HTTP status in an error message. */
export function statusIn(errorMessage: string): number | null {
  const status = /\b(?:status(?: code)?:? |"code": ?|error:? )?([45]\d{2})\b/i.exec(errorMessage)?.[1];
  return status === undefined ? null : Number(status);
}

/** The exit code of a command: reported, or found in the text of its result; null: unknown. */
export type ExitCode = number | { inText: number } | null;

/** The exit code in the output of a command. Agents add it in a separate line before or after what the command printed. */
export function exitCodeIn(output: string): ExitCode {
  const lines = output.trim().split("\n");
  const ownLines = [...lines.slice(0, 2), ...lines.slice(-8)].join("\n");
  const code = exitCodeLine.exec(ownLines)?.[1];
  return code === undefined ? null : { inText: Number(code) };
}

const subject = "(?:the )?(?:command |process |shell )*";
const ended = "(?:(?:shellId: \\d+ )?completed with|exit|exited with|failed with)";
/** `Exit code 1`, `The command failed with exit code: 1`. */
const exitCodeLine = new RegExp(`^\\W*${subject}${ended}(?: exit)? code:? (\\d{1,3})\\W*$`, "im");

const stoppedSubject = "(?:(?:the|bash|shell|tool|command|process) )*(?:was )?";
const stopped = "(?:terminated|killed|stopped|aborted|timed out)";
const causeOfStop = "(?:signal|time ?-?out|timeout|seconds|\\d+ ?m?s)";
const stopNotes = [
  // `Command was terminated by signal 9`, `timed out after 120 seconds`.
  new RegExp(`^\\W*${stoppedSubject}${stopped}\\b[^\\n]*\\b${causeOfStop}\\b`, "im"),
  /\bcommand timed out\b/i,
];

/** Whether an agent ends the output of a command with a note that a signal or a time limit ended the command. */
function wasStopped(output: string): boolean {
  const last = output.trim().split("\n").slice(-3).join("\n");
  return stopNotes.some((note) => note.test(last));
}

const without = (fields: Fields, ...names: string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
