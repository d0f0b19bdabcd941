import type { AgentEvent } from "../agent.ts";
import type { Fields } from "../fields.ts";
import type { Skill } from "../sandbox/skills.ts";
import type { WorkspaceSetup } from "../task.ts";
import { findMcpTool, type McpPrefix, plain } from "./mcp-servers.ts";

/** Agents load tools and skills while they start. */
const maxRequests = 8;
const probeChars = 300;

/** Finds out from the requests to a model which parts of the context it receives, and reports them with the first request and when there are more. */
export function createOffered(
  { instructions = "", mcpServers = {} }: WorkspaceSetup,
  skills: Skill[],
  mcpPrefixes: McpPrefix[],
  report: (event: AgentEvent) => void,
) {
  const servers = Object.keys(mcpServers);
  const probes = new Map<string, (text: string) => boolean>();
  const start = instructions.trim().slice(0, probeChars);
  if (start !== "") probes.set("instructions", (text) => text.includes(start));
  for (const { name, description } of skills) {
    const part = description.split("\n")[0]?.slice(0, probeChars) || `${name}/SKILL.md`;
    probes.set(`skill ${name}`, (text) => text.includes(name) && text.includes(part));
  }
  // Tools that a model may search for are listed by their server only.
  for (const name of servers)
    probes.set(
      `server ${name}`,
      (text) => findMcpTool(mcpPrefixes, text)?.server === name || plain(text).includes(`mcp__${plain(name)}`),
    );
  const offered = new Set<string>();
  let requests = 0;

  function search(value: unknown): void {
    if (typeof value === "string") {
      for (const [what, matches] of probes) if (!offered.has(what) && matches(value)) offered.add(what);
    } else if (value !== null && typeof value === "object") for (const item of Object.values(value)) search(item);
  }

  return (body: Fields): void => {
    if (requests >= maxRequests || (requests > 0 && offered.size === probes.size)) return;
    const before = offered.size;
    search(body);
    if (requests++ > 0 && offered.size === before) return;
    const detail = {
      instructions: offered.has("instructions"),
      skills: skills.flatMap(({ name }) => (offered.has(`skill ${name}`) ? [name] : [])),
      mcpServers: servers.filter((name) => offered.has(`server ${name}`)),
    };
    report({ type: "milestone", name: "context_offered", detail });
  };
}
