import type { EventOf } from "../events.ts";
import type { Action, CommandAction, RequestAction } from "./action.ts";
import { requestsOf, toRequest } from "./request.ts";
import { parseShell, type ShellCommand } from "./shell.ts";

type Call = EventOf<"tool_call">;

const text = ({ input }: Call, name: string): string | null =>
  typeof input?.[name] === "string" ? (input[name] as string) : null;

/** Files that the agent wrote with its own tools, by path. */
type Files = ReadonlyMap<string, string>;

/** What a call did, as far as its input shows. */
export function actionsOfCall(call: Call, files: Files): Action[] {
  const command = text(call, "command");
  if (command !== null) return actionsOfShell(command, files);
  const url = text(call, "url");
  if (url === null || call.tool === "fetch_page") return [];
  // Input that the tool rejected may have any form.
  const headers = Object.entries(Object(call.input.headers)).flatMap(([name, value]): [string, string][] =>
    typeof value === "string" ? [[name, value]] : [],
  );
  return [toRequest({ method: text(call, "method") ?? "GET", url, headers, body: text(call, "body") }, "")];
}

/** The actions of a shell script. Programs that send requests are requests. */
export function actionsOfShell(script: string, files: Files = new Map()): Action[] {
  return parseShell(script).flatMap((command) => {
    const requests = requestsOf(command);
    return requests.length > 0 ? requests : [toCommand(command, files)].flat();
  });
}

const wrappers = /^(sudo|time|exec|command|nohup|env)$/;
/** Programs that only prepare a place for others. */
const preparingPrograms = new Set("cd mkdir touch export set".split(" "));
const inspectingPrograms = new Set(
  "ls echo printf cat pwd true false sleep head tail which wc sort test grep find stat sed jq [".split(" "),
);

/** The actions that a call was made for: not those that look at something, or prepare the others. */
export function intentsOf(actions: Action[]): Action[] {
  const isMain = (action: Action) =>
    action.kind !== "command" ||
    (action.changes && !preparingPrograms.has(action.words[0] ?? "") && action.words.length > 0);
  return actions.some(isMain) ? actions.filter(isMain) : actions;
}

/** A command with the program text that it runs: an argument, its input, or a file that the agent wrote. */
function toCommand(
  { words: all, variables, input, outputs, source }: ShellCommand,
  files: Files,
): CommandAction | Action[] {
  const words = all.slice(all.findIndex((word) => !wrappers.test(word)));
  const program = words[0]?.replace(/^.*\//, "") ?? "";
  const argument = words.findIndex(
    (word, i) => i > 0 && /^(-c|-e|-r|--eval|eval)$/.test(words[i - 1]!) && /[\s(]/.test(word),
  );
  if (argument > 0 && /^(ba|da|z)?sh$/.test(program)) return actionsOfShell(words[argument]!, files);
  const file = words.slice(1).find((word) => files.has(fileName(word)));
  const inputCode = outputs.length > 0 ? null : input;
  const code =
    argument > 0 ? words[argument]! : (inputCode ?? (file === undefined ? null : files.get(fileName(file))!));
  const changes = outputs.length > 0 || variables.length > 0 || !inspectingPrograms.has(program);
  return { kind: "command", words, variables, code, changes, source };
}

/** A path without the folder of the workspace. */
export const fileName = (path: string): string => path.replace(/^(\/workspace)?\.?\/+/, "").replace(/^\.\//, "");

/** The requests that were seen during a call, apart from those that its input shows. */
export const seenRequests = (seen: { method: string; url: string }[], known: Action[]): RequestAction[] =>
  seen
    .map(({ method, url }) => toRequest({ method, url }, ""))
    .filter(({ parts }) => !known.some((each) => each.kind === "request" && sameStart(each, parts)));

const sameStart = ({ parts }: RequestAction, others: RequestAction["parts"]): boolean =>
  (["method", "host", "path"] as const).every(
    (role) => parts.find((part) => part.role === role)?.value === others.find((part) => part.role === role)?.value,
  );
