import type { Action } from "./action.ts";
import { actionsOfShell } from "./call.ts";
import { requestsInCode } from "./code.ts";
import { requestsOf, toRequest } from "./request.ts";
import { parseShell } from "./shell.ts";

/** Something that a page tells its readers to do, with its lines, counted from 0. `isBlock`: in a code block rather than in prose. */
export type Sample = { action: Action; start: number; end: number; isBlock: boolean };

type Block = { start: number; code: string };

/** The samples of a page: requests, commands and program text in code blocks, and requests and commands in prose. */
export function samplesOf(text: string): Sample[] {
  const lines = text.split("\n");
  const { blocks, prose } = splitPage(lines);
  return [...blocks.flatMap(samplesOfBlock), ...prose.flatMap((at) => samplesOfLine(lines[at]!, at))];
}

function splitPage(lines: string[]): { blocks: Block[]; prose: number[] } {
  const blocks: Block[] = [];
  const prose: number[] = [];
  let open: (Block & { fence: string | null; indent: number }) | null = null;
  const closeBlock = () => {
    if (open) blocks.push(open);
    open = null;
  };
  for (const [at, line] of lines.entries()) {
    const [, indent = "", fence] = /^(\s*)(`{3,}|~{3,})/.exec(line) ?? [];
    if (open?.fence) {
      if (fence?.startsWith(open.fence)) closeBlock();
      else open.code += `${line.slice(Math.min(open.indent, /^\s*/.exec(line)![0].length))}\n`;
    } else if (fence !== undefined) {
      closeBlock();
      open = { start: at + 1, code: "", fence, indent: indent.length };
    } else if (/^( {4}|\t)/.test(line) && (open !== null || (lines[at - 1] ?? "").trim() === "")) {
      open ??= { start: at, code: "", fence: null, indent: 4 };
      open.code += `${line.replace(/^( {4}|\t)/, "")}\n`;
    } else if (line.trim() === "" && open) open.code += "\n";
    else {
      closeBlock();
      prose.push(at);
    }
  }
  closeBlock();
  return { blocks, prose };
}

const linesBefore = (code: string, at: number) => code.slice(0, at).split("\n").length - 1;

function samplesOfBlock({ start, code }: Block): Sample[] {
  // A prompt is no part of a command.
  const script = code.replace(/^(\s*)[$%❯](?=\s)/gm, (_, space: string) => `${space} `);
  const at = (from: number, to: number) => ({
    start: start + linesBefore(code, from),
    end: start + linesBefore(code, to),
    isBlock: true,
  });
  return [
    ...parseShell(script).flatMap((command) =>
      (requestsOf(command).length > 0 ? requestsOf(command) : actionsOfShell(command.source)).map((action) => ({
        action,
        ...at(command.start, command.end),
      })),
    ),
    ...httpMessages(code).map(({ action, from, to }) => ({ action, ...at(from, to) })),
    ...requestsInCode(code).map(({ action, start: from, end }) => ({ action, ...at(from, end) })),
    { action: { kind: "code", code, source: code }, ...at(0, code.length) },
  ];
}

/** Requests written as HTTP: a line with method and path, headers, and a body after an empty line. */
function httpMessages(code: string) {
  const message =
    /^[ \t]*(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)[ \t]+(\S+)(?:[ \t]+HTTP\/[\d.]+)?[ \t]*\n?((?:[\w-]+:[^\n]*\n?)*)(?:\n(?=[[{\w])([\s\S]*?)(?=\n\s*\n|\n(?:GET|POST|PUT|PATCH|DELETE)\s|(?![\s\S])))?/gm;
  return [...code.matchAll(message)].map((match) => {
    const [whole, method = "", target = "", head = "", body] = match;
    const headers = head.split("\n").flatMap((line): [string, string][] => {
      const [, name, value = ""] = /^([\w-]+):\s*(.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, value]];
    });
    const host = headers.find(([name]) => /^host$/i.test(name))?.[1];
    const url = host && target.startsWith("/") ? `https://${host}${target}` : target;
    const others = headers.filter(([name]) => !/^host$/i.test(name));
    const action = toRequest({ method, url, headers: others, body: body?.trim() }, whole.trim());
    return { action, from: match.index, to: match.index + whole.trimEnd().length };
  });
}

/** A request or command in prose or in a table: a method with a path, or inline code with several words. */
function samplesOfLine(line: string, at: number): Sample[] {
  const place = { start: at, end: at, isBlock: false };
  const plain = line.replace(/[`*|]/g, " ");
  const requests = [
    ...plain.matchAll(/\b(GET|POST|PUT|PATCH|DELETE|HEAD)\s+(?:to\s+)?((?:https?:\/\/|\/)[^\s,;)]*[\w/}>])/g),
  ];
  const pathsOnly = requests.length > 0 ? [] : [...line.matchAll(/`((?:https?:\/\/[^\s`]+)|\/[\w{}:.-][^\s`]*)`/g)];
  const spans = [...line.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code).filter((code) => /\w\s+\S/.test(code));
  return [
    ...parseShell(line.replace(/^\s*[$%❯]\s/, "")).flatMap((command) =>
      requestsOf(command).map((action) => ({ action, ...place })),
    ),
    ...requests.map(([source, method = "", url = ""]) => ({ action: toRequest({ method, url }, source), ...place })),
    ...pathsOnly.map(([source, url = ""]) => ({ action: toRequest({ method: null, url }, source), ...place })),
    ...spans.flatMap((code) => [
      ...actionsOfShell(code).map((action) => ({ action, ...place })),
      { action: { kind: "code" as const, code, source: code }, ...place },
    ]),
  ];
}
