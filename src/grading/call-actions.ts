import type { EventOf } from "./events.ts";

type Request = { method: string; url: string };

/** A command: its program, and its subcommand or, if it sends requests, those. */
type Command = { program: string; subcommand: string; requests: Request[] };

/** What may precede the name of a program: variable assignments, and programs that run the rest of the line. */
const assignment = /^\w+=/;
const launcher = /^(sudo|time|exec|command|nohup)$/;

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
const isUrl = (word: string) => /^https?:\/\//i.test(word);

/** The simple commands of a shell line, without leading variable assignments. */
export function commandsOf(line: string): Command[] {
  return wordsOf(line).flatMap((words) => {
    const programIndex = words.findIndex((word) => !assignment.test(word) && !launcher.test(word));
    // Without a program, the last word is the command, such as `time`, unless it is an assignment.
    const [path = "", ...rest] = words.slice(programIndex < 0 ? words.length - 1 : programIndex);
    if (assignment.test(path)) return [];
    const operands = rest.filter((word) => !word.startsWith("-") && !/^[<>]|^\d?>/.test(word));
    const methodIndex = rest.findIndex((word) => /^(-X|--request)$/.test(word));
    const program = path.replace(/^.*\//, "");
    if (!isClient(program)) return [{ program, subcommand: operands[0] ?? "", requests: [] }];
    const hasBody = rest.some((word) => /^(-d|--data.*|--json|-F|--form)$/.test(word));
    const method = methodIndex < 0 ? (hasBody ? "POST" : "GET") : (rest[methodIndex + 1] ?? "");
    return [{ program, subcommand: "", requests: rest.filter(isUrl).map((url) => ({ method, url })) }];
  });
}

/** The first request of a call: one that was seen during it, or else what its input says. `observed`: the requests seen. */
export function firstRequestOf({ input }: EventOf<"tool_call">, observed: Request[]): Request | undefined {
  const text = (name: string) => (typeof input?.[name] === "string" ? (input[name] as string) : null);
  const url = text("url");
  const requests = commandsOf(text("command") ?? "").flatMap((command) => command.requests);
  const toolRequest = url === null ? [] : [{ method: (text("method") ?? "GET").toUpperCase(), url }];
  return [...observed, ...requests, ...toolRequest][0];
}

/** Whether a program only inspects, prints or prepares, or sends requests, which are known by themselves. */
export const isInspection = (program: string): boolean => inspectingPrograms.has(program) || isClient(program);
