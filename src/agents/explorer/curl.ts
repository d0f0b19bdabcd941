import type { Command, ParsedScript, SyntaxNode, Word, WordPart } from "unbash";
import { type HttpCall, queryOf, toUrl } from "./http-call.ts";
import { gap, type Literal, parseJson, unresolved } from "./literals.ts";
import { commandsOf } from "./shell-samples.ts";

/** Short options of curl that take a value, in the same word or in the next. */
const shortWithValue = new Set("AbcCdDeEFhHKmoPQrtTuUwxXyYz");
/** Long options of curl whose value may look like a URL or data. Others are told by what follows them. */
const longWithValue =
  /^(?:request|header|data(?:-raw|-binary|-ascii|-urlencode)?|json|form(?:-string)?|upload-file|user|url|url-query|cookie|cert|key|cacert|output|write-out|user-agent|referer|proxy|config|oauth2-bearer|aws-sigv4|max-time|connect-timeout|retry|resolve|connect-to)$/;
const longNames: Record<string, string> = {
  d: "data",
  F: "form",
  H: "header",
  X: "request",
  T: "upload-file",
  u: "user",
  G: "get",
  I: "head",
  b: "cookie",
  E: "cert",
  K: "config",
  n: "netrc",
};

/** The requests of the curl commands in a script or a terminal session. */
export async function callsOfCommands(code: string): Promise<HttpCall[]> {
  const { parse, forEachChild } = await import("unbash");
  // Without its output, a session has other lines.
  const commands = commandsOf(code);
  // A redirection would be what a placeholder in angle brackets is to the shell.
  const source = (commands ?? code).replace(/<[A-Za-z][^<>\n|&;]{0,60}>/g, gap);
  const calls: HttpCall[] = [];
  const variables = new Map<string, string>();
  const visit = (node: SyntaxNode) => {
    if (node.type === "Command") {
      for (const part of node.prefix)
        if (part.type === "Assignment" && part.name !== undefined && part.value?.type === "Word" && !node.name)
          variables.set(part.name, textOf(part.value, variables));
      const line = commands === null ? source.slice(0, node.pos).split("\n").length - 1 : 0;
      calls.push(...callsOfCommand(node, variables, line));
    }
    forEachChild(node, visit);
  };
  let script: ParsedScript;
  try {
    script = parse(source);
  } catch {
    return [];
  }
  visit(script);
  return calls;
}

/** The text of a word, with gaps for what only the shell knows. */
function textOf(word: Word, variables: Map<string, string>): string {
  const expand = (part: WordPart): string => {
    if (part.type === "DoubleQuoted" || part.type === "LocaleString") return part.parts.map(expand).join("");
    if (part.type === "SimpleExpansion") return variables.get(part.text.slice(1)) ?? gap;
    if (part.type === "ParameterExpansion")
      return (part.operation === undefined ? variables.get(part.parameter) : undefined) ?? gap;
    return "value" in part ? part.value : gap;
  };
  return word.parts === undefined ? word.value : word.parts.map(expand).join("");
}

type Option = { name: string; value: string };

/** The options of a command, by their long names; a word that belongs to none is a `url`. */
function optionsOf(words: string[]): Option[] {
  const options: Option[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (word.startsWith("--") && word.length > 2) {
      const [name = "", ...values] = word.slice(2).split("=");
      options.push({
        name,
        value: values.length > 0 ? values.join("=") : longWithValue.test(name) ? (words[++at] ?? "") : "",
      });
    } else if (word.startsWith("-") && word.length > 1) {
      const end = [...word].findIndex((letter, index) => index > 0 && shortWithValue.has(letter));
      const flags = word.slice(1, end < 0 ? undefined : end + 1);
      const value = end < 0 ? "" : word.slice(end + 1) || (words[++at] ?? "");
      for (const [index, flag] of [...flags].entries())
        options.push({ name: longNames[flag] ?? flag, value: end >= 0 && index === flags.length - 1 ? value : "" });
    } else options.push({ name: "url", value: word });
  }
  return options;
}

function callsOfCommand(command: Command, variables: Map<string, string>, line: number): HttpCall[] {
  if (command.name === undefined || textOf(command.name, variables) !== "curl") return [];
  const words = command.suffix.flatMap((part) => (part.type === "Word" ? [textOf(part, variables)] : []));
  const isOpen = words.some((word) => word === gap);
  const requests = words.join("\0").split(/\0(?:--next|-:)\0/);
  return requests.flatMap((request) => callOf(optionsOf(request.split("\0")), isOpen, line));
}

/** `isOpen`: some words are only known to the shell. */
function callOf(options: Option[], isOpen: boolean, line: number): HttpCall[] {
  const valuesOf = (pattern: RegExp) => options.filter(({ name }) => pattern.test(name)).map(({ value }) => value);
  const has = (pattern: RegExp) => options.some(({ name }) => pattern.test(name));
  const data = valuesOf(/^(?:data(?:-.*)?|json)$/);
  const isQuery = has(/^get$/);
  const upload = has(/^(?:form(?:-string)?|upload-file)$/);
  const method =
    valuesOf(/^request$/)
      .at(-1)
      ?.toUpperCase() ??
    (has(/^head$/)
      ? "HEAD"
      : isQuery
        ? "GET"
        : has(/^upload-file$/)
          ? "PUT"
          : data.length > 0 || upload
            ? "POST"
            : "GET");
  if (method.includes(gap)) return [];
  const headerLines = valuesOf(/^header$/);
  const headers = new Set(headerLines.map((header) => header.split(/[:;]/)[0]!.trim().toLowerCase()));
  if (has(/^json$/)) headers.add("content-type");
  const isHeaderOpen = isOpen || headerLines.some((header) => /^@|^[^:;]*\ue000/.test(header));
  const hasCredentials = has(/^(?:user|netrc.*|oauth2-bearer|cookie|cert|config|aws-sigv4|negotiate|ntlm|digest)$/);
  return valuesOf(/^url$/).flatMap((address) => {
    const file = address.endsWith("/") && has(/^upload-file$/) ? gap : "";
    const url = toUrl(address + file);
    if (url === null) return [];
    const query = queryOf(url);
    for (const value of [...(isQuery ? data : []), ...valuesOf(/^url-query$/)])
      for (const part of value.split("&")) query?.add(part.split("=")[0]!);
    return [
      {
        method,
        url,
        line,
        query: isOpen || [...(query ?? [gap])].some((name) => name.includes(gap)) ? null : query,
        headers: isHeaderOpen ? null : headers,
        hasCredentials: hasCredentials || url.username !== "",
        body: isQuery ? undefined : upload || isOpen ? unresolved : bodyOf(data),
      },
    ];
  });
}

/** A form, a file and what only the shell knows are unresolved. */
function bodyOf(data: string[]): Literal | undefined {
  if (data.length === 0) return undefined;
  const [text = ""] = data;
  return data.length === 1 && /^\s*[{[]/.test(text) ? parseJson(text) : unresolved;
}
