import type { EventOf } from "../events.ts";
import type { Facts } from "../facts.ts";
import type { Action } from "./action.ts";
import { actionsOfCall, fileName, unshownRequests } from "./call.ts";
import { parseShell } from "./shell.ts";

type Call = EventOf<"tool_call">;

/** Grading measures a session many times, so its calls are read once. */
const cache = new WeakMap<Call[], Map<Call, Action[]>>();

/** What a call did: as its input shows, and as the requests during it show. */
export function actionsDuring(call: Call, { calls, taskRequests }: Facts): Action[] {
  const actionsByCall = cache.get(calls) ?? readCalls(calls);
  cache.set(calls, actionsByCall);
  const actions = actionsByCall.get(call) ?? [];
  if (call.tool === "fetch_page") return actions;
  const seen = taskRequests.filter(({ id }) => id === call.id);
  return [...actions, ...unshownRequests(seen, actions)];
}

function readCalls(calls: Call[]): Map<Call, Action[]> {
  const files = new Map<string, string>();
  return new Map(
    calls.map((call) => {
      addFiles(call, files);
      return [call, actionsOfCall(call, files)];
    }),
  );
}

/** Adds the files that a call writes: with a here-document, or with a tool, whose fields each agent names in its own way. */
function addFiles({ tool, input }: Call, files: Map<string, string>): void {
  const field = (...names: string[]): string | undefined =>
    names.map((name) => input?.[name]).find((value) => typeof value === "string");
  for (const { input: text, outputs } of parseShell(field("command") ?? ""))
    if (text !== null && outputs[0] !== undefined) files.set(fileName(outputs[0]), text);
  const path = field("path");
  if (tool !== "write_file" || path === undefined) return;
  const name = fileName(path);
  const text = field("text", "content", "file_text");
  const before = field("old_string", "oldString", "old_str");
  const after = field("new_string", "newString", "new_str");
  if (text !== undefined) files.set(name, text);
  else if (before !== undefined && after !== undefined) {
    const edited = (files.get(name) ?? before).replace(before, () => after);
    files.set(name, edited);
  }
}
