import { lazy } from "../once.ts";

/** A text of a target on one line, without control and invisible characters, of at most `max` characters. */
export function oneLine(text: unknown, max = 300): string {
  const line = (typeof text === "string" ? text : "")
    .toWellFormed()
    .replace(/\p{Cf}/gu, "")
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim();
  const points = [...line];
  if (points.length <= max) return line;
  const start = points.slice(0, max - 1).join("");
  return `${start.trimEnd()}…`;
}

/** A whole text on one line, with normalized characters. */
export const normalizedLine = (text: string): string => oneLine(text.normalize("NFKC"), Number.POSITIVE_INFINITY);

/** As `oneLine`; null if nothing is left. */
export function lineOrNull(text: unknown, max = 300): string | null {
  return oneLine(text, max) || null;
}

const blockLimits = { maxChars: 1000, maxLines: 12 };

/** A text of a target that keeps its lines, such as code: at most 12 of them, each as by `oneLine`; null: it is empty. */
export function blockOrNull(text: unknown): string | null {
  const lines = (typeof text === "string" ? text : "")
    .split(/\r?\n/)
    .map((each) => /^[ \t]*/.exec(each)![0] + oneLine(each, blockLimits.maxChars));
  const block = lines
    .join("\n")
    .replace(/^\s*\n/, "")
    .trimEnd();
  const firstLines = block.split("\n").slice(0, blockLimits.maxLines).join("\n");
  const start = firstLines.slice(0, blockLimits.maxChars).toWellFormed();
  if (start === "") return null;
  return start === block ? block : `${start}\n…`;
}

/** `sentence("No answer")` is "No answer.". */
export function sentence(text: string): string {
  return text === "" || /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** A text whose first letter is in upper case. */
export const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A text for the middle of a sentence: its first letter is in lower case, unless it starts with an acronym. */
export function lowerFirst(text: string): string {
  return /^[A-Z][a-z]/.test(text) ? text[0]!.toLowerCase() + text.slice(1) : text;
}

/** A number with its unit: "1 page", "3 pages". */
export function count(n: number, singular: string, plural = `${singular}s`): string {
  return `${n} ${n === 1 ? singular : plural}`;
}

/** "a, b and 3 more" */
export function list(items: readonly string[], max = 5): string {
  if (items.length <= 1) return items[0] ?? "";
  if (items.length > max) return `${items.slice(0, max).join(", ")} and ${items.length - max} more`;
  return `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

/** A share from 0 to 1 in percent, to one decimal. */
export function percent(share: number): string {
  // Products such as 0.0145 × 1000 are slightly too small, and would be rounded down.
  return `${Math.round(share * 1000 + 1e-6) / 10}%`;
}

/** The ends of an interval; null: without one. */
export type Bounds = { low: number | null; high: number | null };

/** An interval after its value: " (1.10 to 1.50)"; empty without one. */
export const rangeText = (interval: Bounds | null, format: (bound: number) => string): string =>
  interval === null || interval.low === null || interval.high === null
    ? ""
    : ` (${format(interval.low)} to ${format(interval.high)})`;

/** `+3.2`, or `−3.2` with a true minus sign; `±0` if nothing but zeros is left of the number. */
export function withSign(change: number, format: (value: number) => string = String): string {
  const text = format(Math.abs(change));
  return /[1-9]/.test(text) ? `${change > 0 ? "+" : "−"}${text}` : "±0";
}

/** A change in points: `+3.2`. */
export const signedPoints = (change: number): string => withSign(change, (points) => points.toFixed(1));

/** "0.8s", "42s", "2m 14s", "1h 2m" */
export function duration(seconds: number): string {
  if (seconds > 0 && seconds < 0.05) return "<0.1s";
  if (seconds < 9.95) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
}

/** An amount in USD: "$0.12"; "<$0.01" for less than half a cent. */
export function dollars(usd: number): string {
  return usd > 0 && usd < 0.005 ? "<$0.01" : `$${usd.toFixed(2)}`;
}

/** The normalized form of a URL: lowercase host, sorted query, no trailing slash, and no fragment unless requested. */
export function normalizeUrl(address: string, keepFragment = false): string {
  const url = URL.parse(address);
  if (url === null) return oneLine(address, 2000);
  url.searchParams.sort();
  const path = url.pathname.replace(/\/+$/, "");
  return `${url.protocol}//${url.host}${path}${url.search}${keepFragment ? url.hash : ""}`;
}

/** A subject is a URL, or a URL and more: each URL in it is normalized. */
export function normalizeSubject(subject: string, keepFragment: boolean): string {
  return oneLine(subject, 2000)
    .split(" ")
    .map((word) => (/^https?:\/\//i.test(word) ? normalizeUrl(word, keepFragment) : word))
    .join(" ");
}

/** The path of a URL, with its host if `current` has another one. */
export function shortUrl(address: string, current: string | null = null): string {
  const url = URL.parse(address);
  if (url === null) return oneLine(address, 100);
  const path = `${url.pathname}${url.search}${url.hash}`;
  const isOtherHost = current !== null && URL.parse(current)?.host !== url.host;
  return oneLine(isOtherHost ? `${url.host}${path}` : path, 100);
}

const sentences = lazy(() => new Intl.Segmenter("en", { granularity: "sentence" }));
const words = lazy(() => new Intl.Segmenter("en", { granularity: "word" }));

const maxTitleChars = 80;

/** A title for a task that has none: its first sentence, cut after a word at 80 characters. In any script. */
export function titleFromTask(task: string): string {
  const line = oneLine(
    task.split(/\n/).find((each) => each.trim() !== ""),
    2000,
  );
  const [first] = sentences().segment(line);
  const title = first?.segment.trim().replace(/[.。．।]$/u, "") ?? "";
  if (title.length <= maxTitleChars) return title;
  const cut = [...words().segment(title)].findLast(({ index }) => index < maxTitleChars);
  const start = title.slice(0, cut?.index || maxTitleChars).toWellFormed();
  return `${start.trimEnd()}…`;
}

/** Where a line contains a path or command as a whole, or -1: `/notes` is in `https://host/notes`, but not in `/v1/notes` or `/notes/1`. */
export function indexOfName(text: string, name: string): number {
  for (let index = text.indexOf(name); index >= 0; index = text.indexOf(name, index + 1)) {
    const [before, after] = [text.slice(0, index), text.slice(index + name.length)];
    const goesOn = /^([\w/-]|\.\w)/.test(after);
    const startOfWord = /[^\s"'`(<=]*$/.exec(before)?.[0] ?? "";
    const isPath = name.startsWith("/");
    const isStart = isPath ? /^(https?:\/\/)?[^/]*$/.test(startOfWord) : startOfWord === "";
    if (isStart && !goesOn) return index;
  }
  return -1;
}

/** All strings in a JSON value, without its keys. */
export function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return value !== null && typeof value === "object" ? Object.values(value).flatMap(textsIn) : [];
}

/** All strings and numbers in a JSON value, as texts, without its keys. */
export function valueTextsIn(value: unknown): string[] {
  if (typeof value === "number") return [String(value)];
  if (typeof value === "string") return [value];
  return value !== null && typeof value === "object" ? Object.values(value).flatMap(valueTextsIn) : [];
}

/** A number of bytes: "1.5 GiB", "200.0 MiB". */
export function toSize(bytes: number): string {
  const gib = bytes / 1024 ** 3;
  return gib >= 1 ? `${gib.toFixed(1)} GiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}
