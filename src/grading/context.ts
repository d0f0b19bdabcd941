import type { SessionEvent } from "../agents/agent.ts";
import type { EventOf } from "./events.ts";
import { numberOr, strings } from "./goal-found.ts";
import type { Context } from "./grade.ts";

/** Tools with which agents load a skill, by their own names. */
const skillTools = /^(skill|activate_skill|use_skill)$/i;

/** The context in the events of a session; null if its workspace was not set up. */
export function contextOf(session: SessionEvent[]): Context | null {
  const milestones = session.filter((event): event is EventOf<"milestone"> => event.type === "milestone");
  const given = milestones.findLast(({ name }) => name === "workspace_prepared")?.detail;
  if (!given) return null;
  const offered = milestones.findLast(({ name }) => name === "context_offered")?.detail;
  const calls = session.filter((event): event is EventOf<"tool_call"> => event.type === "tool_call");
  const isOffered = (kind: "skills" | "mcpServers", name: string) =>
    offered ? strings(offered[kind]).includes(name) : null;
  const chars = numberOr(given.instructionChars, 0);
  return {
    instructions: chars > 0 ? { chars, isUsed: offered ? offered.instructions === true : null } : null,
    skills: objects(given.skills).map(({ name }) => ({
      name: String(name),
      isOffered: isOffered("skills", String(name)),
      uses: calls.filter((call) => loadsSkill(call, String(name))).length,
    })),
    mcpServers: objects(given.mcpServers).map(({ name }) => ({
      name: String(name),
      isOffered: isOffered("mcpServers", String(name)),
      uses: calls.filter(({ tool }) => tool.startsWith(`mcp__${name}__`)).length,
    })),
    env: strings(given.env),
  };
}

/** A call of the agent's own tool for skills, or one that reads the skill's SKILL.md. */
function loadsSkill({ tool, ownName = tool, input }: EventOf<"tool_call">, name: string): boolean {
  const named = input.skill ?? input.name ?? input.command;
  if (skillTools.test(ownName) && typeof named === "string") return named.split(":").at(-1) === name;
  return tool !== "write_file" && JSON.stringify(input).includes(`${name}/SKILL.md`);
}

const objects = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter((item) => item !== null && typeof item === "object") : [];
