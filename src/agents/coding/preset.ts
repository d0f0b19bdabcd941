import { providersOf } from "../../config/agent-entries.ts";
import type { Addition, AgentEntry, LoginEntry, StreamFormat, ToolName } from "../../config/agent-entry.ts";
import type { ModelProvider } from "../../config/model-settings.ts";
import { isObject } from "../fields.ts";

/** Text or JSON in which `{name}` is replaced by a value of the run; see `TemplateValues`. */
type Template = unknown;

/** How to run a coding agent: its `AgentEntry`, which explains the fields, with the defaults filled in. */
export type Preset = {
  id: string;
  name: string;
  /** Changes whenever a field here changes that may affect what the agent does. */
  revision: string;
  testedVersions: readonly string[];
  command: string;
  /** null: a program of any origin. */
  packageName: string | null;
  native: string | null;
  minNode: number;
  install: string | null;
  providers: Partial<Record<ModelProvider, Record<string, string>>>;
  stream: StreamFormat;
  args: string[];
  env: Record<string, Template>;
  files: Record<string, Template>;
  mounts: string[];
  tools: Record<string, ToolName>;
  /** null: the usual lines of agents are recognized. */
  exitCode: string | null;
  /** null: the results of its calls say whether they failed. */
  failure: string | null;
  contextFile: string;
  skillsFolder: string;
  mcp: AgentEntry["mcp"] | null;
  memoryMb: number;
  firstRequestTokens: number | null;
  hosts: string[];
  blockedHosts: string[];
  options: NonNullable<AgentEntry["options"]>;
  /** null: it has no login, or the task doesn't use it. */
  login: LoginEntry | null;
  clientMethods: boolean;
};

/**
 * Values for templates: `gateway` (URL without a trailing slash), `token`, `model`, `provider`, `home`, `prompt` (the task), `promptFile` (a file
 * with the task), and the values of the provider.
 */
export type TemplateValues = Record<string, string>;

/** Replaces `{name}` in every text of a template, keys included. Other braces stay. */
function fillTemplate(template: Template, values: TemplateValues): Template {
  if (typeof template === "string") return template.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
  if (Array.isArray(template)) return template.map((item) => fillTemplate(item, values));
  if (template === null || typeof template !== "object") return template;
  const entries = Object.entries(template).map(([name, item]) => [
    String(fillTemplate(name, values)),
    fillTemplate(item, values),
  ]);
  return Object.fromEntries(entries);
}

/** A filled template as text: strings as they are, anything else as JSON. */
export const fillAsText = (template: Template, values: TemplateValues): string => {
  const filled = fillTemplate(template, values);
  return typeof filled === "string" ? filled : JSON.stringify(filled);
};

/** The content of a file; a list is its lines. */
export const fillFile = (content: Template, values: TemplateValues): string =>
  Array.isArray(content) ? `${fillTemplate(content.join("\n"), values)}\n` : fillAsText(content, values);

/** Whether a session with this version was tested. An agent that names no versions counts as tested. */
export const isTested = ({ testedVersions }: Preset, version: string): boolean =>
  testedVersions.length === 0 || testedVersions.includes(version);

/** How an agent gets its task. `protocol`: over ACP. */
export function taskChannelOf({ stream, args, env, files }: Preset): "protocol" | "stdin" | "argument" | "file" {
  if (stream === "acp") return "protocol";
  const templates = JSON.stringify([args, env, files]);
  if (templates.includes("{promptFile}")) return "file";
  return templates.includes("{prompt}") ? "argument" : "stdin";
}

/** The preset of an agent. `origin`: whether evald knows it, or the operator added it. */
export function toPreset(entry: AgentEntry, origin: "preset" | "custom" = "custom"): Preset {
  const { id, package: packageName = null, testedVersions = [] } = entry;
  const [version] = testedVersions;
  const install = packageName && `npm install -g ${packageName}${version === undefined ? "" : `@${version}`}`;
  return {
    id,
    name: entry.name ?? id,
    revision: origin === "preset" ? `preset.${entry.revision ?? 1}` : `custom.${digestOf(entry)}`,
    testedVersions,
    command: entry.command,
    packageName,
    native: entry.native ?? null,
    minNode: entry.minNode ?? 0,
    install: entry.install ?? install,
    providers: providersOf(entry),
    stream: entry.stream,
    args: entry.args ?? [],
    env: entry.env ?? {},
    files: entry.files ?? {},
    mounts: entry.mounts ?? [],
    tools: entry.tools ?? {},
    exitCode: entry.exitCode ?? null,
    failure: entry.failure ?? null,
    contextFile: entry.contextFile ?? "AGENTS.md",
    skillsFolder: entry.skillsFolder ?? ".agents/skills",
    mcp: entry.mcp ?? null,
    memoryMb: entry.memoryMb ?? 1024,
    firstRequestTokens: entry.firstRequestTokens ?? null,
    hosts: entry.hosts ?? [],
    blockedHosts: entry.blockedHosts ?? [],
    options: entry.options ?? {},
    login: entry.login ?? null,
    clientMethods: entry.clientMethods ?? true,
  };
}

/** The preset of an agent. If it can also speak the Agent Client Protocol, a second preset for that. */
export function toPresets(entry: AgentEntry, origin: "preset" | "custom" = "custom"): Preset[] {
  const { acp } = entry;
  const preset = toPreset(entry, origin);
  if (!acp) return [preset];
  const ownFields = { id: `${entry.id}-acp`, name: `${preset.name} (ACP)`, stream: "acp" as const, args: [] };
  const noFields = { acp: undefined, mcp: undefined, options: undefined, login: undefined };
  const acpEntry = { ...entry, ...ownFields, clientMethods: acp.clientMethods ?? true, ...noFields };
  return [preset, addTo(toPreset(acpEntry, origin), acp)];
}

/** Changes with every field, except those that only describe the agent. */
function digestOf(entry: AgentEntry): string {
  // JSON has no undefined fields.
  const behavior = { ...entry, id: undefined, name: undefined, install: undefined, testedVersions: undefined };
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(behavior)).digest("hex").slice(0, 8);
}

/** A preset with what a setting adds. A variable that is null is removed. */
export function addTo(preset: Preset, { args = [], env = {}, files = {} }: Addition): Preset {
  const mergedFiles = Object.entries(files).map(([path, content]) => [path, merge(preset.files[path], content)]);
  const mergedEnv = Object.entries({ ...preset.env, ...env }).filter(([, value]) => value !== null);
  return {
    ...preset,
    args: [...preset.args, ...args],
    env: Object.fromEntries(mergedEnv),
    files: { ...preset.files, ...Object.fromEntries(mergedFiles) },
  };
}

/** Objects are merged field by field, and lines are added at the start, where every format allows settings. Anything else is replaced. */
function merge(base: Template, addition: Template): Template {
  if (Array.isArray(base) && Array.isArray(addition)) return [...addition, ...base];
  if (!isObject(base) || !isObject(addition)) return addition;
  const merged = Object.entries(addition).map(([name, value]) => [name, merge(base[name], value)]);
  return { ...base, ...Object.fromEntries(merged) };
}
