import { ownMember } from "../../schema.ts";
import type { AgentEvent } from "../agent.ts";
import { type Fields, list, number, object, text } from "../fields.ts";
import { exitCodeIn, message, thought, toCall, toResult } from "./streams/stream.ts";

/** evald's names for the protocol's kinds of tools; other tools keep their own names. */
const toolNamesByKind: Record<string, string> = {
  execute: "run_command",
  fetch: "fetch_page",
  edit: "write_file",
  read: "read_file",
};

/** What a terminal of the client has printed so far. `exitCode`: null while it runs, or if a signal ended it. */
export type TerminalText = { output: string; exitCode: number | null };

/** What is remembered between the updates of a session. */
export type UpdateState = {
  calls: Map<string, Call>;
  /** The message or thought that has not ended yet. */
  partial: { kind: "message" | "thought"; text: string } | null;
  lastMessage: string | null;
  lastPlan: string;
  costUsd: number | null;
  /** Unknown kinds of updates. */
  unknown: Set<string>;
  /** What a terminal has printed; null: there is none with that ID. */
  readTerminal: (id: string) => TerminalText | null;
};

type Call = {
  name: string;
  tool: string;
  input: Fields;
  content: unknown[];
  subagent: string | undefined;
  isReported: boolean;
  isDone: boolean;
};

/** The state before the first update of a session. */
export const createUpdateState = (readTerminal: UpdateState["readTerminal"]): UpdateState => ({
  calls: new Map(),
  partial: null,
  lastMessage: null,
  lastPlan: "",
  costUsd: null,
  unknown: new Set(),
  readTerminal,
});

/** Updates from which nothing about the session can be learned. */
const updatesWithoutNews = /^(user_message_chunk|notice|compaction_\w+|\w+_(mode_)?update)$/;

/** Turns a session update into events. Messages come in pieces, and calls in several updates. */
export function parseUpdate(update: Fields, state: UpdateState): AgentEvent[] {
  const kind = text(update.sessionUpdate);
  if (kind === "agent_message_chunk") return addPiece(state, "message", textOfBlock(update.content));
  if (kind === "agent_thought_chunk") return addPiece(state, "thought", textOfBlock(update.content));
  if (kind === "tool_call" || kind === "tool_call_update") return parseCall(update, state);
  if (kind === "plan") return parsePlan(update, state);
  if (kind === "usage_update") state.costUsd = number(object(update.cost).amount) ?? state.costUsd;
  else if (!updatesWithoutNews.test(kind)) state.unknown.add(kind);
  return [];
}

/** The events of a request for a permission: the call that it is about, and a question if the agent was told to ask. */
export function parsePermissionRequest(params: Fields, state: UpdateState, asksFirst: boolean): AgentEvent[] {
  const call = { ...object(params.toolCall), sessionUpdate: "tool_call_update", status: "in_progress" };
  const events = parseUpdate(call, state);
  return asksFirst ? [...events, toPermissionQuestion(call)] : events;
}

/** The question of an agent that asks before it does something. */
const toPermissionQuestion = (call: Fields): AgentEvent => ({
  type: "interruption",
  question: `May I do this: ${text(call.title) || text(call.kind) || "a tool call"}?`.slice(0, 1000),
  url: null,
});

/** The question of an agent to its user, in a form or on a web page. */
export const toElicitationQuestion = ({ message, url }: Fields): AgentEvent => ({
  type: "interruption",
  question: (text(message) || "The agent asks for information.").slice(0, 1000),
  url: text(url) || null,
});

/** Reports what the turn left open: a message in pieces, and calls whose input might still have changed. */
export function endUpdates(state: UpdateState): AgentEvent[] {
  const events = endPartial(state);
  for (const [id, call] of state.calls) if (!call.isReported) events.push(reportCall(id, call));
  return events;
}

/** Whether the agent has announced a call that has not ended. */
export const hasOpenCall = ({ calls }: UpdateState): boolean => calls.values().some(({ isDone }) => !isDone);

/** A block of content as text. Content that is not text is described in brackets. */
function textOfBlock(block: unknown): string {
  const { type, text: content, mimeType, uri, name, data, resource } = object(block);
  if (type === "resource_link") return `[${text(name) || text(uri)}](${text(uri)})`;
  if (type === "resource") return text(object(resource).text) || `[${text(object(resource).uri)}]`;
  if (type === "image" || type === "audio") {
    const source = text(uri) || `${Buffer.byteLength(text(data), "base64")} bytes`;
    return `[${text(mimeType) || String(type)}, ${source}]`;
  }
  return text(content);
}

function addPiece(state: UpdateState, kind: "message" | "thought", piece: string): AgentEvent[] {
  const events = state.partial?.kind === kind ? [] : endPartial(state);
  state.partial = { kind, text: (state.partial?.text ?? "") + piece };
  return events;
}

function endPartial(state: UpdateState): AgentEvent[] {
  const { partial } = state;
  state.partial = null;
  if (partial === null) return [];
  if (partial.kind === "thought") return thought(partial.text);
  if (partial.text.trim() !== "") state.lastMessage = partial.text;
  return message(partial.text);
}

const planMarks: Record<string, string> = { completed: "x", in_progress: "-" };

/** The plan of an agent. Agents send the whole plan each time. */
function parsePlan({ entries }: Fields, state: UpdateState): AgentEvent[] {
  const lines = list(entries).map(object);
  const plan = lines.map(({ content, status }) => `- [${planMarks[text(status)] ?? " "}] ${text(content)}`).join("\n");
  if (plan === state.lastPlan) return [];
  state.lastPlan = plan;
  return [...endPartial(state), ...thought(`Plan:\n${plan}`)];
}

function parseCall(update: Fields, state: UpdateState): AgentEvent[] {
  const id = text(update.toolCallId);
  const call = state.calls.get(id) ?? startCall();
  state.calls.set(id, call);
  updateCall(call, update);
  const isOver = update.status === "completed" || update.status === "failed";
  const events = endPartial(state);
  // The input of a pending call may still be incomplete.
  if (!call.isReported && (isOver || update.status === "in_progress")) events.push(reportCall(id, call));
  if (!isOver || call.isDone) return events;
  call.isDone = true;
  return [...events, toCallResult(id, call, update, state)];
}

const startCall = (): Call => ({
  name: "",
  tool: "",
  input: {},
  content: [],
  subagent: undefined,
  isReported: false,
  isDone: false,
});

/** Adds what an update says about a call. */
function updateCall(call: Call, update: Fields): void {
  const { toolName, parentToolUseId } = object(object(update._meta).claudeCode);
  const name = text(update.name) || text(toolName) || text(update.title);
  call.name ||= name.slice(0, 100) || "unknown";
  call.tool ||= ownMember(toolNamesByKind, text(update.kind)) ?? "";
  call.subagent ??= text(parentToolUseId) || undefined;
  const { rawInput } = update;
  if (typeof rawInput === "string" && rawInput !== "")
    call.input = call.tool === "run_command" ? { command: rawInput } : { input: rawInput };
  if (Object.keys(object(rawInput)).length > 0) call.input = object(rawInput);
  const path = object(list(update.locations)[0]).path;
  if (path !== undefined && call.tool !== "run_command") call.input = { path, ...call.input };
  if (Array.isArray(update.content)) call.content = update.content;
  const edits = call.content.map(object).filter(({ type }) => type === "diff");
  if (edits.length > 0 && call.tool === "write_file" && call.input.path === undefined)
    call.input = { path: edits[0]?.path, ...call.input };
}

function reportCall(id: string, call: Call): AgentEvent {
  call.isReported = true;
  return withSubagent(call, toCall(id, call.name, call.input, call.tool || undefined));
}

function toCallResult(id: string, call: Call, update: Fields, state: UpdateState): AgentEvent {
  const rawOutput = object(update.rawOutput);
  const content = call.content.map(object);
  const terminals = content
    .filter(({ type }) => type === "terminal")
    .map(({ terminalId }) => state.readTerminal(text(terminalId)));
  const blocks = content.map((block) => textOfContent(block, state));
  const output =
    blocks.filter(Boolean).join("\n") ||
    text(update.rawOutput) ||
    text(rawOutput.output) ||
    text(rawOutput.formatted_output);
  const exitCode =
    number(rawOutput.exit_code) ??
    number(rawOutput.exitCode) ??
    number(object(rawOutput.metadata).exit) ??
    terminals.findLast((terminal) => terminal !== null)?.exitCode ??
    exitCodeIn(output);
  const result = { id, name: call.name, ok: update.status === "completed", output };
  return withSubagent(call, toResult(result, call.tool === "run_command" ? exitCode : null, call.tool || undefined));
}

const withSubagent = ({ subagent }: Call, event: AgentEvent): AgentEvent =>
  subagent === undefined ? event : { ...event, subagent };

/** The content of a call as text: a block, the changes of an edit, or what a terminal printed. */
function textOfContent(content: Fields, state: UpdateState): string {
  if (content.type === "terminal") return state.readTerminal(text(content.terminalId))?.output ?? "";
  if (content.type !== "diff") return textOfBlock(content.content);
  const [path, oldText, newText] = [text(content.path), text(content.oldText), text(content.newText)];
  return [
    `--- ${oldText === "" ? "/dev/null" : path}`,
    `+++ ${path}`,
    ...markLines("-", oldText),
    ...markLines("+", newText),
  ].join("\n");
}

function markLines(mark: "-" | "+", changedText: string): string[] {
  if (changedText === "") return [];
  const lines = changedText.replace(/\n$/, "").split("\n");
  return lines.map((line) => `${mark}${line}`);
}
