import { decodePercent } from "../net/percent.ts";

/** A request in an access log. `month`: such as `2026-11`, as logged. `path`: includes the query. A field that wasn't logged is empty. */
export type LoggedRequest = {
  month: string;
  method: string;
  path: string;
  status: number;
  userAgent: string;
  accept: string;
  contentType: string;
};

/** Reads lines of one format. `null`: not a request in this format; `comment`: a line that describes the log. */
export type LineReader = (line: string) => LoggedRequest | "comment" | null;

export const logFormats = ["combined", "json", "w3c", "alb"] as const;
export type LogFormat = (typeof logFormats)[number];

/** A reader of lines of a format. */
export const lineReaderOf = (format: LogFormat): LineReader =>
  ({ combined: readCombined, json: readJson, w3c: createW3cReader(), alb: readAlb })[format];

/** The format of a log, by its first line. */
export function formatOf(line: string): LogFormat {
  if (line.startsWith("{")) return "json";
  if (line.startsWith("#")) return "w3c";
  return /^(?:https?|h2|grpcs|wss?) \d{4}-\d\d-\d\dT/.test(line) ? "alb" : "combined";
}

const monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** A month such as `2026-11`, for 2026 and Nov; null: no month has this name. */
function toMonth(year: string, name: string): string | null {
  const index = monthNames.indexOf(name);
  return index < 0 ? null : `${year}-${String(index + 1).padStart(2, "0")}`;
}

/** The text between two quotes. In it, a backslash or \x22 escapes a quote. */
const quoted = /(?:[^"\\]|\\.)*/.source;

const combinedTime = /\[\d\d\/(?<monthName>\w{3})\/(?<year>\d{4}):[^\]]{8,20}\]/.source;
const combinedRequest = /"(?<method>[A-Z]+) (?<path>[^" ]+)[^"]*" (?<status>\d{3}) \S+/.source;
const combinedHeaders = ` "${quoted}" "(?<userAgent>${quoted})"(?: "(?<accept>${quoted})")?`;
/** Common and Combined Log Format, which Apache, nginx and Fastly write. The virtual host may come first, and the Accept header may come last. */
const combined = new RegExp(`${combinedTime} ${combinedRequest}(?:${combinedHeaders})?`);

function readCombined(line: string): LoggedRequest | null {
  const fields = combined.exec(line)?.groups;
  if (!fields) return null;
  const { monthName = "", year = "", method = "", path = "", status, userAgent = "", accept = "" } = fields;
  const month = toMonth(year, monthName);
  if (month === null) return null;
  return { month, method, path, status: Number(status), userAgent, accept, contentType: "" };
}

const albTime = /^\S+ (?<month>\d{4}-\d\d)-\d\dT\S+/.source;
const albStatus = /(?:\S+ ){6}(?<status>\d{3}|-) \S+ \S+ \S+/.source;
const albRequest = /"(?<method>[A-Z]+) (?<url>\S+)[^"]*"/.source;
/** The format of AWS's Application Load Balancer. Fields are separated by blanks, and the request and the user agent are in quotes. */
const alb = new RegExp(`${albTime} ${albStatus} ${albRequest} "(?<userAgent>${quoted})"`);

function readAlb(line: string): LoggedRequest | null {
  const fields = alb.exec(line)?.groups;
  if (!fields) return null;
  const { month = "", status, method = "", url = "", userAgent = "" } = fields;
  return { month, method, path: pathOf(url), status: Number(status) || 0, userAgent, accept: "", contentType: "" };
}

/** W3C extended log format, as CloudFront and IIS write it. `#Fields` names the columns, which are separated by tabs or blanks. */
function createW3cReader(): LineReader {
  let fields: string[] = [];
  return (line) => {
    if (line.startsWith("#")) {
      if (line.startsWith("#Fields:")) fields = line.slice("#Fields:".length).trim().split(/\s+/);
      return "comment";
    }
    const values = line.split(line.includes("\t") ? "\t" : " ");
    const columnOf = (...names: string[]) => values[fields.findIndex((field) => names.includes(field))] ?? "";
    const [path, month] = [columnOf("cs-uri-stem"), columnOf("date").slice(0, 7)];
    if (path === "" || !/^\d{4}-\d\d$/.test(month) || values.length < fields.length) return null;
    const decoded = (text: string) => decodePercent(text.replaceAll("+", " ")) ?? text;
    return {
      month,
      path,
      method: columnOf("cs-method"),
      status: Number(columnOf("sc-status")) || 0,
      // CloudFront encodes blanks twice.
      userAgent: decoded(decoded(columnOf("cs(User-Agent)"))),
      accept: decoded(decoded(columnOf("cs(Accept)"))),
      contentType: columnOf("sc-content-type"),
    };
  };
}

type Json = Record<string, unknown>;

/** The names of each field in JSON logs of Cloudflare, Vercel, Netlify, nginx, Caddy, Traefik and Fastly, the most specific first. */
const jsonNames = {
  path: [
    "ClientRequestURI",
    "ClientRequestPath",
    "proxy.path",
    "RequestPath",
    "request_uri",
    "request.uri",
    "path",
    "url",
    "uri",
    "request",
  ],
  status: [
    "EdgeResponseStatus",
    "proxy.statusCode",
    "DownstreamStatus",
    "statusCode",
    "status_code",
    "response_status",
    "response.status",
    "status",
  ],
  time: [
    "EdgeStartTimestamp",
    "proxy.timestamp",
    "StartUTC",
    "time_iso8601",
    "timestampInMs",
    "timestamp",
    "time_local",
    "time",
    "ts",
    "date",
  ],
  method: ["ClientRequestMethod", "proxy.method", "RequestMethod", "request_method", "request.method", "method"],
  userAgent: [
    "ClientRequestUserAgent",
    "proxy.userAgent",
    "request_User-Agent",
    "request.headers.User-Agent",
    "http_user_agent",
    "request_user_agent",
    "userAgent",
    "user_agent",
  ],
  accept: [
    "RequestHeaders.accept",
    "request_Accept",
    "request.headers.Accept",
    "http_accept",
    "request_accept",
    "accept",
  ],
  contentType: ["EdgeResponseContentType", "resp_headers.Content-Type", "sent_http_content_type", "content_type"],
} satisfies Record<string, string[]>;

/** Each name as a list of the keys that lead to its value. */
const jsonPaths = Object.fromEntries(
  Object.entries(jsonNames).map(([field, names]) => [field, names.map((name) => name.split("."))]),
) as Record<keyof typeof jsonNames, string[][]>;

function fieldOf(entry: Json, field: keyof typeof jsonNames): string {
  for (const keys of jsonPaths[field]) {
    let value: unknown = entry;
    for (const key of keys) value = (value as Json | null | undefined)?.[key];
    if (Array.isArray(value)) [value] = value;
    if (typeof value === "number" || (typeof value === "string" && value !== "")) return String(value);
  }
  return "";
}

function readJson(line: string): LoggedRequest | null {
  let entry: Json;
  try {
    entry = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof entry !== "object" || entry === null) return null;
  const path = fieldOf(entry, "path");
  const status = Number(fieldOf(entry, "status"));
  const month = monthOf(fieldOf(entry, "time"));
  const hasStatus = status >= 100;
  if (path === "" || !hasStatus || month === null) return null;
  // nginx's $request is the whole request line.
  const [, method, target = path] = /^([A-Z]+) (\S+) HTTP/.exec(path) ?? [];
  return {
    month,
    status,
    path: pathOf(target),
    method: method ?? (fieldOf(entry, "method") || "GET"),
    userAgent: fieldOf(entry, "userAgent"),
    accept: fieldOf(entry, "accept"),
    contentType: fieldOf(entry, "contentType"),
  };
}

/** Units of times since 1970. A current time in a unit is at least `min`. Smaller numbers are seconds. */
const timeUnits = [
  { min: 1e17, perMs: 1e6 },
  { min: 1e14, perMs: 1e3 },
  { min: 1e11, perMs: 1 },
];
const secondsPerMs = 1e-3;
/** The latest time of a Date, epoch milliseconds. */
const maxDateMs = 8.64e15;

/**
 * The month of a time. The time is in ISO 8601 or in the form of Common Log Format, or it is a number of seconds, milliseconds, microseconds or
 * nanoseconds since 1970.
 */
function monthOf(time: string): string | null {
  const [iso] = /^\d{4}-\d\d(?=-)/.exec(time) ?? [];
  if (iso) return iso;
  const [, monthName = "", year] = /^\d\d\/(\w{3})\/(\d{4}):/.exec(time) ?? [];
  if (year) return toMonth(year, monthName);
  const number = Number(time);
  const perMs = timeUnits.find(({ min }) => number > min)?.perMs ?? secondsPerMs;
  const ms = number / perMs;
  return ms > 0 && ms < maxDateMs ? new Date(ms).toISOString().slice(0, 7) : null;
}

/** The path and query of a URL or path. */
const pathOf = (target: string): string => target.replace(/^[a-z]+:\/\/[^/?#]*/i, "") || "/";
