import type { AgentEvent } from "../agents/agent.ts";
import type { StoredSession } from "../agents/coding/stored/stored-session.ts";
import { number, text } from "../agents/fields.ts";
import { parseShell, type ShellCommand } from "../grading/actions/shell.ts";
import { valueTextsIn } from "../grading/text.ts";
import { createRedaction } from "../redaction/redaction.ts";
import type { FieldSessionCall, FieldSessionInput } from "./session-schema.ts";
import { hidden, withoutPrivateText } from "./session-text.ts";

/** What belongs to a product: URLs at or below `urls`, and programs, which are also names of MCP servers. */
export type Product = { urls: readonly URL[]; programs: readonly string[] };

/** What may leave the machine on which a session ran, and how many calls the session had. */
type SessionExtract = { input: FieldSessionInput; calls: number };

type Call = Extract<AgentEvent, { type: "tool_call" }>;
type Result = Extract<AgentEvent, { type: "tool_result" }>;
/** A call without its private values. `values`: the texts that were left out. `isAlone`: nothing else could have written to its result. */
type SafeCall = Pick<FieldSessionCall, "tool" | "input"> & { values: string[]; isAlone: boolean };

const maxCalls = 500;
const maxInputChars = 1000;
const maxResultChars = 2000;
/** Hosts whose paths start with an owner. There, another path belongs to somebody else. */
const sharedHosts = new Set(["github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "npmjs.com", "pypi.org"]);
/** Programs that run the program named after them. */
const runners = new Set(["npx", "bunx", "uvx", "pipx"]);
/** Commands that write nothing, so that the result comes from the other commands. */
const silentPrograms = new Set(["cd", "export", "set", "sleep", "true"]);

/**
 * What may leave the machine. Only calls to a host or program of the product are kept. Of a command, the program, its subcommand, the names of its
 * options and URLs of the product are kept. Of a result, what a failure wrote is kept, without what looks private.
 */
export function extractSession({ agent, version, events }: StoredSession, product: Product): SessionExtract {
  const results = new Map(
    events.flatMap((event) => (event.type === "tool_result" ? [[event.id, event] as const] : [])),
  );
  const allCalls = events.filter((event) => event.type === "tool_call");
  const calls = allCalls.flatMap((call) => {
    const safeCall = toSafeCall(call, product);
    return safeCall === null ? [] : [toSessionCall(safeCall, results.get(call.id), product)];
  });
  return { input: { agent: `${agent} ${version}`.trim(), calls: calls.slice(0, maxCalls) }, calls: allCalls.length };
}

function toSessionCall({ tool, input, values, isAlone }: SafeCall, result: Result | undefined, product: Product) {
  const output = text(result?.output.text) || text(result?.output.message);
  // The exit code of curl is 0 even for an error status.
  const isRefused = /^HTTP\/[\d.]+ [45]\d\d/m.test(output);
  const ok = isRefused ? false : (result?.ok ?? null);
  const publicText = () =>
    withoutPrivateText(createRedaction().clean(output), values, (url) => isOfProduct(url, product));
  return {
    tool,
    input: input.slice(0, maxInputChars),
    ok,
    exitCode: number(result?.output.exitCode),
    text: ok === false && isAlone ? publicText().slice(0, maxResultChars) : null,
  };
}

function toSafeCall({ tool, input, ownName }: Call, product: Product): SafeCall | null {
  if (tool === "run_command") return toSafeCommand(text(input.command), product);
  if (tool === "fetch_page") {
    const url = toSafeUrl(text(input.url), product);
    return url === null ? null : { tool, input: url, values: queryOf(text(input.url)), isAlone: true };
  }
  // For example `mcp__acme__list_files`.
  const name = ownName ?? tool;
  const server = /^mcp__(.+?)__/.exec(name)?.[1]?.toLowerCase();
  if (server === undefined || !product.programs.includes(server)) return null;
  return { tool: "mcp", input: name, values: valueTextsIn(input), isAlone: true };
}

/** The commands of the product in a shell line; null without one. */
function toSafeCommand(line: string, product: Product): SafeCall | null {
  const commands = parseShell(line);
  const productCommands = commands.filter((command) => isProductCommand(command, product));
  if (productCommands.length === 0) return null;
  const others = commands.filter((command) => !productCommands.includes(command));
  return {
    tool: "run_command",
    input: productCommands.map((command) => toSafeWords(command, product).join(" ")).join(" && "),
    values: commands.flatMap(valuesOf),
    isAlone: others.every(({ words }) => words[0] === undefined || silentPrograms.has(words[0])),
  };
}

/**
 * The name of a command's program without its folder and version. If a runner starts the program, it is the name of the program: for `npx -y acme@2`
 * it is `acme`.
 */
function programOf([first = "", ...others]: string[]): string {
  const program = runners.has(first) ? (others.find((word) => !word.startsWith("-")) ?? "") : first;
  return program.replace(/^.*\//, "").replace(/(?<=.)@.*$/, "");
}

function isProductCommand({ words }: ShellCommand, product: Product): boolean {
  if (product.programs.includes(programOf(words).toLowerCase())) return true;
  return words.some((word) => /^https?:\/\//.test(word) && toSafeUrl(word, product) !== null);
}

/** The words of a command: its program, the subcommand, names of options and URLs of the product. Everything else is hidden. */
function toSafeWords({ words, input }: ShellCommand, product: Product): string[] {
  const program = programOf(words);
  const isProductProgram = product.programs.includes(program.toLowerCase());
  const start = words.findIndex((word) => word.includes(program));
  const safeWords = words.slice(start + 1).map((word, position) => {
    const isSubcommand = isProductProgram && position === 0 && /^[a-z][a-z-]{1,30}$/.test(word);
    // Not `-psecret`, which may be an option with its value.
    const isOptionName = /^--[A-Za-z][\w-]*$|^-[A-Za-z]$/.test(word);
    if (isSubcommand || isOptionName) return word;
    const [, option] = /^(--[a-z][\w-]*)=/.exec(word) ?? [];
    return option === undefined ? (toSafeUrl(word, product) ?? hidden) : `${option}=${hidden}`;
  });
  return [program, ...safeWords, ...(input === null ? [] : [`<<${hidden}`])];
}

/** What a command passes: words, and the texts in them that are data. */
function valuesOf({ words, input }: ShellCommand): string[] {
  return [...words.slice(1), input ?? ""].flatMap((word) => {
    const value = word.replace(/^--?[\w-]+=/, "");
    const isOptionName = /^--?[\w-]+$/.test(value);
    const isCommonWord = /^[a-z]{1,12}$/.test(value);
    if (isOptionName || isCommonWord) return [];
    if (/^https?:\/\//.test(value)) return queryOf(value);
    return [value, ...value.split(/["'{}:,=\s]+/)];
  });
}

const queryOf = (url: string): string[] => [...(URL.parse(url)?.searchParams.values() ?? [])];

/** Whether a URL is the product's. */
function isOfProduct(url: URL, { urls }: Product): boolean {
  return urls.some(({ hostname, pathname }) => {
    if (url.hostname !== hostname) return false;
    if (!sharedHosts.has(hostname.replace(/^www\./, ""))) return true;
    // For example `/acme/sdk`.
    const repository = pathname.split("/").slice(0, 3).join("/").toLowerCase();
    return `${url.pathname.toLowerCase()}/`.startsWith(`${repository}/`);
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
