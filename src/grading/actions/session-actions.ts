import type { EventOf } from "../events.ts";
import type { Facts } from "../facts.ts";
import type { Action } from "./action.ts";
import { actionsOfCall, fileName, seenRequests } from "./call.ts";
import { parseShell } from "./shell.ts";

type Call = EventOf<"tool_call">;

const actionsOfSession = new WeakMap<Call[], Map<Call, Action[]>>();

/** What a call did: as its input shows, and as the requests during it show. */
export function actionsDuring(call: Call, { calls, taskRequests }: Facts): Action[] {
  const known = actionsOfSession.get(calls) ?? readCalls(calls);
  actionsOfSession.set(calls, known);
  const actions = known.get(call) ?? [];
  if (call.tool === "fetch_page") return actions;
  return [
    ...actions,
    ...seenRequests(
      taskRequests.filter(({ id }) => id === call.id),
      actions,
    ),
  ];
}

/** Grading measures a session many times, so its calls are read once. */
function readCalls(calls: Call[]): Map<Call, Action[]> {
  const files = new Map<string, string>();
  return new Map(
    calls.map((call) => {
      addFiles(call, files);
      return [call, actionsOfCall(call, files)];
    }),
  );
}

/** The files that a call writes: with a tool, or with a here-document. */
function addFiles({ tool, input }: Call, files: Map<string, string>): void {
  const text = (...names: string[]) =>
    names.map((name) => input?.[name]).find((value) => typeof value === "string") as string | undefined;
  const command = text("command");
  for (const { input: written, outputs } of command === undefined ? [] : parseShell(command))
    if (written !== null && outputs[0] !== undefined) files.set(fileName(outputs[0]), written);
  const path = text("path");
  if (tool !== "write_file" || path === undefined) return;
  const name = fileName(path);
  const whole = text("text", "content", "file_text");
  const [old, next] = [text("old_string", "oldString", "old_str"), text("new_string", "newString", "new_str")];
  if (whole !== undefined) files.set(name, whole);
  else if (old !== undefined && next !== undefined)
    files.set(
      name,
      (files.get(name) ?? old).replace(old, () => next),
    );
}
