import type { AgentEvent } from "../../agent.ts";
import { type Fields, list, number, object, text, textOf } from "../../fields.ts";
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
} from "./stream.ts";

/** Tools that run commands. */
const shells = ["Bash", "run_shell_command"];
/** Kinds of lines that say nothing about the session, or only what other lines say too. */
const linesWithoutNews = ["stream_event", "rate_limit_event", "tool_progress"];

/** For `claude -p --output-format stream-json`, which Qwen Code writes as well. */
export function parseClaudeLine(line: Fields, state: StreamState): AgentEvent[] {
  if (line.type === "assistant" || line.type === "user") {
    const { content, model } = object(line.message);
    // Messages of Claude Code itself, when no model answered, are repeated in the result.
    if (model === "<synthetic>") return [];
    const events = list(content).flatMap((block) => parseBlock(line.type, object(block), state));
    // The call that started the subagent.
    const subagent = text(line.parent_tool_use_id);
    return subagent === "" ? events : events.map((event) => ({ ...event, subagent }));
  }
  if (line.type === "system")
    return line.subtype === "api_retry" ? [problem("model", `${line.error} ${line.error_status ?? ""}`)] : [];
  if (line.type === "result") {
    state.lastMessage = text(line.result);
    state.costUsd = number(line.total_cost_usd);
    const errors = list(line.errors).map((each) => text(each) || text(object(each).message));
    const reason = state.lastMessage || errors.filter(Boolean).join("; ") || text(line.subtype);
    const error = { status: number(line.api_error_status) ?? statusIn(reason), message: reason };
    if (line.subtype === "error_max_turns") endStream(state, error, "turn_limit");
    else endStream(state, line.is_error === true ? error : null);
    return list(line.permission_denials).map((denial) => toPermissionQuestion(object(denial)));
  }
  const type = text(line.type);
  if (!linesWithoutNews.includes(type)) state.unknown.add(type);
  return [];
}

/** A call for which Claude Code would have asked for permission. It refuses the call if there is nobody to ask. */
const toPermissionQuestion = ({ tool_name: tool, tool_input: input }: Fields): AgentEvent => ({
  type: "interruption",
  question: `May I use ${text(tool)}: ${JSON.stringify(input ?? {})}?`.slice(0, 1000),
  url: null,
});

function parseBlock(role: unknown, block: Fields, state: StreamState): AgentEvent[] {
  if (block.type === "thinking") return thought(block.thinking);
  if (block.type === "redacted_thinking") return [];
  if (block.type === "text") return role === "assistant" ? message(block.text) : [];
  if (block.type === "tool_use") return [startCall(state, text(block.id), text(block.name), block.input)];
  if (block.type === "tool_result") {
    const id = text(block.tool_use_id);
    const output = textOf(block.content);
    const name = nameOfCall(state, id);
    const ok = block.is_error !== true;
    const exitCode = shells.includes(name) && !ok ? exitCodeIn(output) : null;
    return [toResult({ id, name, ok, output }, exitCode)];
  }
  if (block.type !== "image") state.unknown.add(`content ${block.type}`);
  return [];
}
