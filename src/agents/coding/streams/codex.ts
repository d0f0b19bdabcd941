import {
  list,
  message,
  number,
  object,
  problem,
  type StreamEnd,
  type StreamParser,
  statusIn,
  text,
  thought,
  toCall,
  toResult,
} from "./stream.ts";

/** For `codex exec --json`. */
export function createCodexParser(): StreamParser {
  const unknown = new Set<string>();
  let last: string | null = null;
  let end: StreamEnd | null = null;

  return {
    unknown,
    end: () => end,
    take({ type, item: given, error, message: said }) {
      if (type === "thread.started" || type === "turn.started" || type === "item.updated") return [];
      if (type === "turn.completed") {
        end = { text: last, error: null, claimedUsd: null };
        return [];
      }
      if (type === "turn.failed") {
        const why = text(object(error).message);
        end = { text: null, error: { status: statusIn(why), message: why }, claimedUsd: null };
        return [];
      }
      if (type === "error") return [problem("model", said)];
      const item = object(given);
      const kind = text(item.type);
      const id = text(item.id);
      const isStart = type === "item.started";
      const ok = item.status === "completed";
      if (kind === "command_execution") {
        if (isStart) return [toCall(id, kind, { command: item.command })];
        return [toResult({ id, name: kind, ok, said: text(item.aggregated_output) }, number(item.exit_code))];
      }
      if (kind === "file_change") {
        const changes = list(item.changes);
        const paths = changes.map((change) => `${text(object(change).kind)} ${text(object(change).path)}`).join("\n");
        return isStart ? [toCall(id, kind, { changes })] : [toResult({ id, name: kind, ok, said: paths })];
      }
      if (kind === "mcp_tool_call") {
        const name = `mcp__${text(item.server)}__${text(item.tool)}`;
        if (isStart) return [toCall(id, name, item.arguments)];
        return [toResult({ id, name, ok: ok && !item.error, said: JSON.stringify(item.result ?? item.error ?? "") })];
      }
      if (kind === "web_search" || kind === "collab_tool_call")
        return isStart ? [toCall(id, kind, item)] : [toResult({ id, name: kind, ok: true, said: "" })];
      if (isStart) return [];
      if (type !== "item.completed") unknown.add(text(type));
      else if (kind === "reasoning") return thought(item.text);
      else if (kind === "agent_message") {
        last = text(item.text);
        return message(item.text);
      } else if (kind === "error") return message(item.message);
      else if (kind !== "todo_list") unknown.add(`item ${kind}`);
      return [];
    },
  };
}
