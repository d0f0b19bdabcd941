import type { AgentEvent } from "../agents/agent.ts";
import type { StoredSession } from "../agents/coding/stored/stored-session.ts";
import { number, text } from "../agents/fields.ts";
import { parseShell, type ShellCommand } from "../grading/actions/shell.ts";
import { createRedaction } from "../redaction/redaction.ts";
import type { FieldSessionCall, FieldSessionInput } from "./session-schema.ts";
import { withoutPrivateText } from "./session-text.ts";

/** What belongs to a product: URLs at or below `urls`, and programs, which are also names of MCP servers. */
export type Product = { urls: readonly URL[]; programs: readonly string[] };

/** What may leave the machine of a session, and how many calls it had. */
type SessionExtract = { input: FieldSessionInput; calls: number };

type Call = Extract<AgentEvent, { type: "tool_call" }>;
type Result = Extract<AgentEvent, { type: "tool_result" }>;
/** A call without its private values. `values`: what was left out. `isWhole`: nothing else could have written to its result. */
type SafeCall = Pick<FieldSessionCall, "tool" | "input"> & { values: string[]; isWhole: boolean };

const maxCalls = 500;
const maxResultChars = 2000;
const hidden = "…";
/** Places where paths start with the owner, so that another path is somebody else's. */
const sharedHosts = new Set(["github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "npmjs.com", "pypi.org"]);
const runners = new Set(["npx", "bunx", "uvx", "pipx"]);
/** Commands that write nothing, so that the result is that of the others. */
const silentPrograms = new Set(["cd", "export", "set", "sleep", "true"]);

/**
 * The calls of a session whose host or program is the product's. Of a command, only the program, its subcommand, the names of its options and URLs
 * of the product stay; of its result only what a failure wrote, without what looks private. Nothing else of a session stays: no task, no message,
 * no thought, no other tool.
 */
export function extractSession({ agent, version, events }: StoredSession, product: Product): SessionExtract {
  const results = new Map(
    events.flatMap((event) => (event.type === "tool_result" ? [[event.id, event] as const] : [])),
  );
  const allCalls = events.filter((event) => event.type === "tool_call");
  const calls = allCalls.flatMap((call) => {
    const safe = toSafeCall(call, product);
    return safe === null ? [] : [toSessionCall(safe, results.get(call.id), product)];
  });
  return { input: { agent: `${agent} ${version}`.trim(), calls: calls.slice(0, maxCalls) }, calls: allCalls.length };
}

function toSessionCall({ tool, input, values, isWhole }: SafeCall, result: Result | undefined, product: Product) {
  const output = text(result?.output.text) || text(result?.output.message);
  // The exit code of curl is 0 for an error status too.
  const isRefused = /^HTTP\/[\d.]+ [45]\d\d/m.test(output);
  const ok = isRefused ? false : (result?.ok ?? null);
  const isShown = ok === false && isWhole;
  return {
    tool,
    input: input.slice(0, 1000),
    ok,
    exitCode: number(result?.output.exitCode),
    text: isShown
      ? withoutPrivateText(createRedaction().clean(output), values, (url) => isOfProduct(url, product)).slice(
          0,
          maxResultChars,
        )
      : null,
  };
}

function toSafeCall({ tool, input, ownName }: Call & { ownName?: string }, product: Product): SafeCall | null {
  if (tool === "run_command") return toSafeCommand(text(input.command), product);
  if (tool === "fetch_page") {
    const url = toSafeUrl(text(input.url), product);
    return url === null ? null : { tool, input: url, values: queryOf(text(input.url)), isWhole: true };
  }
  const name = ownName ?? tool;
  const server = /^mcp__(.+?)__/.exec(name)?.[1]?.toLowerCase();
  if (server === undefined || !product.programs.includes(server)) return null;
  return { tool: "mcp", input: name, values: textsIn(input), isWhole: true };
}

/** The commands of the product in a shell line; null without one. */
function toSafeCommand(line: string, product: Product): SafeCall | null {
  const commands = parseShell(line);
  const own = commands.filter((command) => isProductCommand(command, product));
  if (own.length === 0) return null;
  const others = commands.filter((command) => !own.includes(command));
  return {
    tool: "run_command",
    input: own.map((command) => toSafeWords(command, product).join(" ")).join(" && "),
    values: commands.flatMap(valuesOf),
    isWhole: others.every(({ words }) => words[0] === undefined || silentPrograms.has(words[0])),
  };
}

/** The program of a command, also of one that a runner starts, without its folder and version: `npx -y acme@2` is `acme`. */
const programOf = (words: string[]): string => {
  const at = runners.has(words[0] ?? "") ? words.findIndex((word, index) => index > 0 && !word.startsWith("-")) : 0;
  return (words[at] ?? "").replace(/^.*\//, "").replace(/(?<=.)@.*$/, "");
};

function isProductCommand({ words }: ShellCommand, product: Product): boolean {
  if (product.programs.includes(programOf(words).toLowerCase())) return true;
  return words.some((word) => /^https?:\/\//.test(word) && toSafeUrl(word, product) !== null);
}

/** The words of a command: its program, the subcommand, names of options and URLs of the product. Everything else is hidden. */
function toSafeWords({ words, input }: ShellCommand, product: Product): string[] {
  const program = programOf(words);
  const isOwn = product.programs.includes(program.toLowerCase());
  const start = words.findIndex((word) => word.includes(program));
  const safe = words.slice(start + 1).map((word, at) => {
    if (isOwn && at === 0 && /^[a-z][a-z-]{1,30}$/.test(word)) return word;
    if (/^--?[A-Za-z][\w-]*$/.test(word)) return /^--|^-[A-Za-z]$/.test(word) ? word : hidden;
    const option = /^(--[a-z][\w-]*)=/.exec(word)?.[1];
    return option === undefined ? (toSafeUrl(word, product) ?? hidden) : `${option}=${hidden}`;
  });
  return [program, ...safe, ...(input === null ? [] : [`<<${hidden}`])];
}

/** What a command passes: words, and the texts in them that are data. */
function valuesOf({ words, input }: ShellCommand): string[] {
  return [...words.slice(1), input ?? ""].flatMap((word) => {
    const value = word.replace(/^--?[\w-]+=/, "");
    if (/^--?[\w-]+$/.test(value) || /^[a-z]{1,12}$/.test(value)) return [];
    if (/^https?:\/\//.test(value)) return queryOf(value);
    return [value, ...value.split(/["'{}:,=\s]+/)];
  });
}

/** Texts and numbers in the arguments of a call. */
const textsIn = (value: unknown): string[] =>
  typeof value === "string" || typeof value === "number"
    ? [String(value)]
    : value !== null && typeof value === "object"
      ? Object.values(value).flatMap(textsIn)
      : [];

const queryOf = (url: string): string[] => [...(URL.parse(url)?.searchParams.values() ?? [])];

/** Whether a URL is the product's. */
function isOfProduct(url: URL, { urls }: Product): boolean {
  return urls.some(({ hostname, pathname }) => {
    if (url.hostname !== hostname) return false;
    const owner = pathname.split("/").slice(0, 3).join("/").toLowerCase();
    return !sharedHosts.has(hostname.replace(/^www\./, "")) || `${url.pathname.toLowerCase()}/`.startsWith(`${owner}/`);
  });
}

/** A segment of a path with a digit that may be an ID: a number, a name with four digits in a row, a long name, or an address. */
const idSegment = /\/(?=[^/]*\d)(?:\d+|[\w-]*\d{4,}[\w-]*|[\w-]{20,}|[^/]*(?:%40|@)[^/]*)(?=\/|$)/g;

/** A URL of the product without credentials, query, fragment and IDs; null: another one. */
function toSafeUrl(word: string, product: Product): string | null {
  const url = /^https?:\/\//.test(word) ? URL.parse(word) : null;
  if (url === null || !isOfProduct(url, product)) return null;
  return `${url.origin}${url.pathname.replace(idSegment, `/${hidden}`)}`;
}
