import type { AgentEvent } from "../agent.ts";
import { type Fields, text } from "../fields.ts";
import type { Skill } from "../sandbox/skills.ts";
import type { WorkspaceSetup } from "../task.ts";
import { findMcpTool, type McpPrefix, toAcceptedName } from "./mcp-servers.ts";

/** Agents load tools and skills while they start, so only the first requests are searched. */
const maxRequests = 8;
/** Characters of an instruction or a description by which a request is recognized. */
const probeChars = 300;

/**
 * Finds out from the requests to a model which parts of the context it receives. Reports them with the first request, and again when there are more.
 * Also reports each skill whose instructions the model has read.
 */
export function createContextDetector(
  { instructions = "", mcpServers = {} }: WorkspaceSetup,
  skills: Skill[],
  mcpPrefixes: McpPrefix[],
  report: (event: AgentEvent) => void,
) {
  const servers = Object.keys(mcpServers);
  /** For each part of the context, whether a text of a request shows that the model receives it. */
  const probes = new Map<string, (value: string) => boolean>();
  const instructionsStart = instructions.trim().slice(0, probeChars);
  if (instructionsStart !== "") probes.set("instructions", (value) => value.includes(instructionsStart));
  for (const { name, description } of skills) {
    const descriptionStart = description.split("\n")[0]?.slice(0, probeChars) || `${name}/SKILL.md`;
    probes.set(`skill ${name}`, (value) => value.includes(name) && value.includes(descriptionStart));
  }
  // A server whose tools a model may search for is listed only by its own name.
  for (const name of servers)
    probes.set(
      `server ${name}`,
      (value) =>
        findMcpTool(mcpPrefixes, value)?.server === name ||
        toAcceptedName(value).includes(`mcp__${toAcceptedName(name)}`),
    );
  const receivedParts = new Set<string>();
  let requestCount = 0;
  const detectReadSkills = createReadDetector(skills, report);

  return (body: Fields): void => {
    detectReadSkills(body);
    const isComplete = requestCount > 0 && receivedParts.size === probes.size;
    if (isComplete || requestCount >= maxRequests) return;
    const previousCount = receivedParts.size;
    const texts = textsIn(body);
    for (const [part, matches] of probes) if (texts.some(matches)) receivedParts.add(part);
    requestCount++;
    if (requestCount > 1 && receivedParts.size === previousCount) return;
    const detail = {
      instructions: receivedParts.has("instructions"),
      skills: skills.flatMap(({ name }) => (receivedParts.has(`skill ${name}`) ? [name] : [])),
      mcpServers: servers.filter((name) => receivedParts.has(`server ${name}`)),
    };
    report({ type: "milestone", name: "context_offered", detail });
  };
}

/** Reports each MCP server when the model calls one of its tools for the first time. The calls come from the record of the model's answers. */
export function createMcpCallDetector(mcpPrefixes: McpPrefix[], report: (event: AgentEvent) => void) {
  const calledServers = new Set<string>();
  return (call: { name: string; input: Fields }): void => {
    for (const { server } of namesIn(call).flatMap((name) => findMcpTool(mcpPrefixes, name) ?? [])) {
      if (calledServers.has(server)) continue;
      calledServers.add(server);
      report({ type: "milestone", name: "mcp_server_called", detail: { server } });
    }
  };
}

/**
 * The tools that a call uses. Usually, that is the tool itself. Qwen Code calls tools that it found through a tool of its own, and Codex calls tools
 * in a script.
 */
function namesIn({ name, input }: { name: string; input: Fields }): string[] {
  if (name === "tool_call") return [text(input.name)];
  if (name !== "exec") return [name];
  return [...text(input.input).matchAll(/\btools\.(\w+)\s*\(/g)].flatMap(([, tool = ""]) => tool);
}

/** All texts in a value. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return value !== null && typeof value === "object" ? Object.values(value).flatMap(textsIn) : [];
}

/** Reports each skill when a request contains its instructions for the first time. */
function createReadDetector(skills: Skill[], report: (event: AgentEvent) => void) {
  const unread = new Set(skills.filter(({ opening }) => opening !== undefined));
  return (body: Fields): void => {
    const texts = unread.size > 0 ? textsIn(body) : [];
    for (const skill of unread) {
      if (!texts.some((each) => each.includes(skill.opening ?? ""))) continue;
      unread.delete(skill);
      report({ type: "milestone", name: "skill_read", detail: { skill: skill.name } });
    }
  };
}
