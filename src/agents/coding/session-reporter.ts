import type { AgentEvent } from "../agent.ts";
import { object, text } from "../fields.ts";
import { createMcpCallDetector } from "./context-detector.ts";
import type { OutputKeeper } from "./kept-output.ts";
import { findMcpTool, type McpPrefix } from "./mcp-servers.ts";
import type { Preset } from "./preset.ts";
import { addLine, type Printed, startPrinted } from "./printed.ts";
import type { ModelHooks } from "./record.ts";
import { toCall, toResult } from "./streams/stream.ts";
import { findExitCode, findToolName, isFailure } from "./tools.ts";

/** Tools with which agents ask their user something, by their own names. */
const questionTools = /^(AskUserQuestion|ask_user(_question)?|question|request_user_input)$/;
const maxLineChars = 200;

/** What a session has reported, and what is in progress. */
export type SessionReporter = {
  preset: Preset;
  mcpPrefixes: McpPrefix[];
  send: (event: AgentEvent) => void;
  eventCount: number;
  callCount: number;
  /** IDs of the calls without a result so far. */
  openCalls: Set<string>;
  /** Resolves when the agent reports its next call. */
  nextCall: PromiseWithResolvers<void>;
  /** Tools that were called through another tool, by the ID of the call. */
  indirectTools: Map<string, string>;
  unreadable: { lines: number; first: string } | null;
  printed: Printed;
  output: OutputKeeper;
  unknownKinds: Set<string>;
};

/** A reporter that has reported nothing. `send` gets its events. */
export const startReporter = (
  preset: Preset,
  mcpPrefixes: McpPrefix[],
  output: OutputKeeper,
  send: (event: AgentEvent) => void,
): SessionReporter => ({
  preset,
  mcpPrefixes,
  send,
  eventCount: 0,
  callCount: 0,
  openCalls: new Set(),
  nextCall: Promise.withResolvers(),
  indirectTools: new Map(),
  unreadable: null,
  printed: startPrinted(),
  output,
  unknownKinds: new Set(),
});

/** Reports an event of the agent. */
export function report(reporter: SessionReporter, original: AgentEvent): void {
  const { send, openCalls } = reporter;
  const event = renameMcpTool(reporter, original);
  reporter.eventCount++;
  if (event.type === "tool_call") {
    reporter.callCount++;
    openCalls.add(event.id);
    reporter.nextCall.resolve();
    reporter.nextCall = Promise.withResolvers();
    if (questionTools.test(event.tool)) send({ type: "interruption", question: questionIn(event.input), url: null });
  }
  if (event.type === "tool_result") openCalls.delete(event.id);
  send(event);
}

/** A call of an MCP tool or its result, renamed to evald's form. An event with `ownName` was renamed when it was parsed. */
function renameMcpTool({ mcpPrefixes, indirectTools }: SessionReporter, event: AgentEvent): AgentEvent {
  if ((event.type !== "tool_call" && event.type !== "tool_result") || event.ownName !== undefined) return event;
  // Qwen Code calls tools that it found by search through a tool of its own.
  if (event.type === "tool_call" && event.tool === "tool_call") {
    const indirectTool = findMcpTool(mcpPrefixes, text(event.input.name))?.tool;
    if (indirectTool !== undefined) {
      indirectTools.set(event.id, indirectTool);
      return { ...renameTool(event, indirectTool), input: object(event.input.arguments) };
    }
  }
  const tool = findMcpTool(mcpPrefixes, event.tool)?.tool ?? indirectTools.get(event.id);
  return tool === undefined ? event : renameTool(event, tool);
}

const renameTool = <T extends { tool: string }>(event: T, tool: string): T =>
  tool === event.tool ? event : { ...event, tool, ownName: event.tool };

function questionIn(input: Record<string, unknown>): string {
  const [first] = Array.isArray(input.questions) ? input.questions : [];
  return (text(object(first).question) || text(input.question) || JSON.stringify(input)).slice(0, 1000);
}

/**
 * Reports which MCP servers the model calls. If the agent has no stream, also reports all of the model's calls and their results, because nothing
 * else is visible.
 */
export function reportModelCalls(reporter: SessionReporter): ModelHooks {
  const tools = new Map<string, string>();
  const detectMcpCall = createMcpCallDetector(reporter.mcpPrefixes, reporter.send);
  return {
    onCall({ id, name, input }) {
      detectMcpCall({ name, input });
      if (reporter.preset.stream !== "none") return;
      tools.set(id, name);
      report(reporter, toCall(id, name, input, findToolName(reporter.preset, name)));
    },
    onResult({ id, output }) {
      const name = tools.get(id);
      if (name !== undefined && reporter.openCalls.has(id))
        report(
          reporter,
          toResult(
            { id, name, ok: resultIn(reporter.preset, output), output },
            findExitCode(reporter.preset, output),
            findToolName(reporter.preset, name),
          ),
        );
    },
  };
}

/** Whether a call succeeded, by the text of its result; null: unknown, because the preset doesn't say how a failure looks. */
function resultIn(preset: Preset, output: string): boolean | null {
  if (preset.failure === null) return null;
  return !isFailure(preset, output);
}

/** Counts a line of the stream that can't be read. */
export function countUnreadableLine(reporter: SessionReporter, line: string | null): void {
  const first = line === null ? "a line of more than 32 MiB" : line.slice(0, maxLineChars);
  reporter.unreadable ??= { lines: 0, first };
  reporter.unreadable.lines++;
  if (line !== null) addLine(reporter.printed, line);
}

/** A part of the message about unreadable lines. A trial of an agent finds the message by it. */
export const unreadableNote = "that evald cannot read";

/** Reports what could not be read. */
export function reportUnreadable({ preset: { name }, send, unreadable, unknownKinds }: SessionReporter): void {
  if (unreadable) {
    const lines = `${unreadable.lines} ${unreadable.lines === 1 ? "line" : "lines"}`;
    const text = `${name} wrote ${lines} ${unreadableNote}, such as ${JSON.stringify(unreadable.first)}`;
    send({ type: "message", text });
  }
  if (unknownKinds.size > 0) {
    const text = `${name} wrote events of unknown types: ${[...unknownKinds].slice(0, 20).join(", ")}`;
    send({ type: "message", text });
  }
}
