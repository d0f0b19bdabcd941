import type { AgentEvent } from "../../agent.ts";
import { type Fields, list, number, object, text } from "../../fields.ts";
import { endStream, message, problem, type StreamState, statusIn, thought, toCall, toResult } from "./stream.ts";

/** For `codex exec --json`. */
export function parseCodexLine(line: Fields, state: StreamState): AgentEvent[] {
  const { type } = line;
  if (type === "thread.started" || type === "turn.started" || type === "item.updated") return [];
  if (type === "turn.completed") {
    endStream(state, null);
    return [];
  }
  if (type === "turn.failed") {
    const reason = text(object(line.error).message);
    endStream(state, { status: statusIn(reason), message: reason });
    return [];
  }
  if (type === "error") return [problem("model", line.message)];
  const item = object(line.item);
  const isStart = type === "item.started";
  const events = parseCall(item, isStart);
  if (events) return events;
  if (isStart) return [];
  if (type !== "item.completed") state.unknown.add(text(type));
  else if (item.type === "reasoning") return thought(item.text);
  else if (item.type === "agent_message") {
    state.lastMessage = text(item.text);
    return message(item.text);
  } else if (item.type === "error") return message(item.message);
  else if (item.type !== "todo_list") state.unknown.add(`item ${text(item.type)}`);
  return [];
}

/** The call or the result of an item that uses a tool; null for any other item. */
function parseCall(item: Fields, isStart: boolean): AgentEvent[] | null {
  const name = text(item.type);
  const id = text(item.id);
  const ok = item.status === "completed";
  if (name === "command_execution") {
    if (isStart) return [toCall(id, name, { command: item.command })];
    return [toResult({ id, name, ok, output: text(item.aggregated_output) }, number(item.exit_code))];
  }
  if (name === "file_change") {
    const changes = list(item.changes);
    if (isStart) return [toCall(id, name, { changes })];
    const paths = changes.map((change) => `${text(object(change).kind)} ${text(object(change).path)}`);
    return [toResult({ id, name, ok, output: paths.join("\n") })];
  }
  if (name === "mcp_tool_call") {
    const tool = `mcp__${text(item.server)}__${text(item.tool)}`;
    if (isStart) return [toCall(id, tool, item.arguments)];
    const output = JSON.stringify(item.result ?? item.error ?? "");
    return [toResult({ id, name: tool, ok: ok && !item.error, output })];
  }
  if (name === "web_search") {
    // Codex reports what the provider did for the model only when it is done.
    if (isStart) return [];
    const { type, url } = object(item.action);
    const isPage = type === "open_page" && typeof url === "string";
    const tool = isPage ? "fetch_page" : undefined;
    const result = toResult({ id, name, ok: null, output: "" }, null, tool);
    if (!isPage) return [toCall(id, name, item), result];
    // The provider read the page, so its text is unknown.
    const detail = { url, chars: 0, form: "html" as const, title: "" };
    return [toCall(id, name, { url }, tool), { type: "milestone", name: "page_read", detail }, result];
  }
  if (name === "collab_tool_call")
    return [isStart ? toCall(id, name, item) : toResult({ id, name, ok: null, output: "" })];
  return null;
}
