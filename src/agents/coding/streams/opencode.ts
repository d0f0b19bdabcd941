import {
  message,
  number,
  object,
  type StreamEnd,
  type StreamParser,
  text,
  thought,
  toCall,
  toResult,
} from "./stream.ts";

/** For `opencode run --format json`, which reports a call after it finished. */
export function createOpencodeParser(): StreamParser {
  const unknown = new Set<string>();
  let last: string | null = null;
  let usd: number | null = null;
  let end: StreamEnd | null = null;

  return {
    unknown,
    end: () => end,
    take(line) {
      const part = object(line.part);
      if (line.type === "step_start" || line.type === "user") return [];
      if (line.type === "reasoning") return thought(part.text);
      if (line.type === "text") {
        last = text(part.text);
        return message(part.text);
      }
      if (line.type === "tool_use") {
        const { status, input, output, error, metadata } = object(part.state);
        const id = text(part.callID);
        const name = text(part.tool);
        const said = text(output) || text(error);
        const result = { id, name, ok: status === "completed", said };
        return [toCall(id, name, input), toResult(result, number(object(metadata).exit))];
      }
      if (line.type === "step_finish") {
        const cost = number(part.cost);
        if (cost !== null) usd = (usd ?? 0) + cost;
        if (part.reason !== "tool-calls") end = { text: last, error: null, claimedUsd: usd };
        return [];
      }
      if (line.type === "error") {
        const { name, data } = object(line.error);
        const { statusCode, message: why } = object(data);
        const error = { status: number(statusCode), message: text(why) || text(name) || "error" };
        end = { text: null, error, claimedUsd: usd };
        return [];
      }
      unknown.add(text(line.type));
      return [];
    },
  };
}
