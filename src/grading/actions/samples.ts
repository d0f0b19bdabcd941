import type { Action, RequestAction } from "./action.ts";
import { actionsOfShell } from "./call.ts";
import { requestsInCode } from "./code.ts";
import { requestsOf, toRequest } from "./request.ts";
import { parseShell } from "./shell.ts";

/** Something that a page tells its readers to do, with its lines, counted from 0. `isBlock`: in a code block rather than in prose. */
export type Sample = { action: Action; start: number; end: number; isBlock: boolean };

/** A code block without its fences. `start`: its first line. */
type Block = { start: number; code: string };

/** The samples of a page: requests, commands and program text in code blocks, and requests and commands in prose. */
export function samplesOf(text: string): Sample[] {
  const lines = text.split("\n");
  const { blocks, prose } = splitPage(lines);
  return [...blocks.flatMap(samplesOfBlock), ...prose.flatMap((at) => samplesOfLine(lines[at]!, at))];
}

/** The code blocks of Markdown, fenced or indented, and the numbers of the other lines. */
function splitPage(lines: string[]): { blocks: Block[]; prose: number[] } {
  const blocks: Block[] = [];
  const prose: number[] = [];
  // `fence` null: a block of lines that are indented by four spaces or a tab.
  let open: (Block & { fence: string | null; indent: number }) | null = null;
  const closeBlock = () => {
    if (open) blocks.push(open);
    open = null;
  };
  for (const [at, line] of lines.entries()) {
    const [, indent = "", fence] = /^(\s*)(`{3,}|~{3,})/.exec(line) ?? [];
    if (open?.fence) {
      if (fence?.startsWith(open.fence)) closeBlock();
      // In a list, the lines of a block are indented like its fence.
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

/** The number of the line that contains a position. */
const lineAt = (code: string, position: number) => code.slice(0, position).split("\n").length - 1;

function samplesOfBlock({ start, code }: Block): Sample[] {
  // A prompt is no part of a command. A space in its place keeps the positions.
  const script = code.replace(/^(\s*)[$%❯](?=\s)/gm, (_, space: string) => `${space} `);
  const toSample = (action: Action, from: number, to: number): Sample => ({
    action,
    start: start + lineAt(code, from),
    end: start + lineAt(code, to),
    isBlock: true,
  });
  return [
    ...parseShell(script).flatMap((command) => {
      const requests = requestsOf(command);
      const actions = requests.length > 0 ? requests : actionsOfShell(command.source);
      return actions.map((action) => toSample(action, command.start, command.end));
    }),
    ...[...httpMessages(code), ...requestsInCode(code)].map(({ action, start, end }) => toSample(action, start, end)),
    toSample({ kind: "code", code, source: code }, 0, code.length),
  ];
}

const requestLine = String.raw`^[ \t]*(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)[ \t]+(\S+)(?:[ \t]+HTTP\/[\d.]+)?[ \t]*\n?`;
const headerLines = String.raw`((?:[\w-]+:[^\n]*\n?)*)`;
/** A body ends before an empty line, the next request, or at the end. */
const bodyEnd = String.raw`\n\s*\n|\n(?:GET|POST|PUT|PATCH|DELETE)\s|(?![\s\S])`;
const body = String.raw`\n(?=[[{\w])([\s\S]*?)(?=${bodyEnd})`;
/** A request as an HTTP message. Groups: method, target, headers and body. */
const httpMessage = new RegExp(`${requestLine}${headerLines}(?:${body})?`, "gm");

/** Requests that are written as HTTP messages, with the range of their characters. */
function httpMessages(code: string): { action: RequestAction; start: number; end: number }[] {
  return [...code.matchAll(httpMessage)].map((match) => {
    const [source, method = "", target = "", head = "", body] = match;
    const headers = head.split("\n").flatMap((line): [string, string][] => {
      const [, name, value = ""] = /^([\w-]+):\s*(.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, value]];
    });
    const isHost = ([name]: [string, string]) => name.toLowerCase() === "host";
    const host = headers.find(isHost)?.[1];
    const url = host && target.startsWith("/") ? `https://${host}${target}` : target;
    const others = headers.filter((header) => !isHost(header));
    const action = toRequest({ method, url, headers: others, body: body?.trim() }, source.trim());
    return { action, start: match.index, end: match.index + source.trimEnd().length };
  });
}

/** A request or command in prose or in a table: a method with a path, or inline code with several words. */
function samplesOfLine(line: string, at: number): Sample[] {
  const toSample = (action: Action): Sample => ({ action, start: at, end: at, isBlock: false });
  const plain = line.replace(/[`*|]/g, " ");
  // `POST /v1/parcels`, or `POST to https://api.acme.dev/v1/parcels`.
  const requests = [
    ...plain.matchAll(/\b(GET|POST|PUT|PATCH|DELETE|HEAD)\s+(?:to\s+)?((?:https?:\/\/|\/)[^\s,;)]*[\w/}>])/g),
  ];
  const paths = requests.length > 0 ? [] : [...line.matchAll(/`((?:https?:\/\/[^\s`]+)|\/[\w{}:.-][^\s`]*)`/g)];
  const spans = [...line.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code).filter((code) => /\w\s+\S/.test(code));
  const actions: Action[] = [
    ...parseShell(line.replace(/^\s*[$%❯]\s/, "")).flatMap(requestsOf),
    ...requests.map(([source, method = "", url = ""]) => toRequest({ method, url }, source)),
    ...paths.map(([source, url = ""]) => toRequest({ method: null, url }, source)),
    ...spans.flatMap((code): Action[] => [...actionsOfShell(code), { kind: "code", code, source: code }]),
  ];
  return actions.map(toSample);
}
