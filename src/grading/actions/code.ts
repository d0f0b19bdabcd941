import type { Part, RequestAction } from "./action.ts";
import { toRequest } from "./request.ts";

/** The words of program text: names with their dots, strings, and single signs. */
export const tokensOf = (code: string): string[] =>
  code.match(
    /[\p{L}\p{N}_$@]+(?:[.\-/:]+[\p{L}\p{N}_$@]+)*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|[^\s]/gu,
  ) ?? [];

const methods = "get|post|put|patch|delete|head|options";
/** An address in quotes, after the call, comma, bracket or equals sign that it belongs to. */
const quotedAddress = new RegExp(
  `(?:\\b(${methods}|fetch|request|open|urlopen|axios|ky|got|URI|Request)\\w*\\s*\\(|[,:]|[=(])\\s*[rfbu]?(["'\`])((?:https?://[^"'\`\\s]+|/[\\w{}$:./?=&<>-]+))\\2`,
  "gi",
);

/**
 * The requests that a sample of program text sends: an address in quotes, with the method and the keys of the same
 * statement. Keys of an object named headers or params are headers or query parameters, others are fields.
 */
export function requestsInCode(code: string): { action: RequestAction; start: number; end: number }[] {
  return [...code.matchAll(quotedAddress)].map((match) => {
    const [whole, called = "", , address = ""] = match;
    const end = statementEnd(code, match.index);
    const rest = code.slice(match.index + whole.length, end);
    const before = code.slice(Math.max(0, code.lastIndexOf("\n", match.index)), match.index);
    const methodMatch = new RegExp(
      `\\bmethod["']?\\s*[:=]\\s*["'\`](\\w+)|["'\`](${methods.toUpperCase()})["'\`]`,
    ).exec(before + rest);
    const method =
      methodMatch?.[1] ?? methodMatch?.[2] ?? (new RegExp(`^(${methods})$`, "i").test(called) ? called : null);
    const source = code.slice(match.index, end).trim();
    const request = toRequest({ method, url: address.replace(/\$\{(\w+)\}/g, "{$1}") }, source);
    return { action: { ...request, parts: [...request.parts, ...keysOf(rest)] }, start: match.index, end };
  });
}

/** Where the statement that contains a position ends: at the bracket that closes it, or at the end of a line outside of brackets. */
function statementEnd(code: string, from: number): number {
  let depth = 0;
  for (let at = from; at < code.length; at++) {
    if ("([{".includes(code[at]!)) depth++;
    if (")]}".includes(code[at]!) && --depth <= 0) return at + 1;
    if (code[at] === "\n" && depth <= 0) return at;
  }
  return code.length;
}

const roles: Record<string, Part["role"]> = { headers: "header", params: "query", query: "query" };

/** Keys of object literals and keyword arguments with their values, by the object that they are in. */
function keysOf(text: string): Part[] {
  const parts: Part[] = [];
  const open: (Part["role"] | null)[] = [];
  let pending: string | null = null;
  for (const match of text.matchAll(
    /(["']?)([\w$-]+)\1\s*(?:[:=](?![=>])|(?<=["']\s*)=>)\s*((?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[\w.$-]+)?)|([{[(])|([}\])])/g,
  )) {
    const [, , key, value = "", opening, closing] = match;
    if (opening !== undefined) {
      const inherited = open.at(-1) ?? null;
      open.push(
        opening === "(" && pending === null
          ? inherited
          : (roles[pending ?? ""] ?? (pending === null ? inherited : "field")),
      );
      pending = null;
    } else if (closing !== undefined) open.pop();
    else if (key !== undefined) {
      pending = value === "" || /^(JSON|json)\b/.test(value) ? key : null;
      const role = open.at(-1);
      if (role && pending === null)
        parts.push({ role, key: role === "header" ? key.toLowerCase() : key, value: asValue(role, value) });
    }
  }
  return parts;
}

function asValue(role: Part["role"], value: string): string {
  const text = value.replace(/^["']|["']$/g, "");
  return role !== "field" ? text : /^["']/.test(value) ? JSON.stringify(text) : value;
}
