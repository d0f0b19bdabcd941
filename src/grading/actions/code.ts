import type { Part, RequestAction } from "./action.ts";
import { toRequest } from "./request.ts";

const dottedName = String.raw`[\p{L}\p{N}_$@]+(?:[.\-/:]+[\p{L}\p{N}_$@]+)*`;
const doubleQuoted = String.raw`"(?:[^"\\\n]|\\.)*"`;
const singleQuoted = String.raw`'(?:[^'\\\n]|\\.)*'`;
const backQuoted = "`(?:[^`\\\\]|\\\\.)*`";
const token = new RegExp([dottedName, doubleQuoted, singleQuoted, backQuoted, "\\S"].join("|"), "gu");

/** The tokens of program text: names with their dots, strings, and single signs. */
export const tokensOf = (code: string): string[] => code.match(token) ?? [];

const methods = "get|post|put|patch|delete|head|options";
/** `method: "POST"`, or `"POST"` alone. */
const namedMethod = new RegExp(`\\bmethod["']?\\s*[:=]\\s*["'\`](\\w+)|["'\`](${methods.toUpperCase()})["'\`]`);
const methodName = new RegExp(`^(${methods})$`, "i");
const requestFunctions = `${methods}|fetch|request|open|urlopen|axios|ky|got|URI|Request`;
const url = "https?://[^\"'`\\s]+";
const path = "/[\\w{}$:./?=&<>-]+";
/** An address in quotes, after the call, comma, bracket or equals sign that it belongs to: `axios.post("/v1/parcels"`. */
const quotedAddress = new RegExp(
  `(?:\\b(${requestFunctions})\\w*\\s*\\(|[,:=(])\\s*[rfbu]?(["'\`])(${url}|${path})\\2`,
  "gi",
);

/**
 * The requests that a sample of program text sends: an address in quotes, with the method and the keys of the same
 * statement. Keys of an object named headers or params are headers or query parameters, others are fields.
 */
export function requestsInCode(code: string): { action: RequestAction; start: number; end: number }[] {
  return [...code.matchAll(quotedAddress)].map((match) => {
    const [whole, functionName = "", , address = ""] = match;
    const end = statementEnd(code, match.index);
    const rest = code.slice(match.index + whole.length, end);
    const before = code.slice(Math.max(0, code.lastIndexOf("\n", match.index)), match.index);
    const [, assigned, alone] = namedMethod.exec(before + rest) ?? [];
    const method = assigned ?? alone ?? (methodName.test(functionName) ? functionName : null);
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

const quotableKey = String.raw`(["']?)([\w$-]+)\1`;
/** An arrow only follows a key in quotes: after a name, it starts a function. */
const assignment = String.raw`(?:[:=](?![=>])|(?<=["']\s*)=>)`;
/** `name: "a"`, `"name" => 'a'`, `name=a`, `params={` without a value, or a bracket. Groups: quote, key, value, opening and closing bracket. */
const keyOrBracket = new RegExp(
  String.raw`${quotableKey}\s*${assignment}\s*((?:${doubleQuoted}|${singleQuoted}|[\w.$-]+)?)|([{[(])|([}\])])`,
  "g",
);

/** Keys of object literals and keyword arguments with their values. The key of an object determines the role of the keys in it. */
function keysOf(text: string): Part[] {
  const parts: Part[] = [];
  // The role of the keys in each open bracket, the innermost bracket last; null: they are no part of the request.
  const openRoles: (Part["role"] | null)[] = [];
  // A key whose value is in the next bracket.
  let objectKey: string | null = null;
  for (const [, , key, value = "", opening] of text.matchAll(keyOrBracket)) {
    const role = openRoles.at(-1) ?? null;
    if (opening !== undefined) {
      openRoles.push(objectKey === null ? role : (roles[objectKey] ?? "field"));
      objectKey = null;
    } else if (key === undefined) openRoles.pop();
    else {
      // `body: JSON.stringify({`
      objectKey = value === "" || /^(JSON|json)\b/.test(value) ? key : null;
      if (role !== null && objectKey === null)
        parts.push({ role, key: role === "header" ? key.toLowerCase() : key, value: asValue(role, value) });
    }
  }
  return parts;
}

/** The value of a key in program text. The values of fields are JSON, as in a body. */
function asValue(role: Part["role"], value: string): string {
  const text = value.replace(/^["']|["']$/g, "");
  return role === "field" && text !== value ? JSON.stringify(text) : text;
}
