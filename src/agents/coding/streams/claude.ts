import type { AgentEvent } from "../../agent.ts";
import {
  exitCodeIn,
  type Fields,
  list,
  message,
  number,
  object,
  problem,
  type StreamEnd,
  type StreamParser,
  statusIn,
  text,
  textOf,
  thought,
  toCall,
  toResult,
} from "./stream.ts";

/** For `claude -p --output-format stream-json`, which Qwen Code writes as well. */
export function createClaudeParser(): StreamParser {
  const names = new Map<string, string>();
  const unknown = new Set<string>();
  let end: StreamEnd | null = null;

  function takeBlock(role: unknown, block: Fields): AgentEvent[] {
    if (block.type === "thinking") return thought(block.thinking);
    if (block.type === "redacted_thinking") return [];
    if (block.type === "text") return role === "assistant" ? message(block.text) : [];
    if (block.type === "tool_use") {
      names.set(text(block.id), text(block.name));
      return [toCall(text(block.id), text(block.name), block.input)];
    }
    if (block.type === "tool_result") {
      const id = text(block.tool_use_id);
      const said = textOf(block.content);
      const name = names.get(id) ?? "unknown";
      const isShell = name === "Bash" || name === "run_shell_command";
      const ok = block.is_error !== true;
      return [toResult({ id, name, ok, said }, isShell ? (ok ? 0 : exitCodeIn(said)) : null)];
    }
    if (block.type !== "image") unknown.add(`content ${block.type}`);
    return [];
  }

  return {
    unknown,
    end: () => end,
    take(line) {
      if (line.type === "assistant" || line.type === "user") {
        const { content, model } = object(line.message);
        // Messages of Claude Code itself, when no model answered, are repeated in the result.
        if (model === "<synthetic>") return [];
        return list(content).flatMap((block) => takeBlock(line.type, object(block)));
      }
      if (line.type === "system")
        return line.subtype === "api_retry" ? [problem("model", `${line.error} ${line.error_status ?? ""}`)] : [];
      if (line.type === "result") {
        const said = text(line.result);
        const status = number(line.api_error_status) ?? statusIn(said);
        const error = line.is_error === true ? { status, message: said || text(line.subtype) } : null;
        end = { text: error ? null : said, error, claimedUsd: number(line.total_cost_usd) };
        return [];
      }
      if (line.type !== "stream_event" && line.type !== "rate_limit_event" && line.type !== "tool_progress")
        unknown.add(text(line.type));
      return [];
    },
  };
}
