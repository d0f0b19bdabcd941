import type { AgentEvent } from "../../agent.ts";
import { type Fields, list, object, text, textOf } from "../../fields.ts";
import { exitCodeIn, message, toCall, toResult } from "../streams/stream.ts";

/**
 * For `~/.gemini/tmp/*\/chats/session-*`. The file has one object with all messages, or lines. Of several lines with the same ID, the last one is
 * complete.
 */
export function parseStoredGemini(lines: Fields[]): AgentEvent[] {
  const messages = lines
    .flatMap((line) => [line, ...list(line.messages), ...list(object(line.$set).messages)])
    .map(object)
    .filter(({ id, type }) => typeof id === "string" && type === "gemini");
  return [...new Map(messages.map((each) => [text(each.id), each])).values()].flatMap(({ content, toolCalls }) => [
    ...message(textOf(content)),
    ...list(toolCalls).flatMap((call) => parseCall(object(call))),
  ]);
}

function parseCall({ id, name, args, status, result }: Fields): AgentEvent[] {
  const { output, error } = object(object(object(list(result)[0]).functionResponse).response);
  const call = { id: text(id), name: text(name), ok: status === "success", output: text(output) || text(error) };
  return [toCall(call.id, call.name, args), toResult(call, exitCodeIn(call.output))];
}
