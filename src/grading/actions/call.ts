import type { EventOf } from "../events.ts";
import { type Action, partOf, type RequestAction } from "./action.ts";
import { requestsOf, toRequest } from "./request.ts";
import { parseShell, programOf, type ShellCommand } from "./shell.ts";

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
    return requests.length > 0 ? requests : toActions(command, files);
  });
}

/** Programs that run the rest of their line as a command. */
const wrappers = /^(sudo|time|exec|command|nohup|env)$/;
/** Programs that only prepare a place for others. */
const preparingPrograms = new Set("cd mkdir touch export set".split(" "));
const inspectingPrograms = new Set(
  "ls echo printf cat pwd true false sleep head tail which wc sort test grep find stat sed jq [".split(" "),
);

/** Whether a program only looks at something, or prepares a place for others. */
export const onlyHelps = (program: string): boolean =>
  preparingPrograms.has(program) || inspectingPrograms.has(program);

/** The actions that a call was made for. Actions that only look at something or prepare the others are left out. */
export function intentsOf(actions: Action[]): Action[] {
  const isMain = (action: Action) => {
    if (action.kind !== "command") return true;
    const [program] = action.words;
    return program !== undefined && action.changes && !preparingPrograms.has(program);
  };
  return actions.some(isMain) ? actions.filter(isMain) : actions;
}

/** What a command does, with the program text that it runs: an argument, its input, or a file that the agent wrote. */
function toActions(command: ShellCommand, files: Files): Action[] {
  const { variables, input, outputs, source } = command;
  const wrapped = command.words.findIndex((word) => !wrappers.test(word));
  // A wrapper without a command is itself the command.
  const words = command.words.slice(wrapped < 0 ? -1 : wrapped);
  const program = programOf(words);
  const argument = words.find(
    (word, i) => i > 0 && /^(-c|-e|-r|--eval|eval)$/.test(words[i - 1]!) && /[\s(]/.test(word),
  );
  if (argument !== undefined && /^(ba|da|z)?sh$/.test(program)) return actionsOfShell(argument, files);
  // What is written into a file isn't run.
  const inputCode = outputs.length > 0 ? null : input;
  const file = words.slice(1).find((word) => files.has(fileName(word)));
  const fileCode = file === undefined ? null : files.get(fileName(file))!;
  const code = argument ?? inputCode ?? fileCode;
  const changes = outputs.length > 0 || variables.length > 0 || !inspectingPrograms.has(program);
  return [{ kind: "command", words, variables, code, changes, source }];
}

/** A path without the folder of the workspace. */
export const fileName = (path: string): string => path.replace(/^(\/workspace)?\.?\/+/, "").replace(/^\.\//, "");

/** The requests that were seen during a call but that its input doesn't show. */
export const unshownRequests = (seen: { method: string; url: string }[], shown: Action[]): RequestAction[] =>
  seen
    .map(({ method, url }) => toRequest({ method, url }, ""))
    .filter((request) => !shown.some((action) => action.kind === "request" && hasSameTarget(action, request)));

const hasSameTarget = (a: RequestAction, b: RequestAction): boolean =>
  (["method", "host", "path"] as const).every((role) => partOf(a, role) === partOf(b, role));
