import type { AgentEvent } from "../../agent.ts";
import { type Fields, object, text } from "../../fields.ts";
import {
  endStream,
  exitCodeIn,
  message,
  nameOfCall,
  problem,
  type StreamState,
  startCall,
  statusIn,
  toResult,
} from "./stream.ts";

/** For `gemini -o stream-json`, which has no thoughts or exit codes. */
export function parseGeminiLine(line: Fields, state: StreamState): AgentEvent[] {
  if (line.type === "init") return [];
  if (line.type === "message") {
    if (line.role === "assistant") state.partialMessage += text(line.content);
    return [];
  }
  if (line.type === "tool_use")
    return [...endMessage(state), startCall(state, text(line.tool_id), text(line.tool_name), line.parameters)];
  if (line.type === "tool_result") {
    const id = text(line.tool_id);
    const output = text(line.output) || text(object(line.error).message);
    const ok = line.status === "success";
    const result = { id, name: nameOfCall(state, id), ok, output };
    return [...endMessage(state), toResult(result, ok ? null : exitCodeIn(output))];
  }
  if (line.type === "error") return [problem("agent", line.message)];
  if (line.type === "result") {
    const events = endMessage(state);
    const reason = text(object(line.error).message) || "error";
    endStream(state, line.status === "success" ? null : { status: statusIn(reason), message: reason });
    return events;
  }
  state.unknown.add(text(line.type));
  return [];
}

/** A message arrives in pieces, and ends with the next line of another type. */
function endMessage(state: StreamState): AgentEvent[] {
  if (state.partialMessage === "") return [];
  state.lastMessage = state.partialMessage;
  state.partialMessage = "";
  return message(state.lastMessage);
}
