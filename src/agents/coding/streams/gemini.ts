import type { AgentEvent } from "../../agent.ts";
import {
  exitCodeIn,
  message,
  object,
  problem,
  type StreamEnd,
  type StreamParser,
  statusIn,
  text,
  toCall,
  toResult,
} from "./stream.ts";

/** For `gemini -o stream-json`, which has no thoughts or exit codes. */
export function createGeminiParser(): StreamParser {
  const names = new Map<string, string>();
  const unknown = new Set<string>();
  let saying = "";
  let last: string | null = null;
  let end: StreamEnd | null = null;

  /** A message arrives in pieces, and ends with the next event of another type. */
  function said(): AgentEvent[] {
    if (saying === "") return [];
    last = saying;
    saying = "";
    return message(last);
  }

  return {
    unknown,
    end: () => end,
    take(line) {
      if (line.type === "init") return [];
      if (line.type === "message") {
        if (line.role === "assistant") saying += text(line.content);
        return [];
      }
      if (line.type === "tool_use") {
        names.set(text(line.tool_id), text(line.tool_name));
        return [...said(), toCall(text(line.tool_id), text(line.tool_name), line.parameters)];
      }
      if (line.type === "tool_result") {
        const id = text(line.tool_id);
        const output = text(line.output) || text(object(line.error).message);
        const ok = line.status === "success";
        return [
          ...said(),
          toResult({ id, name: names.get(id) ?? "unknown", ok, said: output }, ok ? null : exitCodeIn(output)),
        ];
      }
      if (line.type === "error") return [problem("agent", line.message)];
      if (line.type === "result") {
        const events = said();
        const why = text(object(line.error).message) || "error";
        const error = line.status === "success" ? null : { status: statusIn(why), message: why };
        end = { text: error ? null : last, error, claimedUsd: null };
        return events;
      }
      unknown.add(text(line.type));
      return [];
    },
  };
}
