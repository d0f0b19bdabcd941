import type { AgentEvent } from "../../agent.ts";
import { type Fields, list, number, object, parseObject, text, textOf } from "../../fields.ts";
import {
  createStreamState,
  exitCodeIn,
  message,
  nameOfCall,
  type StreamState,
  startCall,
  toCall,
  toResult,
} from "../streams/stream.ts";

/** For `~/.codex/sessions/**\/rollout-*.jsonl`: what was sent to the model, and what Codex executed. */
export function parseStoredCodex(lines: Fields[]): AgentEvent[] {
  const state = createStreamState();
  return lines.flatMap((line) => {
    const payload = object(line.payload);
    if (line.type === "response_item") return parseItem(payload, state);
    return line.type === "event_msg" && payload.type === "item_completed"
      ? parseCommand(object(payload.item), state)
      : [];
  });
}

function parseItem(item: Fields, state: StreamState): AgentEvent[] {
  const id = text(item.call_id);
  if (item.type === "message") return item.role === "assistant" ? message(textOf(item.content)) : [];
  if (item.type === "function_call" || item.type === "custom_tool_call") {
    const input = item.type === "function_call" ? parseObject(text(item.arguments)) : text(item.input);
    return [startCall(state, id, text(item.name), withCommandText(input))];
  }
  if (item.type === "function_call_output" || item.type === "custom_tool_call_output") {
    const output = typeof item.output === "string" ? item.output : textOf(item.output);
    return [toOutput(id, nameOfCall(state, id), output)];
  }
  const { type, url } = object(item.action);
  return item.type === "web_search_call" && type === "open_page" ? [toCall("", "web_fetch", { url })] : [];
}

/** Older versions wrap the output in JSON with the exit code; newer ones write lines of their own before it. */
function toOutput(id: string, name: string, output: string): AgentEvent {
  const wrapped = parseObject(output);
  const code = number(object(wrapped?.metadata).exit_code);
  if (wrapped && code !== null) return toResult({ id, name, ok: code === 0, output: text(wrapped.output) }, code);
  const header = /^[\s\S]{0,400}?\nOutput:\n/.exec(output)?.[0] ?? "";
  const exitCode = header === "" ? exitCodeIn(output) : exitCodeIn(header);
  return toResult({ id, name, ok: null, output: output.slice(header.length) }, exitCode);
}

/** If code of the model started a command, it is found only in what Codex executed. */
function parseCommand(item: Fields, state: StreamState): AgentEvent[] {
  const id = text(item.id);
  if (item.type !== "CommandExecution" || state.toolNames.has(id)) return [];
  const code = number(item.exit_code);
  const call = startCall(state, id, "exec_command", withCommandText(item));
  return [call, toResult({ id, name: "exec_command", ok: code === 0, output: text(item.aggregated_output) }, code)];
}

/** A command is a text or a list of words. In a list that starts a shell, the last word is the command. */
function withCommandText(input: unknown): unknown {
  const { command } = object(input);
  return Array.isArray(command) ? { command: text(list(command).at(-1)) } : input;
}
