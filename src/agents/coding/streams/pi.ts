import type { AgentEvent } from "../../agent.ts";
import { type Fields, list, number, object, text, textOf } from "../../fields.ts";
import {
  endStream,
  exitCodeIn,
  message,
  problem,
  type StreamState,
  statusIn,
  thought,
  toCall,
  toResult,
  toStreamEnd,
} from "./stream.ts";

/** Kinds of lines that say nothing about the session, or only what other lines say too. */
const linesWithoutNews =
  /^(session|agent_start|turn_start|turn_end|message_start|message_update|tool_execution_update|auto_retry_end|compaction_\w+|queue_update)$/;

/** For `pi --mode json`. */
export function parsePiLine(line: Fields, state: StreamState): AgentEvent[] {
  if (line.type === "message_end") {
    const { role, content } = object(line.message);
    return role === "assistant" ? list(content).flatMap((part) => parsePart(object(part), state)) : [];
  }
  const id = text(line.toolCallId);
  const name = text(line.toolName);
  if (line.type === "tool_execution_start") return [toCall(id, name, line.args)];
  if (line.type === "tool_execution_end") {
    const output = textOf(object(line.result).content);
    const ok = line.isError !== true;
    return [toResult({ id, name, ok, output }, name === "bash" && !ok ? exitCodeIn(output) : null)];
  }
  if (line.type === "auto_retry_start") return [problem("model", line.errorMessage)];
  if (line.type === "agent_end") {
    const messages = list(line.messages).map(object);
    const { stopReason, errorMessage } = messages.at(-1) ?? {};
    const reason = text(errorMessage);
    const error = stopReason === "error" ? { status: statusIn(reason), message: reason || "error" } : null;
    const costs = messages.map(({ usage }) => number(object(object(usage).cost).total) ?? 0);
    state.costUsd = costs.reduce((sum, cost) => sum + cost, 0);
    // After a failure, it may try again or shorten the conversation.
    if (error) state.likelyEnd = toStreamEnd(state, error);
    else endStream(state, null);
    return [];
  }
  if (!linesWithoutNews.test(text(line.type))) state.unknown.add(text(line.type));
  return [];
}

function parsePart(part: Fields, state: StreamState): AgentEvent[] {
  if (part.type === "thinking") return thought(part.thinking);
  if (part.type !== "text") return [];
  state.lastMessage = text(part.text);
  return message(part.text);
}
