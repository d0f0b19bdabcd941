import { decodePercent } from "../../net/percent.ts";
import type { Part, RequestAction } from "./action.ts";
import type { ShellCommand } from "./shell.ts";

type RequestFields = { method: string | null; url: string; headers?: [string, string][]; body?: string | null };

/** A request as parts. The host of a path alone is unknown. */
export function toRequest({ method, url, headers = [], body = null }: RequestFields, source: string): RequestAction {
  const parsed = URL.parse(/^\w+:\/\//.test(url) ? url : `http://unknown${url.startsWith("/") ? "" : "/"}${url}`);
  const parts: Part[] = method === null ? [] : [{ role: "method", key: "", value: method.toUpperCase() }];
  if (parsed && parsed.host !== "unknown") parts.push({ role: "host", key: "", value: parsed.origin });
  if (parsed) {
    parts.push({ role: "path", key: "", value: decodePercent(parsed.pathname) ?? parsed.pathname });
    for (const [key, value] of parsed.searchParams) parts.push({ role: "query", key, value });
  }
  for (const [name, value] of headers) parts.push({ role: "header", key: name.toLowerCase(), value: value.trim() });
  if (body !== null && body !== "") parts.push(...bodyParts(body));
  return { kind: "request", parts, source };
}

/** The fields of a JSON or form body, or the whole body. */
function bodyParts(body: string): Part[] {
  const fields = jsonFields(body) ?? formFields(body);
  return fields?.map(([key, value]) => ({ role: "field", key, value })) ?? [{ role: "body", key: "", value: body }];
}

function jsonFields(body: string): [string, string][] | null {
  try {
    const value: unknown = JSON.parse(body);
    return value !== null && typeof value === "object" ? flatten(value, "") : null;
  } catch {
    return null;
  }
}

function flatten(value: unknown, path: string): [string, string][] {
  if (value === null || typeof value !== "object" || Object.keys(value).length === 0)
    return path === "" ? [] : [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([key, each]) => {
    // The items of a list stand for each other.
    const name = Array.isArray(value) ? path : path === "" ? key : `${path}.${key}`;
    return flatten(each, name);
  });
}

function formFields(body: string): [string, string][] | null {
  if (!/^[\w.[\]-]+=[^\s&]*(&[\w.[\]-]+=[^&]*)*$/.test(body)) return null;
  return [...new URLSearchParams(body)].map(([key, value]) => [key, JSON.stringify(value)]);
}

/** Options of curl and wget that have a value, as letters and as words. */
const lettersWithValue = "XHdFuoAebTmwxcKEQrYyzCDPU";
const wordsWithValue =
  /^--(request|header|data(-raw|-binary|-urlencode|-ascii)?|json|form(-string)?|user|output|user-agent|referer|cookie(-jar)?|url|upload-file|max-time|connect-timeout|retry(-delay|-max-time)?|write-out|proxy|cacert|cert|key|resolve|method|post-data|body-data|post-file|output-document|timeout|tries)$/;

type CommandOptions = { values: Map<string, string[]>; flags: Set<string>; operands: string[] };

function optionsOf(words: string[]): CommandOptions {
  const options: CommandOptions = { values: new Map(), flags: new Set(), operands: [] };
  const add = (name: string, value: string) => options.values.set(name, [...(options.values.get(name) ?? []), value]);
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    const [, long, value] = /^(--[\w-]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (long !== undefined) {
      if (value !== undefined) add(long, value);
      else if (wordsWithValue.test(long)) add(long, words[++i] ?? "");
      else options.flags.add(long);
    } else if (/^-\w/.test(word)) {
      for (let j = 1; j < word.length; j++) {
        const letter = `-${word[j]}`;
        if (!lettersWithValue.includes(word[j]!)) options.flags.add(letter);
        else {
          add(letter, word.slice(j + 1) || (words[++i] ?? ""));
          break;
        }
      }
    } else options.operands.push(word);
  }
  return options;
}

const dataOptions = ["-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode", "--json"];
const isAddress = (word: string) =>
  /^(https?:\/\/|\$\w+\/|\$\{\w+\}\/|localhost[:/]|[\w-]+(\.[\w-]+)+[:/])/i.test(word);

/** The requests of a command that sends some; none for other programs. */
export function requestsOf({ words, source }: ShellCommand): RequestAction[] {
  const program = words[0]?.replace(/^.*\//, "") ?? "";
  if (program === "http" || program === "https" || program === "xh") return httpieRequest(words.slice(1), source);
  if (program !== "curl" && program !== "wget") return [];
  const { values, flags, operands } = optionsOf(words.slice(1));
  const all = (...names: string[]) => names.flatMap((name) => values.get(name) ?? []);
  const data = all(...dataOptions, "--post-data", "--body-data");
  const forms = all("-F", "--form", "--form-string");
  const isGet = flags.has("-G") || flags.has("--get");
  const hasBody = (data.length > 0 || forms.length > 0) && !isGet;
  const defaultMethod = () => {
    if (flags.has("-I") || flags.has("--head")) return "HEAD";
    if (all("-T", "--upload-file").length > 0) return "PUT";
    return hasBody ? "POST" : "GET";
  };
  const method = all("-X", "--request", "--method").at(-1) ?? defaultMethod();
  const headers = all("-H", "--header").flatMap((header): [string, string][] => {
    const [, name, value] = /^([^:]+):\s*(.*)$/s.exec(header) ?? [];
    return name === undefined ? [] : [[name, value ?? ""]];
  });
  for (const user of all("-u", "--user")) headers.push(["authorization", `Basic ${user}`]);
  if (all("--json").length > 0) headers.push(["content-type", "application/json"]);
  const body = forms.length > 0 ? forms.join("&") : data.join("&") || null;
  return [...operands.filter(isAddress), ...all("--url")].map((address) => {
    const url = toAddress(isGet && body !== null ? `${address}${address.includes("?") ? "&" : "?"}${body}` : address);
    return toRequest({ method, url, headers, body: isGet ? null : body }, source);
  });
}

/** An address without its variable host, and with a scheme. */
function toAddress(word: string): string {
  const withoutVariable = word.replace(/^\$\{?\w+\}?(?=\/)/, "");
  return /^(https?:\/\/|\/)/i.test(withoutVariable) ? withoutVariable : `http://${withoutVariable}`;
}

function httpieRequest(words: string[], source: string): RequestAction[] {
  const operands = words.filter((word) => !word.startsWith("-"));
  const isMethod = /^[A-Z]+$/.test(operands[0] ?? "");
  const [address = "", ...items] = isMethod ? operands.slice(1) : operands;
  const query = items.filter((item) => item.includes("==")).map((item) => item.replace("==", "="));
  const headers: [string, string][] = [];
  const fields: Record<string, unknown> = {};
  for (const item of items.filter((each) => !each.includes("=="))) {
    const [, name = "", sign, value = ""] = /^([\w.-]+)(:=|=|:)(.*)$/s.exec(item) ?? [];
    if (sign === ":") headers.push([name, value]);
    else if (sign !== undefined) fields[name] = value;
  }
  const body = Object.keys(fields).length > 0 ? JSON.stringify(fields) : null;
  const url = `${toAddress(address)}${query.length > 0 ? `?${query.join("&")}` : ""}`;
  return [toRequest({ method: isMethod ? operands[0]! : body ? "POST" : "GET", url, headers, body }, source)];
}
