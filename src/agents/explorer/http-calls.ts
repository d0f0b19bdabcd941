import type { CodeSample } from "../page.ts";
import { callsOfProgram } from "./client-calls.ts";
import { callsOfCommands } from "./curl.ts";
import { type HttpCall, queryOf, toUrl } from "./http-call.ts";
import { languageOf, maxSampleChars } from "./inferred-languages.ts";
import { markUnknownParts, parseJson, unresolved } from "./literals.ts";

const shellLanguage = /^(?:sh|bash|shell|zsh|console|terminal|shell-session|shellsession|curl|cmd)$/;
const programLanguage = {
  script: /^(?:m?js|cjs|javascript|node|jsx|m?ts|cts|typescript|tsx)$/,
  python: /^(?:python3?|py3?|pycon)$/,
};

/** The calls of APIs in a sample, in the order in which it has them. */
export async function callsOf(sample: CodeSample): Promise<HttpCall[]> {
  const { code } = sample;
  if (code.length > maxSampleChars) return [];
  const name = /https?:/.test(code) ? languageOf(sample) : (sample.language ?? "");
  if (name === "http") return callOfMessage(code);
  if (programLanguage.script.test(name)) return callsOfProgram("script", code);
  if (programLanguage.python.test(name)) return callsOfProgram("python", code);
  if (/\bcurl\s/.test(code) && (name === "" || shellLanguage.test(name) || !/[;{]\s*$/m.test(code)))
    return callsOfCommands(code);
  if (name === "" && /\bfetch\(/.test(code)) return callsOfProgram("script", code);
  return callsOfMethods(code);
}

const methods = "get|post|put|patch|delete|head|options";

/** Calls in any other language, by functions that are named like methods: only the method and the URL are known. */
function callsOfMethods(code: string): HttpCall[] {
  const text = code.replace(/^[ \t]*(?:\/\/|#|--|\*).*$/gm, (comment) => " ".repeat(comment.length));
  const pattern = new RegExp(
    `\\.(${methods})\\(\\s*["'](https?://[^"'\\s]+)["']|\\(\\s*["'](${methods})["'],\\s*["'](https?://[^"'\\s]+)["']`,
    "gi",
  );
  return [...text.matchAll(pattern)].flatMap((match) => {
    const url = toUrl(match[2] ?? match[4] ?? "");
    const method = (match[1] ?? match[3] ?? "").toUpperCase();
    const line = text.slice(0, match.index).split("\n").length - 1;
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
  const text = bodies.join("\n\n").trim();
  const body = text === "" ? undefined : text.startsWith("{") ? parseJson(markUnknownParts(text)) : unresolved;
  return [{ method, url, query: queryOf(url), headers: new Set(headers.keys()), hasCredentials: false, body, line: 0 }];
}
