import { decodePercent } from "../../net/percent.ts";
import type { Part, RequestAction } from "./action.ts";
import { programOf, type ShellCommand } from "./shell.ts";

/** `method` null: unknown. `url`: also a path without a host. */
type RequestFields = { method: string | null; url: string; headers?: [string, string][]; body?: string | null };

/** A request as parts. `source`: as it was written, or empty. */
export function toRequest({ method, url, headers = [], body = null }: RequestFields, source: string): RequestAction {
  const unknownHost = "unknown";
  const parsed = URL.parse(/^\w+:\/\//.test(url) ? url : `http://${unknownHost}/${url.replace(/^\//, "")}`);
  const parts: Part[] = method === null ? [] : [{ role: "method", key: "", value: method.toUpperCase() }];
  if (parsed && parsed.host !== unknownHost) parts.push({ role: "host", key: "", value: parsed.origin });
  if (parsed) {
    parts.push({ role: "path", key: "", value: decodePercent(parsed.pathname) ?? parsed.pathname });
    for (const [key, value] of parsed.searchParams) parts.push({ role: "query", key, value });
  }
  for (const [name, value] of headers) parts.push({ role: "header", key: name.toLowerCase(), value: value.trim() });
  if (body !== null && body !== "") parts.push(...bodyParts(body));
  return { kind: "request", parts, url, source };
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

/** The values in a JSON value, as JSON, each with its path, such as `parcel.weight`. */
function flatten(value: unknown, path: string): [string, string][] {
  if (value === null || typeof value !== "object" || Object.keys(value).length === 0)
    return path === "" ? [] : [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([key, each]) => {
    const name = path === "" ? key : `${path}.${key}`;
    // The items of a list stand for each other, so all have its path.
    return flatten(each, Array.isArray(value) ? path : name);
  });
}

function formFields(body: string): [string, string][] | null {
  if (!/^[\w.[\]-]+=[^\s&]*(&[\w.[\]-]+=[^&]*)*$/.test(body)) return null;
  return [...new URLSearchParams(body)].map(([key, value]) => [key, JSON.stringify(value)]);
}

/** Options of curl and wget that have a value, as letters and as words. */
const lettersWithValue = "XHdFuoAebTmwxcKEQrYyzCDPU";
const wordsWithValue = new Set(
  `body-data cacert cert connect-timeout cookie cookie-jar data data-ascii data-binary data-raw data-urlencode form form-string header
json key max-time method output output-document post-data post-file proxy referer request resolve retry retry-delay retry-max-time
timeout tries upload-file url user user-agent write-out`.split(/\s+/),
);

/** `values`: the values of each option that has some, by the option's name, such as `-d` or `--data`. `flags`: the other options. */
type CommandOptions = { values: Map<string, string[]>; flags: Set<string>; operands: string[] };

function optionsOf(words: string[]): CommandOptions {
  const options: CommandOptions = { values: new Map(), flags: new Set(), operands: [] };
  const add = (name: string, value: string) => options.values.set(name, [...(options.values.get(name) ?? []), value]);
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const [, long, value] = /^(--[\w-]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (long !== undefined) {
      if (value !== undefined) add(long, value);
      else if (wordsWithValue.has(long.slice(2))) add(long, rest.shift() ?? "");
      else options.flags.add(long);
    } else if (/^-\w/.test(word)) {
      // Letters may share a word, and the value of the last one may follow it: `-sSd name=a`, `-XPOST`.
      const letters = [...word].slice(1);
      const valueIndex = letters.findIndex((letter) => lettersWithValue.includes(letter));
      const flags = valueIndex < 0 ? letters : letters.slice(0, valueIndex);
      for (const flag of flags) options.flags.add(`-${flag}`);
      if (valueIndex >= 0)
        add(`-${letters[valueIndex]}`, letters.slice(valueIndex + 1).join("") || (rest.shift() ?? ""));
    } else options.operands.push(word);
  }
  return options;
}

const dataOptions = ["-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode", "--json"];
/** `https://api.acme.dev/x`, `$BASE/x`, `${BASE}/x`, `localhost:3000`, `api.acme.dev/x`. */
const isAddress = (word: string) =>
  /^(https?:\/\/|\$\w+\/|\$\{\w+\}\/|localhost[:/]|[\w-]+(\.[\w-]+)+[:/])/i.test(word);

const isHttpie = (program: string) => /^(https?|xh)$/.test(program);
/** Whether a program sends the requests that its words name. */
export const isClient = (program: string): boolean => /^(curl|wget)$/.test(program) || isHttpie(program);

/** The requests of a command that sends some; none for other programs. */
export function requestsOf({ words, source }: ShellCommand): RequestAction[] {
  const program = programOf(words);
  if (!isClient(program)) return [];
  return isHttpie(program) ? [httpieRequest(words.slice(1), source)] : curlRequests(words.slice(1), source);
}

/** The requests of curl or wget. */
function curlRequests(words: string[], source: string): RequestAction[] {
  const { values, flags, operands } = optionsOf(words);
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
    const url = toAddress(isGet && body !== null ? withQuery(address, body) : address);
    return toRequest({ method, url, headers, body: isGet ? null : body }, source);
  });
}

const withQuery = (address: string, query: string) => `${address}${address.includes("?") ? "&" : "?"}${query}`;

/** An address without its variable host, and with a scheme. */
function toAddress(word: string): string {
  const withoutVariable = word.replace(/^\$\{?\w+\}?(?=\/)/, "");
  return /^(https?:\/\/|\/)/i.test(withoutVariable) ? withoutVariable : `http://${withoutVariable}`;
}

/** `http POST acme.dev/x page==2 Accept:text/plain name=a count:=3`: a query parameter, a header and two fields. */
function httpieRequest(words: string[], source: string): RequestAction {
  const operands = words.filter((word) => !word.startsWith("-"));
  const hasMethod = /^[A-Z]+$/.test(operands[0] ?? "");
  const [address = "", ...items] = hasMethod ? operands.slice(1) : operands;
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
  const defaultMethod = body === null ? "GET" : "POST";
  return toRequest({ method: hasMethod ? operands[0]! : defaultMethod, url, headers, body }, source);
}
