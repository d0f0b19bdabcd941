import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import type { ValueError } from "@sinclair/typebox/errors";
import { Value } from "@sinclair/typebox/value";
import { ConfigError, reasonOf } from "../errors.ts";
import { invalidInput } from "../schema.ts";
import { type Addition, AgentEntry } from "./agent-entry.ts";
import type { ModelProvider } from "./model-settings.ts";

const syntax =
  "a JSON list of coding agents, or the path of a file with one agent or a list, or of a folder of such files (evald agent init NAME writes one)";
const maxProblems = 20;

/** Parses EVALD_AGENTS; empty: none. Throws a ConfigError that names each wrong field. */
export function parseAgentEntries(value: string): AgentEntry[] {
  if (value === "") return [];
  const entries = readEntries(value).flatMap(({ source, content }) => checkEntries(content, source));
  // An agent with `acp` can also be started over that protocol. It then has a second ID.
  const ids = entries.flatMap(({ id, acp }) => (acp ? [id, `${id}-acp`] : [id]));
  const duplicate = ids.find((id, i) => ids.indexOf(id) !== i);
  if (duplicate !== undefined) throw new ConfigError(`${syntax}: the id ${duplicate} is used twice; rename one`);
  return entries;
}

/** The agents of one file or list. `source`: where they come from, for errors; empty: the setting itself. Throws ConfigError. */
export function checkEntries(content: unknown, source: string): AgentEntry[] {
  const isList = Array.isArray(content);
  const list = Type.Array(AgentEntry);
  const entries: unknown[] = isList ? content : [content];
  const problems = Value.Check(list, entries)
    ? entries.flatMap((entry, i) => findContradictions(entry).map((problem) => `${i}.${problem}`))
    : problemsIn(Value.Errors(list, entries));
  if (problems.length === 0) return entries as AgentEntry[];
  // Each problem starts with the index of its agent. A single agent has no index.
  const lines = problems.slice(0, maxProblems).map((problem) => (isList ? problem : problem.replace(/^0\./, "")));
  throw new ConfigError(`${syntax}${source && `; in ${source}`}: ${lines.join("; ")}`);
}

type Content = { source: string; content: unknown };

/** Reads the setting itself, a file, or all files of a folder in the order of their names. Comments and trailing commas are allowed. */
function readEntries(value: string): Content[] {
  if (value.trimStart().startsWith("[")) return [{ source: "", content: parse(value, "the list") }];
  try {
    if (!statSync(value).isDirectory()) return [{ source: value, content: parse(readFileSync(value, "utf8"), value) }];
    const names = readdirSync(value).filter((name) => /\.jsonc?$/.test(name));
    return names.sort().map((name) => {
      const path = join(value, name);
      return { source: path, content: parse(readFileSync(path, "utf8"), path) };
    });
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`${syntax}: ${reasonOf(error)}`);
  }
}

function parse(text: string, source: string): unknown {
  try {
    return Bun.JSONC.parse(text);
  } catch (error) {
    throw new ConfigError(`${syntax}; ${source} is not valid JSON: ${reasonOf(error)}`);
  }
}

/** One problem for each wrong field. */
function problemsIn(errors: Iterable<ValueError>): string[] {
  const problems = new Map<string, string>();
  for (const error of errors) {
    const { field = "list", problem = "" } = invalidInput(deepest(error), "list");
    // For a missing field, the problem is a text such as "required; must be a string".
    if (!problems.has(field)) problems.set(field, `${field} ${problem.replace("required; ", "is required: it ")}`);
  }
  return [...problems.values()];
}

/** The innermost error of a value that may have several types, if the value has the right type but wrong contents. */
function deepest(error: ValueError): ValueError {
  const inner = error.errors.map((each) => each.First()).find((each) => each && each.path.length > error.path.length);
  return inner ? deepest(inner) : error;
}

/** Placeholders that every agent may use. */
const placeholders = ["gateway", "token", "model", "provider", "home", "prompt", "promptFile"];

/** The placeholders in a text. */
const placeholdersIn = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);

/** The providers of an agent, each with the values of its additional placeholders. */
export const providersOf = ({ provider }: AgentEntry): Partial<Record<ModelProvider, Record<string, string>>> =>
  typeof provider === "string" ? { [provider]: {} } : provider;

/** The problems with the placeholders of an agent. */
function placeholderProblems(entry: AgentEntry): string[] {
  const { mcp, options = {}, acp, login } = entry;
  const ownPlaceholders = Object.values(providersOf(entry)).flatMap((values) => Object.keys(values ?? {}));
  const known = [...new Set([...placeholders, ...ownPlaceholders])];
  const problemsOf = (field: string, { args = [], env = {} }: Addition, allowed = known): string[] => {
    const texts = [
      ...args.map((arg, i) => [`args.${i}`, arg] as const),
      ...Object.entries(env).map(([name, value]) => [`env.${name}`, value] as const),
    ];
    return texts.flatMap(([name, text]) =>
      (typeof text === "string" ? placeholdersIn(text) : [])
        .filter((placeholder) => !allowed.includes(placeholder))
        .map(
          (placeholder) =>
            `${field}${name} has the unknown placeholder {${placeholder}}; use one of ${allowed.join(", ")}`,
        ),
    );
  };
  return [
    ...problemsOf("", entry),
    ...(mcp ? problemsOf("mcp.", mcp) : []),
    ...(acp ? problemsOf("acp.", acp) : []),
    ...(options.systemPrompt
      ? problemsOf("options.systemPrompt.", options.systemPrompt, [...known, "systemPrompt"])
      : []),
    ...(login ? problemsOf("login.", login) : []),
  ];
}

/** The problems of an agent that a schema can't express. */
function findContradictions(entry: AgentEntry): string[] {
  const { stream, args = [], exitCode, failure, mcp, files = {}, login } = entry;
  const problems = placeholderProblems(entry);
  if (login && stream === "none")
    problems.push(
      "login needs another stream than none, because evald doesn't see the model calls of an agent with a login; remove it",
    );
  const taskIndex = args.findIndex((arg) => /\{prompt(File)?\}/.test(arg));
  if (stream === "acp" && taskIndex !== -1)
    problems.push(
      `args.${taskIndex} passes the task, which an agent with the stream acp gets over the protocol; remove it`,
    );
  if (stream === "acp" && mcp)
    problems.push("mcp is not used with the stream acp, which passes MCP servers over the protocol; remove it");
  if (exitCode !== undefined && !isPatternWithGroup(exitCode))
    problems.push(
      'exitCode must be a regular expression with one group around the number, such as "exit code: (\\\\d+)"',
    );
  if (failure !== undefined && !isPattern(failure)) problems.push("failure must be a regular expression");
  const settings = mcp && files[mcp.file];
  // Codex reads TOML, so MCP servers are added to its file as text. All other formats are JSON.
  const needsText = mcp?.format === "codex";
  if (mcp && settings !== undefined && isObject(settings) === needsText)
    problems.push(
      `files.${mcp.file} must be ${needsText ? "text" : "an object"}, because the MCP servers in the format ${mcp.format} are added to it`,
    );
  return problems;
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

function isPattern(pattern: string): boolean {
  try {
    new RegExp(pattern);
    return true;
  } catch {
    return false;
  }
}

/** Whether a pattern has a group. With an empty alternative, the pattern matches any text, and the match shows its groups. */
const isPatternWithGroup = (pattern: string): boolean =>
  isPattern(pattern) && new RegExp(`${pattern}|`).exec("")?.length === 2;
