import type { McpServer as AcpServer } from "@agentclientprotocol/sdk";
import type { mcpFormats } from "../../config/agent-entry.ts";
import type { McpServer } from "../task.ts";
import { fillFile, type Preset, type TemplateValues } from "./preset.ts";

type Servers = Record<string, McpServer>;

/** Whether the agent can be given MCP servers. */
export const canUseMcp = ({ mcp, stream }: Preset): boolean => mcp !== null || stream === "acp";

const mapServers = (servers: Servers, toConfig: (server: McpServer) => object) =>
  Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, toConfig(server)]));

/** How long Qwen Code waits for an MCP server. After its own limit of 5 seconds, a session on a busy machine continues without it. */
const discoveryTimeoutMs = 60_000;

const toGeminiSettings = (servers: Servers, options: object) => ({
  mcpServers: mapServers(servers, ({ url, ...local }) => ({
    ...(url === undefined ? local : { httpUrl: url }),
    ...options,
  })),
});

/** The settings of MCP servers, as each agent reads them. */
const formats: Record<Exclude<(typeof mcpFormats)[number], "codex">, (servers: Servers) => object> = {
  claude: (servers) => ({
    mcpServers: mapServers(servers, ({ url, ...local }) => (url === undefined ? local : { type: "http", url })),
  }),
  gemini: (servers) => toGeminiSettings(servers, { trust: true }),
  qwen: (servers) => toGeminiSettings(servers, { trust: true, discoveryTimeoutMs }),
  opencode: (servers) => ({
    mcp: mapServers(servers, ({ url, command = "", args = [], env = {} }) =>
      url === undefined
        ? { type: "local", command: [command, ...args], environment: env, enabled: true }
        : { type: "remote", url, oauth: false, enabled: true },
    ),
  }),
  copilot: (servers) => ({
    mcpServers: mapServers(servers, ({ url, ...local }) =>
      url === undefined ? { type: "local", args: [], ...local, tools: ["*"] } : { type: "http", url, tools: ["*"] },
    ),
  }),
};

/** Codex's settings of MCP servers in TOML, where strings and arrays are written as in JSON. `inheritedVariables`: variables that Codex passes to the servers. */
function toToml(servers: Servers, inheritedVariables: string[]): string {
  const tables = Object.entries(servers).map(([name, { url, command, args = [], env }]) => {
    const lines =
      url === undefined
        ? [
            `command = ${JSON.stringify(command)}`,
            `args = ${JSON.stringify(args)}`,
            `env_vars = ${JSON.stringify(inheritedVariables)}`,
          ]
        : [`url = ${JSON.stringify(url)}`];
    const variables = Object.entries(env ?? {}).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    const nested = variables.length > 0 ? ["", `[mcp_servers.${name}.env]`, ...variables] : [];
    return [`[mcp_servers.${name}]`, ...lines, ...nested].join("\n");
  });
  return `\n${tables.join("\n\n")}\n`;
}

/** Variables of the sandbox that MCP servers need to reach the network. Codex passes only variables that its settings name. */
const networkVariables =
  "HTTP_PROXY HTTPS_PROXY http_proxy https_proxy NO_PROXY no_proxy NODE_OPTIONS EVALD_ROUTES SSL_CERT_FILE NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE".split(
    " ",
  );

/** The files of a preset for one run, by path, with its MCP servers. `variables`: names of the run's own variables. */
export function presetFilesOf(
  preset: Preset,
  values: TemplateValues,
  servers: Servers,
  variables: string[],
): Record<string, string> {
  const files = Object.fromEntries(
    Object.entries(preset.files).map(([path, content]) => [path, fillFile(content, values)]),
  );
  const { mcp } = preset;
  if (!mcp || Object.keys(servers).length === 0) return files;
  const presetFile = files[mcp.file];
  if (mcp.format === "codex")
    return { ...files, [mcp.file]: (presetFile ?? "") + toToml(servers, [...networkVariables, ...variables]) };
  const settings = { ...JSON.parse(presetFile ?? "{}"), ...formats[mcp.format](servers) };
  return { ...files, [mcp.file]: JSON.stringify(settings) };
}

/** The arguments and variables of a preset for a run with MCP servers or none. */
export function argsAndEnvOf({ mcp, args, env }: Preset, servers: Servers) {
  if (Object.keys(servers).length === 0) return { args, env };
  return { args: [...args, ...(mcp?.args ?? [])], env: { ...env, ...mcp?.env } };
}

/** MCP servers in the format of the Agent Client Protocol. */
export const toAcpServers = (servers: Servers): AcpServer[] =>
  Object.entries(servers).map(([name, { url, command = "", args = [], env = {} }]) =>
    url === undefined
      ? { name, command, args, env: Object.entries(env).map(([key, value]) => ({ name: key, value })) }
      : { type: "http" as const, name, url, headers: [] },
  );

/** Agents replace the characters that their models don't accept. The length stays the same. */
export const toAcceptedName = (name: string) => name.replaceAll("-", "_");

/** How the agent's names for the tools of an MCP server begin. */
export type McpPrefix = { server: string; prefix: string };

/** An agent that gets its MCP servers over ACP may be any agent, so each of the usual prefixes is possible. */
const usualPrefixes = ["mcp__{server}__", "mcp_{server}_", "{server}_", "{server}-", "{server}."];

/** The prefixes by which an agent's calls of the tools of MCP servers are recognized. */
export function mcpPrefixesOf({ mcp }: Preset, servers: Servers): McpPrefix[] {
  const templates = mcp ? [mcp.toolPrefix] : usualPrefixes;
  return Object.keys(servers).flatMap((server) =>
    templates.map((template) => ({ server, prefix: toAcceptedName(template.replace("{server}", server)) })),
  );
}

/**
 * Finds the MCP server of a tool by the agent's name for the tool; null for any other tool. Renames the tool to
 * `mcp__SERVER__TOOL`, the form that most agents use.
 */
export function findMcpTool(prefixes: McpPrefix[], name: string): { server: string; tool: string } | null {
  const match = prefixes.find(({ prefix }) => toAcceptedName(name).startsWith(prefix));
  return match ? { server: match.server, tool: `mcp__${match.server}__${name.slice(match.prefix.length)}` } : null;
}
