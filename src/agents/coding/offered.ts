import type { AgentEvent } from "../agent.ts";
import type { McpServer } from "../task.ts";
import type { Fields } from "./fields.ts";
import { type createMcpNames, plain } from "./mcp-servers.ts";

type Context = {
  instructions: string | undefined;
  skills: { name: string; description: string }[];
  servers: Record<string, McpServer>;
  mcpNames: ReturnType<typeof createMcpNames>;
};

/** Agents load tools and skills while they start. */
const maxRequests = 8;
const probeChars = 300;

/** Finds out from the requests to a model which parts of the context it receives, and reports them with the first request and when there are more. */
export function createOffered(
  { instructions = "", skills, servers, mcpNames }: Context,
  tell: (event: AgentEvent) => void,
) {
  const wanted = new Map<string, (text: string) => boolean>();
  const probe = instructions.trim().slice(0, probeChars);
  if (probe !== "") wanted.set("instructions", (text) => text.includes(probe));
  for (const { name, description } of skills) {
    const part = description.split("\n")[0]?.slice(0, probeChars) || `${name}/SKILL.md`;
    wanted.set(`skill ${name}`, (text) => text.includes(name) && text.includes(part));
  }
  // Tools that a model may search for are listed by their server only.
  for (const name of Object.keys(servers))
    wanted.set(
      `server ${name}`,
      (text) => mcpNames(text)?.server === name || plain(text).includes(`mcp__${plain(name)}`),
    );
  const found = new Set<string>();
  let requests = 0;

  function look(value: unknown): void {
    if (typeof value === "string") {
      for (const [what, matches] of wanted) if (!found.has(what) && matches(value)) found.add(what);
    } else if (value !== null && typeof value === "object") for (const item of Object.values(value)) look(item);
  }

  return (body: Fields): void => {
    if (requests >= maxRequests || (requests > 0 && found.size === wanted.size)) return;
    const before = found.size;
    look(body);
    if (requests++ > 0 && found.size === before) return;
    const detail = {
      instructions: found.has("instructions"),
      skills: skills.flatMap(({ name }) => (found.has(`skill ${name}`) ? [name] : [])),
      mcpServers: Object.keys(servers).filter((name) => found.has(`server ${name}`)),
    };
    tell({ type: "milestone", name: "context_offered", detail });
  };
}
