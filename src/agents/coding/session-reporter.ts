import type { AgentEvent } from "../agent.ts";
import type { ModelCall, ModelResult } from "./conversation.ts";
import { object, text } from "./fields.ts";
import type { createMcpNames } from "./mcp-servers.ts";
import type { Preset } from "./preset.ts";
import { toCall, toResult } from "./streams/stream.ts";

const questionTools = /^(AskUserQuestion|ask_user(_question)?|question|request_user_input)$/;
const maxLineChars = 200;

export type SessionReporter = ReturnType<typeof createSessionReporter>;

/** Reports the events of a session, and tracks what is in progress. */
export function createSessionReporter(
  { name, stream }: Preset,
  mcpNames: ReturnType<typeof createMcpNames>,
  send: (event: AgentEvent) => void,
) {
  const openCalls = new Set<string>();
  const toolsOfModelCalls = new Map<string, string>();
  const toolsBySearch = new Map<string, string>();
  let callCount = 0;
  let nextCall = Promise.withResolvers<void>();
  let unreadable: { lines: number; first: string } | null = null;
  const unknownKinds = new Set<string>();

  /** A call of an MCP tool, renamed to evald's form. Qwen Code calls tools that it found by search through `tool_call`. */
  function renameMcpTool(event: AgentEvent): AgentEvent {
    if ((event.type !== "tool_call" && event.type !== "tool_result") || event.ownName !== undefined) return event;
    const mcpTool = mcpNames(event.tool)?.tool;
    if (event.type === "tool_result") return withTool(event, mcpTool ?? toolsBySearch.get(event.id));
    const inner = event.tool === "tool_call" ? mcpNames(text(event.input.name)) : null;
    if (!inner) return withTool(event, mcpTool);
    toolsBySearch.set(event.id, inner.tool);
    return { ...withTool(event, inner.tool), input: object(event.input.arguments) };
  }

  function report(original: AgentEvent): void {
    const event = renameMcpTool(original);
    if (event.type === "tool_call") {
      callCount++;
      openCalls.add(event.id);
      nextCall.resolve();
      nextCall = Promise.withResolvers();
      if (questionTools.test(event.tool)) send({ type: "interruption", question: questionIn(event.input), url: null });
    }
    if (event.type === "tool_result") openCalls.delete(event.id);
    send(event);
  }

  return {
    report,
    callCount: () => callCount,
    /** The only call in progress; null if there are none or several. */
    openCall: (): string | null => (openCalls.size === 1 ? ([...openCalls][0] ?? null) : null),
    /** Resolves with the next call, or after a timeout. */
    nextCall: (ms: number): Promise<unknown> => Promise.race([nextCall.promise, Bun.sleep(ms)]),
    /** An unreadable line of the stream. */
    addUnreadableLine(line: string | null): void {
      unreadable ??= { lines: 0, first: line === null ? "a line of more than 32 MiB" : line.slice(0, maxLineChars) };
      unreadable.lines++;
    },
    addUnknownKind: (kind: string) => void unknownKinds.add(kind),
    /** Without a stream, only the model calls are visible. */
    ofModel: {
      onCall({ id, name: tool, input }: ModelCall): void {
        if (stream !== "none") return;
        toolsOfModelCalls.set(id, tool);
        report(toCall(id, tool, input));
      },
      onResult({ id, output }: ModelResult): void {
        const tool = toolsOfModelCalls.get(id);
        if (tool !== undefined && openCalls.has(id)) report(toResult({ id, name: tool, ok: true, output }));
      },
    },
    /** Reports what could not be read. */
    close(): void {
      if (unreadable)
        send({
          type: "message",
          text: `${name} wrote ${unreadable.lines} ${unreadable.lines === 1 ? "line" : "lines"} that evald cannot read, such as ${JSON.stringify(unreadable.first)}`,
        });
      if (unknownKinds.size > 0)
        send({
          type: "message",
          text: `${name} wrote events of unknown types: ${[...unknownKinds].slice(0, 20).join(", ")}`,
        });
    },
  };
}

const withTool = <T extends { tool: string }>(event: T, tool = event.tool): T =>
  tool === event.tool ? event : { ...event, tool, ownName: event.tool };

function questionIn(input: Record<string, unknown>): string {
  const [first] = Array.isArray(input.questions) ? input.questions : [];
  return (text(object(first).question) || text(input.question) || JSON.stringify(input)).slice(0, 1000);
}
