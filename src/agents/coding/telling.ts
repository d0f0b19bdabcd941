import type { AgentEvent } from "../agent.ts";
import type { ModelCall, ModelResult } from "./conversation.ts";
import type { createMcpNames } from "./mcp-servers.ts";
import type { Preset } from "./preset.ts";
import { object, text, toCall, toResult } from "./streams/stream.ts";

const questions = /^(AskUserQuestion|ask_user(_question)?|question|request_user_input)$/;
const maxShown = 200;

export type Telling = ReturnType<typeof createTelling>;

/** Reports the events of a session, and tracks what is in progress. */
export function createTelling(
  { name, stream }: Preset,
  mcpNames: ReturnType<typeof createMcpNames>,
  send: (event: AgentEvent) => void,
) {
  const open = new Set<string>();
  const modelNames = new Map<string, string>();
  const searched = new Map<string, string>();
  let calls = 0;
  let called = Promise.withResolvers<void>();
  let garbage: { lines: number; first: string } | null = null;
  const unknown = new Set<string>();

  /** A call of an MCP tool, renamed to evald's form. Qwen Code calls tools that it found by search through `tool_call`. */
  function named(event: AgentEvent): AgentEvent {
    if ((event.type !== "tool_call" && event.type !== "tool_result") || event.ownName !== undefined) return event;
    const found = mcpNames(event.tool);
    if (event.type === "tool_result") return renamed(event, found?.tool ?? searched.get(event.id));
    const inner = event.tool === "tool_call" ? mcpNames(text(event.input.name)) : null;
    if (!inner) return renamed(event, found?.tool);
    searched.set(event.id, inner.tool);
    return { ...renamed(event, inner.tool), input: object(event.input.arguments) };
  }

  function tell(given: AgentEvent): void {
    const event = named(given);
    if (event.type === "tool_call") {
      calls++;
      open.add(event.id);
      called.resolve();
      called = Promise.withResolvers();
      if (questions.test(event.tool)) send({ type: "interruption", question: questionIn(event.input), url: null });
    }
    if (event.type === "tool_result") open.delete(event.id);
    send(event);
  }

  return {
    tell,
    calls: () => calls,
    /** The only call in progress; null if there are none or several. */
    openCall: (): string | null => (open.size === 1 ? ([...open][0] ?? null) : null),
    /** Resolves with the next call, or after a timeout. */
    nextCall: (ms: number): Promise<unknown> => Promise.race([called.promise, Bun.sleep(ms)]),
    /** An unreadable line of the stream. */
    misread(line: string | null): void {
      garbage ??= { lines: 0, first: line === null ? "a line of more than 32 MiB" : line.slice(0, maxShown) };
      garbage.lines++;
    },
    unknown: (kind: string) => void unknown.add(kind),
    /** Without a stream, only the model calls are visible. */
    ofModel: {
      onCall({ id, name: tool, input }: ModelCall): void {
        if (stream !== "none") return;
        modelNames.set(id, tool);
        tell(toCall(id, tool, input));
      },
      onResult({ id, said }: ModelResult): void {
        const tool = modelNames.get(id);
        if (tool !== undefined && open.has(id)) tell(toResult({ id, name: tool, ok: true, said }));
      },
    },
    /** Reports what could not be read. */
    close(): void {
      if (garbage)
        send({
          type: "message",
          text: `${name} wrote ${garbage.lines} ${garbage.lines === 1 ? "line" : "lines"} that evald cannot read, such as ${JSON.stringify(garbage.first)}`,
        });
      if (unknown.size > 0)
        send({
          type: "message",
          text: `${name} wrote events of unknown types: ${[...unknown].slice(0, 20).join(", ")}`,
        });
    },
  };
}

const renamed = <T extends { tool: string }>(event: T, tool = event.tool): T =>
  tool === event.tool ? event : { ...event, tool, ownName: event.tool };

function questionIn(input: Record<string, unknown>): string {
  const [first] = Array.isArray(input.questions) ? input.questions : [];
  return (text(object(first).question) || text(input.question) || JSON.stringify(input)).slice(0, 1000);
}
