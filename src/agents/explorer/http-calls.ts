import type { CodeSample } from "../page.ts";
import { callsOfProgram } from "./client-calls.ts";
import { callsOfCommands } from "./curl.ts";
import { type HttpCall, queryOf, toUrl } from "./http-call.ts";
import { languageOf, maxSampleChars } from "./inferred-languages.ts";
import { type Literal, markUnknownParts, parseJson, unresolved } from "./literals.ts";

const shellLanguage = /^(?:sh|bash|shell|zsh|console|terminal|shell-session|shellsession|curl|cmd)$/;
const programLanguage = {
  script: /^(?:m?js|cjs|javascript|node|jsx|m?ts|cts|typescript|tsx)$/,
  python: /^(?:python3?|py3?|pycon)$/,
};

/** A call of the browser's function, not of another object's method, such as `ENV.fetch("KEY")`. */
const fetchCall = /(?:(?<![\w.])|\b(?:window|globalThis|self)\.)fetch\(/;

/** The calls of APIs in a sample, in their order. The language is inferred only for a sample with a URL, because that takes long. */
export async function callsOf(sample: CodeSample): Promise<HttpCall[]> {
  const { code } = sample;
  if (code.length > maxSampleChars) return [];
  const name = /https?:/.test(code) ? languageOf(sample) : (sample.language ?? "");
  if (name === "http") return callOfMessage(code);
  if (programLanguage.script.test(name)) return callsOfProgram("script", code);
  if (programLanguage.python.test(name)) return callsOfProgram("python", code);
  // Programs of most other languages have lines that end in a semicolon or a brace.
  const mayBeShell = name === "" || shellLanguage.test(name) || !/[;{]\s*$/m.test(code);
  if (mayBeShell && /\bcurl\s/.test(code)) return callsOfCommands(code);
  if (name === "" && fetchCall.test(code)) return callsOfProgram("script", code);
  return callsOfMethods(code);
}

const methods = "get|post|put|patch|delete|head|options";
const address = String.raw`\$?["'](?<url>https?://[^"'\s]+)["']`;

/** A method and a URL in a call or a statement of any language. */
const callPatterns = [
  // `client.post("https://…")`.
  new RegExp(
    String.raw`(?:\.|->|::)(?<method>${methods})(?:Async|AsJsonAsync|JsonAsync|\.new)?\(\s*(?:(?:new\s+)?[\w.:]+\(\s*)?${address}`,
    "gi",
  ),
  // `request("POST", "https://…")`.
  new RegExp(String.raw`[(,]\s*["'](?<method>${methods})["'],\s*${address}`, "gi"),
  // A URL, and later in the statement `.POST(` or `httpMethod = "POST"`.
  new RegExp(
    String.raw`${address}(?:(?!https?:)[^;]){0,400}?(?:\.|\bhttpMethod\s*=\s*")(?<method>GET|POST|PUT|PATCH|DELETE)["(]`,
    "g",
  ),
];

/** A variable that is set to a URL, or to an object that is made from one. */
const addressVariable = new RegExp(
  String.raw`(?<![\w.])\$?(?<name>[A-Za-z_]\w*)[ \t]*:?=[ \t]*(?:(?:new[ \t]+)?[\w.:]+\([ \t]*)?${address}`,
  "g",
);

/** Replaces each variable that is set to a URL, and only once, by that URL in the arguments of calls. */
function withAddresses(code: string): string {
  const addresses = Map.groupBy(code.matchAll(addressVariable), ({ groups }) => groups!.name!);
  return [...addresses].reduce((text, [name, [variable, ...others]]) => {
    if (variable === undefined || others.length > 0) return text;
    return text.replace(
      new RegExp(`(?<=[(,][ \\t]*)\\$?${name}(?=[ \\t]*[,)])`, "g"),
      () => `"${variable.groups!.url!}"`,
    );
  }, code);
}

/** Calls in any other language: only the method and the URL are known. */
function callsOfMethods(code: string): HttpCall[] {
  const text = withAddresses(code.replace(/^[ \t]*(?:\/\/|#|--|\*).*$/gm, (comment) => " ".repeat(comment.length)));
  const matches = callPatterns.flatMap((pattern) => [...text.matchAll(pattern)]);
  return matches
    .sort((a, b) => a.index - b.index)
    .flatMap(({ index, groups }) => {
      const url = toUrl(groups!.url!);
      const method = groups!.method!.toUpperCase();
      const line = text.slice(0, index).split("\n").length - 1;
      // Nothing else about the call is known, so nothing can be said to be missing.
      return url ? [{ method, url, query: null, headers: null, hasCredentials: true, body: unresolved, line }] : [];
    });
}

/** A request as it is sent: `POST /items HTTP/1.1`, then headers, a blank line and a body. */
function callOfMessage(code: string): HttpCall[] {
  const [head = "", ...bodies] = code.trim().split(/\n[ \t]*\n/);
  const [first = "", ...lines] = head.split("\n");
  const [, method = "", target = ""] = /^([A-Z]+)\s+(\S+)(?:\s+HTTP\/[\d.]+)?\s*$/.exec(first) ?? [];
  const headers = new Map(
    lines.map((line) => [line.split(":")[0]!.trim().toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  const url = toUrl(target.startsWith("/") ? `https://${headers.get("host") ?? ""}${target}` : target);
  if (url === null || method === "") return [];
  const body = parseBody(bodies.join("\n\n").trim());
  return [{ method, url, query: queryOf(url), headers: new Set(headers.keys()), hasCredentials: false, body, line: 0 }];
}

function parseBody(text: string): Literal | undefined {
  if (text === "") return undefined;
  return text.startsWith("{") ? parseJson(markUnknownParts(text)) : unresolved;
}
