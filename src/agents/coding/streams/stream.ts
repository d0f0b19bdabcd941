import type { AgentEvent } from "../../agent.ts";
import { bounded, shortened } from "../../llm/tool.ts";

export type Fields = Record<string, unknown>;

/** How an agent reports its end. `error`: what ended it early; `status`: that of the model's response, if reported. */
export type StreamEnd = {
  text: string | null;
  error: { status: number | null; message: string } | null;
  /** The cost of the session according to the agent. */
  claimedUsd: number | null;
};

/** The result of an agent's stream. `isEnded`: the agent itself reported its end. */
export type Said = StreamEnd & { isEnded: boolean };

/** Turns the output of one agent into events. A parser never throws for unknown input. */
export type StreamParser = {
  /** The events of one line. */
  take(line: Fields): AgentEvent[];
  /** Set once the agent has reported its end. */
  end(): StreamEnd | null;
  /** Unknown kinds of lines. */
  unknown: Set<string>;
};

const maxTextChars = 16_000;
const maxOutputChars = 12_000;

const shells = new Set(["Bash", "bash", "shell", "run_shell_command", "exec_command", "command_execution", "execute"]);
const fetches = new Set(["WebFetch", "webfetch", "web_fetch", "fetch"]);
const writes = new Set(
  "Write Edit MultiEdit NotebookEdit write edit write_file replace create apply_patch file_change str_replace_editor".split(
    " ",
  ),
);
const reads = new Set(["Read", "read", "read_file", "view"]);
const lists = new Set(["LS", "Glob", "glob", "list", "list_directory", "ls"]);

/** evald's name for a tool, so that grading can distinguish commands from pages; other tools keep the agent's name. */
function toolOf(name: string): string {
  if (shells.has(name)) return "run_command";
  if (fetches.has(name)) return "fetch_page";
  if (writes.has(name)) return "write_file";
  if (reads.has(name)) return "read_file";
  return lists.has(name) ? "list_files" : name;
}

const ownName = (name: string, tool: string) => (tool === name ? {} : { ownName: name });

/** A tool call by the agent's name for it. `tool`: evald's name, if the agent reports the kind of tool. */
export function toCall(id: string, name: string, given: unknown, tool = toolOf(name)): AgentEvent {
  const input = typeof given === "string" ? { input: given } : object(given);
  return { type: "tool_call", id, tool, input: bounded(inputOf(tool, input)), ...ownName(name, tool) };
}

function inputOf(tool: string, input: Fields): Fields {
  if (tool === "run_command") return { ...without(input, "cmd"), command: unwrapped(text(input.command ?? input.cmd)) };
  if (tool === "fetch_page") {
    const url = input.url ?? /https?:\/\/[^\s"'<>]+/.exec(text(input.prompt))?.[0];
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

/** The first file of a patch in Codex's format. */
const pathIn = (patch: string): string | undefined => /^\*\*\* (?:Add|Update|Delete) File: (.+)$/m.exec(patch)?.[1];

/** The result of a call. `exitCode` null: not a command, or unknown. */
export function toResult(
  { id, name, ok, said }: { id: string; name: string; ok: boolean; said: string },
  exitCode: number | null = null,
  tool = toolOf(name),
): AgentEvent {
  const worked = ok && (exitCode === null || exitCode === 0);
  const reason = exitCode ? `exit code ${exitCode}` : "failed";
  const last = said.trim().split("\n").at(-1)?.slice(0, 300);
  const output = {
    ...(worked ? {} : { message: [reason, last].filter(Boolean).join(": ") }),
    ...(exitCode === null ? {} : { exitCode }),
    text: shortened(said, maxOutputChars),
  };
  return { type: "tool_result", id, tool, ok: worked, output, ...ownName(name, tool) };
}

/** The command passed to a shell, as in `/bin/sh -lc 'ls'`. */
function unwrapped(command: string): string {
  const [, quote, inner] = /^\S*\/(?:ba|z|da)?sh -l?c (['"])(.*)\1$/s.exec(command) ?? [];
  if (inner === undefined) return command.replace(/^\S*\/(?:ba|z|da)?sh -l?c (\S+)$/, "$1");
  return quote === "'"
    ? inner.replaceAll("'\\''", "'").replaceAll("'\"'\"'", "'")
    : inner.replace(/\\([$`"\\])/g, "$1");
}

export const thought = (value: unknown): AgentEvent[] => {
  const said = text(value).trim();
  return said === "" ? [] : [{ type: "thought", text: said.slice(0, maxTextChars), by: "model" }];
};

export const message = (value: unknown): AgentEvent[] => {
  const said = text(value).trim();
  return said === "" ? [] : [{ type: "message", text: said.slice(0, maxTextChars) }];
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
export function statusIn(said: string): number | null {
  const found = /\b(?:status(?: code)?:? |"code": ?|error:? )?([45]\d{2})\b/i.exec(said)?.[1];
  return found === undefined ? null : Number(found);
}

/** The exit code in a text, in the format of agents. */
export function exitCodeIn(said: string): number | null {
  const found = /(?:^Exit code:? |\bexit(?:ed with)? code:? )(\d{1,3})\b/im.exec(said)?.[1];
  return found === undefined ? null : Number(found);
}

export const object = (value: unknown): Fields =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Fields) : {};
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
export const text = (value: unknown): string => (typeof value === "string" ? value : "");
export const number = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

/** The texts of a list of content blocks, or a plain text. */
export const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : list(content)
        .map((part) => text(object(part).text))
        .join("");

const without = (fields: Fields, ...names: string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
