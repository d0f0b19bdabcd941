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

/** Whether two words may refer to the same thing: equal, contained in each other, with the same start, or both IDs. */
function isSimilar(a: string, b: string): boolean {
  if (a === b) return true;
  if (Math.min(a.length, b.length) >= 4 && (a.includes(b) || b.includes(a))) return true;
  if (/\d/.test(a) && /\d/.test(b) && !/^v\d+$/i.test(a) && !/^v\d+$/i.test(b)) return true;
  const prefixLength = Math.min(a.length, b.length, 4);
  return prefixLength >= 3 && a.slice(0, prefixLength).toLowerCase() === b.slice(0, prefixLength).toLowerCase();
}

/** Segments that only mount or version an API: agents that guess a path vary these. */
const isApiPrefix = (segment: string) => /^(v\d+(\.\d+)?|api|rest)$/i.test(segment);

/** The same method, host and path, apart from mounts; one segment may be similar rather than equal, or one may be added. */
function isSameRequest(a: Request, b: Request): boolean {
  const [firstUrl, secondUrl] = [URL.parse(a.url), URL.parse(b.url)];
  if (firstUrl === null || secondUrl === null || firstUrl.host !== secondUrl.host) return false;
  if (a.method.toUpperCase() !== b.method.toUpperCase()) return false;
  const [first, second] = [firstUrl, secondUrl].map(({ pathname }) => pathname.split("/").filter(Boolean)) as [
    string[],
    string[],
  ];
  const [firstPath, secondPath] = [first, second].map((words) => words.filter((word) => !isApiPrefix(word)).join("/"));
  if (firstPath !== "" && firstPath === secondPath) return true;
  const [long, short] = first.length >= second.length ? [first, second] : [second, first];
  if (long.length === short.length) {
    const different = long.flatMap((word, i) => (word === short[i] ? [] : [[word, short[i]!] as const]));
    return different.length === 0 || (different.length === 1 && isSimilar(...different[0]!));
  }
  if (long.length !== short.length + 1 || short.length === 0) return false;
  return long.some((_, i) => long.toSpliced(i, 1).every((word, at) => word === short[at]));
}

/** The same program and subcommand, with the same target if there is one. */
function isSameCommand(a: Command, b: Command): boolean {
  if (a.program !== b.program || isClient(a.program)) return false;
  if (inspectingPrograms.has(a.program)) return a.verb === b.verb && a.targets.join(" ") === b.targets.join(" ");
  if (a.verb !== b.verb && !isSimilar(a.verb, b.verb)) return false;
  const [first, second] = [a.targets, b.targets];
  return first.length === 0 || second.length === 0 || first.some((x) => second.some((y) => isSimilar(x, y)));
}

/** Whether a later call retries what a failed call tried. */
export function isRetry(failed: CallActions, later: CallActions): boolean {
  if (failed.requests.length > 0) {
    if (failed.requests.some((x) => later.requests.some((y) => isSameRequest(x, y)))) return true;
    if (failed.commands.length === 0) return false;
  }
  if (failed.commands.length > 0) {
    const realWork = failed.commands.filter(({ program }) => !inspectingPrograms.has(program));
    const commands = realWork.length > 0 ? realWork : failed.commands;
    return commands.some((x) => later.commands.some((y) => isSameCommand(x, y)));
  }
  return failed.tool === later.tool && failed.target === later.target;
}

/** Whether a call does more than inspect, print or read docs, whichever program reads them. */
export const isRealWork = ({ commands, requests }: CallActions, isProduct: (request: Request) => boolean): boolean =>
  commands.length + requests.length === 0 ||
  requests.some(isProduct) ||
  commands.some(
    ({ program, targets }) => !inspectingPrograms.has(program) && !(isClient(program) && targets.length > 0),
  );
