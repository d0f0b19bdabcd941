import type { AgentEvent } from "../../agent.ts";
import { type Fields, number, object, text } from "../../fields.ts";
import {
  endStream,
  exitCodeIn,
  message,
  nameOfCall,
  problem,
  type StreamState,
  startCall,
  statusIn,
  thought,
  toResult,
  toStreamEnd,
} from "./stream.ts";

/** Kinds of lines that say nothing about the session, or only what other lines say too. */
const linesWithoutNews =
  /^(session|user|model|hook|skill|subagent|permission|assistant\.(turn|usage|intent|streaming|message_|reasoning_|tool_call_))/;

/** For `copilot --output-format json`. */
export function parseCopilotLine(line: Fields, state: StreamState): AgentEvent[] {
  const type = text(line.type);
  const data = object(line.data);
  if (type === "assistant.reasoning") return thought(data.content);
  if (type === "assistant.message") {
    if (text(data.content) !== "") state.lastMessage = text(data.content);
    return message(data.content);
  }
  if (type === "tool.execution_start")
    return [startCall(state, text(data.toolCallId), text(data.toolName), data.arguments)];
  if (type === "tool.execution_complete") {
    const id = text(data.toolCallId);
    const output = text(object(data.result).content) || text(object(data.error).message);
    // Earlier versions name it only in the text.
    const exitCode = number(object(data.shellExecution).exitCode) ?? exitCodeIn(output);
    return [toResult({ id, name: nameOfCall(state, id), ok: data.success === true, output }, exitCode)];
  }
  if (type === "session.error" || type === "model.call_failure") {
    const reason = text(data.message) || text(data.errorMessage) || "the model call failed";
    state.likelyEnd = toStreamEnd(state, { status: number(data.statusCode) ?? statusIn(reason), message: reason });
    return [problem("model", reason)];
  }
  if (type === "assistant.idle") {
    endStream(state, state.likelyEnd?.error ?? null);
    return [];
  }
  if (type === "result") {
    const error = state.likelyEnd?.error ?? { status: null, message: `exit code ${line.exitCode}` };
    endStream(state, line.exitCode === 0 ? null : error);
    return [];
  }
  if (line.ephemeral !== true && !linesWithoutNews.test(type)) state.unknown.add(type);
  return [];
}
