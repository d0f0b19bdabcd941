import type { Command, ParsedScript, SyntaxNode, Word, WordPart } from "unbash";
import { type HttpCall, queryOf, toUrlOfAnyHost } from "./http-call.ts";
import { type Literal, parseJson, unknownPart, unresolved } from "./literals.ts";
import { commandsOf } from "./shell-samples.ts";

/** Short options of curl that take a value, in the same word or in the next. */
const shortWithValue = new Set("AbcCdDeEFhHKmoPQrtTuUwxXyYz");
/** Long options of curl that are read with their value. The value of any other option is read as an address, and is left out if it isn't one. */
const longWithValue = new Set(
  `aws-sigv4 cacert cert config connect-timeout connect-to cookie data data-ascii data-binary data-raw data-urlencode form form-string
header json key max-time oauth2-bearer output proxy referer request resolve retry upload-file url url-query user user-agent
write-out`.split(/\s+/),
);
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
  // null: not a terminal session. In a terminal session, the lines of the commands are unknown, because the output between them is left out.
  const commands = commandsOf(code);
  // A shell would read a placeholder in angle brackets as a redirection.
  const source = (commands ?? code).replace(/<[A-Za-z][^<>\n|&;]{0,60}>/g, unknownPart);
  const calls: HttpCall[] = [];
  const variables = new Map<string, string>();
  const visit = (node: SyntaxNode) => {
    if (node.type === "Command") {
      // An assignment in front of a command applies only to this command.
      for (const part of node.name === undefined ? node.prefix : [])
        if (part.type === "Assignment" && part.name !== undefined && part.value?.type === "Word") {
          const value = textOf(part.value, variables);
          variables.set(part.name, value.length > maxVariableChars ? unknownPart : value);
        }
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

/** Variables with a longer value are unknown. Each variable may repeat others, so their length could be exponential. */
const maxVariableChars = 2000;

/** The text of a word. Parts that only the shell knows are unknown. */
function textOf(word: Word, variables: Map<string, string>): string {
  const expand = (part: WordPart): string => {
    if (part.type === "DoubleQuoted" || part.type === "LocaleString") return part.parts.map(expand).join("");
    if (part.type === "SimpleExpansion") return variables.get(part.text.slice(1)) ?? unknownPart;
    if (part.type === "ParameterExpansion")
      return (part.operation === undefined ? variables.get(part.parameter) : undefined) ?? unknownPart;
    return "value" in part ? part.value : unknownPart;
  };
  return word.parts === undefined ? word.value : word.parts.map(expand).join("");
}

type Option = { name: string; value: string };

/** The options of a command, by their long names. A word that belongs to no option is a `url`. */
function optionsOf(words: string[]): Option[] {
  const options: Option[] = [];
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift())
    if (word.startsWith("--") && word.length > 2) options.push(toLongOption(word, rest));
    else if (word.startsWith("-") && word.length > 1) options.push(...toShortOptions(word, rest));
    else options.push({ name: "url", value: word });
  return options;
}

/** Takes the option's value from `rest`, unless it is in the same word. */
function toLongOption(word: string, rest: string[]): Option {
  const [name = "", ...values] = word.slice(2).split("=");
  if (values.length > 0) return { name, value: values.join("=") };
  return { name, value: longWithValue.has(name) ? (rest.shift() ?? "") : "" };
}

/**
 * The options of a word such as `-sXPOST`. The last option may have a value, in the same word or at the start of `rest`. The value is removed from
 * `rest`.
 */
function toShortOptions(word: string, rest: string[]): Option[] {
  const letters = [...word].slice(1);
  const valueIndex = letters.findIndex((letter) => shortWithValue.has(letter));
  const flags = valueIndex < 0 ? letters : letters.slice(0, valueIndex);
  const options = flags.map((letter): Option => ({ name: longNames[letter] ?? letter, value: "" }));
  if (valueIndex < 0) return options;
  const letter = letters[valueIndex]!;
  const value = letters.slice(valueIndex + 1).join("") || (rest.shift() ?? "");
  return [...options, { name: longNames[letter] ?? letter, value }];
}

function callsOfCommand(command: Command, variables: Map<string, string>, line: number): HttpCall[] {
  if (command.name === undefined || textOf(command.name, variables) !== "curl") return [];
  const words = command.suffix.flatMap((part) => (part.type === "Word" ? [textOf(part, variables)] : []));
  const hasUnknownWords = words.some((word) => word === unknownPart);
  // `--next` separates the options of two requests.
  const requests = words.join("\0").split(/\0(?:--next|-:)\0/);
  return requests.flatMap((request) => callOf(optionsOf(request.split("\0")), hasUnknownWords, line));
}

/** The method of a request that names none. */
function defaultMethod(has: (option: RegExp) => boolean): string {
  if (has(/^head$/)) return "HEAD";
  if (has(/^get$/)) return "GET";
  if (has(/^upload-file$/)) return "PUT";
  return has(dataOption) || has(uploadOption) ? "POST" : "GET";
}

const dataOption = /^(?:data(?:-.*)?|json)$/;
const uploadOption = /^(?:form(?:-string)?|upload-file)$/;
const credentialOption = /^(?:user|netrc.*|oauth2-bearer|cookie|cert|config|aws-sigv4|negotiate|ntlm|digest)$/;

/** `hasUnknownWords`: some words are only known to the shell. */
function callOf(options: Option[], hasUnknownWords: boolean, line: number): HttpCall[] {
  const valuesOf = (pattern: RegExp) => options.filter(({ name }) => pattern.test(name)).map(({ value }) => value);
  const has = (pattern: RegExp) => options.some(({ name }) => pattern.test(name));
  const data = valuesOf(dataOption);
  const isDataInQuery = has(/^get$/);
  const method =
    valuesOf(/^request$/)
      .at(-1)
      ?.toUpperCase() ?? defaultMethod(has);
  if (method.includes(unknownPart)) return [];
  const sentBody = has(uploadOption) || hasUnknownWords ? unresolved : bodyOf(data);
  const headerLines = valuesOf(/^header$/);
  const headers = new Set(headerLines.map((header) => header.split(/[:;]/)[0]!.trim().toLowerCase()));
  if (has(/^json$/)) headers.add("content-type");
  const hasUnknownHeaders =
    hasUnknownWords ||
    headerLines.some((header) => header.startsWith("@") || header.split(/[:;]/)[0]!.includes(unknownPart));
  const hasCredentials = has(credentialOption);
  // Without a header for its type, curl sends data as a form.
  const isForm =
    !hasUnknownHeaders &&
    !headers.has("content-type") &&
    !isDataInQuery &&
    data.length > 0 &&
    data.every((value) => /^\w[\w.[\]-]*=/.test(value));
  return valuesOf(/^url$/).flatMap((address) => {
    // If the address is a folder, curl adds the name of the uploaded file.
    const file = address.endsWith("/") && has(/^upload-file$/) ? unknownPart : "";
    const url = toUrlOfAnyHost(address + file);
    if (url === null) return [];
    const query = queryOf(url);
    for (const value of [...(isDataInQuery ? data : []), ...valuesOf(/^url-query$/)])
      for (const part of value.split("&")) {
        const [name = "", ...values] = part.split("=");
        query?.add(name);
        if (values.length > 0) url.searchParams.append(name, values.join("="));
      }
    const hasUnknownNames = hasUnknownWords || [...(query ?? [])].some((name) => name.includes(unknownPart));
    return [
      {
        method,
        url,
        line,
        query: hasUnknownNames ? null : query,
        headers: hasUnknownHeaders ? null : headers,
        hasCredentials: hasCredentials || url.username !== "",
        body: isDataInQuery ? undefined : sentBody,
        ...(isForm && { isForm }),
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
