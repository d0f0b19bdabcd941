import type { AgentEvent } from "../../agent.ts";
import { type Fields, number, object, text } from "../../fields.ts";
import { message, problem, type StreamState, thought, toCall, toResult, toStreamEnd } from "./stream.ts";

/** For `opencode run --format json`, which reports a call after it finished. */
export function parseOpencodeLine(line: Fields, state: StreamState): AgentEvent[] {
  const part = object(line.part);
  if (line.type === "step_start" || line.type === "user") return [];
  if (line.type === "reasoning") return thought(part.text);
  if (line.type === "text") {
    // Written by opencode itself, as when it has shortened the conversation.
    if (part.synthetic === true) return [];
    state.lastMessage = text(part.text);
    return message(part.text);
  }
  if (line.type === "tool_use") {
    const { status, input, output, error, metadata } = object(part.state);
    const id = text(part.callID);
    const name = text(part.tool);
    const result = { id, name, ok: status === "completed", output: text(output) || text(error) };
    return [toCall(id, name, input), toResult(result, number(object(metadata).exit))];
  }
  if (line.type === "step_finish") {
    const cost = number(part.cost);
    if (cost !== null) state.costUsd = (state.costUsd ?? 0) + cost;
    // The agent may go on, for example after a step that shortens the conversation.
    if (part.reason !== "tool-calls") state.likelyEnd = toStreamEnd(state, null);
    return [];
  }
  if (line.type === "error") {
    const { name, data } = object(line.error);
    const { statusCode, message: reason } = object(data);
    const error = { status: number(statusCode), message: text(reason) || text(name) || "error" };
    state.likelyEnd = toStreamEnd(state, error);
    return [problem("model", error.message)];
  }
  state.unknown.add(text(line.type));
  return [];
}
