import type { CustomAgent, StreamFormat } from "../../config/custom-agents.ts";
import type { ModelProvider } from "../../config/model-settings.ts";

/** Text or JSON in which `{name}` is replaced by a value of the run; see `TemplateValues`. */
export type Template = string | number | boolean | null | Template[] | { [name: string]: Template };

/** How an agent gets its MCP servers. */
export type McpSettings = {
  /** A file in its home directory, added to the preset's own file of that name. */
  file: string;
  format: "claude" | "codex" | "gemini" | "qwen" | "opencode" | "copilot";
  /** Further arguments. */
  args?: Template[];
  /** Further environment variables. */
  env?: Record<string, Template>;
  /** Start of the names under which the model gets the tools of `{server}`. */
  toolPrefix: string;
};

/** How to run a coding agent. The prompt goes to its stdin. */
export type Preset = {
  id: string;
  /** The name that its vendor uses. */
  name: string;
  /** Changes with everything here that may change what the agent does. */
  revision: string;
  /** Versions with which a full session was tested. */
  triedVersions: readonly string[];
  /** Name of the program on PATH, or its absolute path. */
  command: string;
  /** The npm package that contains the program; null: the operator added the agent, with a program of any origin. */
  packageName: string | null;
  /** Glob of the native program among the installed packages, if the program on PATH is only a launcher. */
  native?: string;
  /** Oldest major version of Node.js that it runs on. */
  minNode?: number;
  /** Command line that installs it. */
  install: string | null;
  /** Providers whose models it can use, each with further values for its templates. */
  providers: Partial<Record<ModelProvider, Record<string, string>>>;
  stream: StreamFormat;
  args: Template[];
  env: Record<string, Template>;
  /** The file in the workspace from which it reads instructions. */
  contextFile: "AGENTS.md" | "CLAUDE.md" | "GEMINI.md";
  /** The directory in the workspace from which it reads skills. */
  skillsFolder: ".agents/skills" | ".claude/skills";
  /** How it gets its MCP servers; null: not supported, or over ACP. */
  mcp: McpSettings | null;
  /** Files in its home directory, by path; objects are written as JSON. */
  files: Record<string, Template>;
  /** Memory that a usual session needs, in MiB. */
  memoryMb: number;
  /** Measured size of its own instructions and tools in the first request to a model; null: unknown. */
  firstRequestTokens: number | null;
};

/** Values for templates: `gateway` (URL without a trailing slash), `token`, `model`, `provider`, `home`, and those of the provider. */
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

/** Whether a session with this version was tested. Custom agents name no versions. */
export const isTried = ({ triedVersions, packageName }: Preset, version: string): boolean =>
  packageName === null || triedVersions.includes(version);

/** What most agents have in common. */
export const presetDefaults = {
  contextFile: "AGENTS.md",
  skillsFolder: ".agents/skills",
  mcp: null,
  files: {},
  memoryMb: 1024,
  firstRequestTokens: null,
} as const;

/** The preset of an agent that the operator added. */
export function toPreset({ id, command, args = [], env = {}, stream, provider }: CustomAgent): Preset {
  const digest = new Bun.CryptoHasher("sha256").update(JSON.stringify([command, args, env, stream, provider]));
  return {
    ...presetDefaults,
    id,
    name: id,
    revision: `custom.${digest.digest("hex").slice(0, 8)}`,
    triedVersions: [],
    command,
    packageName: null,
    install: null,
    providers: { [provider]: {} },
    stream,
    args,
    env,
  };
}
