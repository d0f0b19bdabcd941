import type { AgentEvent } from "../../agent.ts";
import { type Fields, list, object, text, textOf } from "../../fields.ts";
import { exitCodeIn, message, toCall, toResult } from "../streams/stream.ts";

/** For `~/.pi/agent/sessions/**\/*.jsonl`. */
export function parseStoredPi(lines: Fields[]): AgentEvent[] {
  return lines.flatMap((line) => {
    const { role, content, toolCallId, toolName, isError } = object(line.message);
    if (line.type !== "message") return [];
    if (role === "assistant") return list(content).flatMap((part) => parsePart(object(part)));
    if (role !== "toolResult") return [];
    const result = { id: text(toolCallId), name: text(toolName), ok: isError !== true, output: textOf(content) };
    return [toResult(result, result.ok ? null : exitCodeIn(result.output))];
  });
}

function parsePart({ type, id, name, arguments: input, text: content }: Fields): AgentEvent[] {
  if (type === "toolCall") return [toCall(text(id), text(name), input)];
  return type === "text" ? message(content) : [];
}
