import type { EventOf } from "./events.ts";

type Request = { method: string; url: string };

/** A command: its program, its subcommand and its target. */
type Command = { path: string; program: string; verb: string; targets: string[] };

/** What one call tried: its requests and commands, as far as known. */
export type CallActions = { tool: string; requests: Request[]; commands: Command[]; target: string | null };

/** Programs that only inspect or prepare: their success fixes only their own failure. */
const inspectingPrograms = new Set(
  "cd ls echo printf cat pwd true false sleep mkdir touch export set head tail which env wc sort test".split(" "),
);

/** The words of each simple command of a shell line. Quotes keep words together; nothing is expanded. */
function wordsOf(line: string): string[][] {
  const commands: string[][] = [[]];
  for (const [, quoted, single, separator, word] of line.matchAll(
    /"((?:[^"\\]|\\.)*)"|'([^']*)'|(&&|\|\||[;|&\n])|([^\s"';|&]+)/g,
  )) {
    if (separator !== undefined) commands.push([]);
    else commands.at(-1)!.push(quoted ?? single ?? word ?? "");
  }
  return commands.filter((words) => words.length > 0);
}

/** Programs that send requests. They are compared by request. */
const isClient = (program: string) => /^(curl|wget|http|https)$/.test(program);
const isAddress = (word: string) => /^https?:\/\//i.test(word);

/** The simple commands of a shell line, without leading variable assignments. */
export function commandsOf(line: string): Command[] {
  return wordsOf(line).flatMap((all) => {
    const words = all.slice(all.findIndex((word) => !/^\w+=|^(sudo|time|exec|command|nohup)$/.test(word)));
    const [path = ""] = words;
    if (/^\w+=/.test(path)) return [];
    const rest = words.slice(1);
    const operands = rest.filter((word) => !word.startsWith("-") && !/^[<>]|^\d?>/.test(word));
    const methodIndex = rest.findIndex((word) => /^(-X|--request)$/.test(word));
    const isCurl = isClient(path.replace(/^.*\//, ""));
    const sends = rest.some((word) => /^(-d|--data.*|--json|-F|--form)$/.test(word));
    const verb = isCurl
      ? methodIndex < 0
        ? sends
          ? "POST"
          : "GET"
        : (rest[methodIndex + 1] ?? "")
      : (operands[0] ?? "");
    const targets = isCurl ? rest.filter(isAddress) : operands.slice(1);
    return [{ path, program: path.replace(/^.*\//, ""), verb, targets }];
  });
}

/** What a call tried; `observed` are the requests seen during the call. */
export function actionsOf({ tool, input }: EventOf<"tool_call">, observed: Request[]): CallActions {
  const text = (name: string) => (typeof input?.[name] === "string" ? (input[name] as string) : null);
  const commands = commandsOf(text("command") ?? "");
  const url = text("url");
  const commandRequests = commands.flatMap(({ program, verb, targets }) =>
    isClient(program) ? targets.map((target) => ({ method: verb, url: target })) : [],
  );
  const toolRequest = url === null ? [] : [{ method: (text("method") ?? "GET").toUpperCase(), url }];
  return {
    tool,
    requests: [...observed, ...commandRequests, ...toolRequest],
    commands,
    target: text("path") ?? text("ref"),
  };
}

/** Whether a program only inspects, prints or prepares, or sends requests, which are known by themselves. */
export const isInspection = (program: string): boolean => inspectingPrograms.has(program) || isClient(program);
