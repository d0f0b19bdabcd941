import type { SessionEvent } from "../agents/agent.ts";
import { type EventOf, hasSucceeded, milestonesOf } from "./events.ts";
import type { Context } from "./grade.ts";

/** Tools with which agents load a skill, by their own names. */
const skillTools = /^(skill|activate_skill|use_skill)$/i;

/** The context in the events of a session; null if its workspace was not set up and it read the live docs as they are. */
export function contextOf(session: SessionEvent[]): Context | null {
  const edits = milestonesOf(session, "docs_edited").at(-1)?.detail;
  const workspace = milestonesOf(session, "workspace_prepared").at(-1)?.detail;
  const sites = milestonesOf(session, "site_served").map(({ detail }) => detail);
  const docs = { sites, ...(edits && { edits }) };
  if (workspace === undefined)
    return sites.length === 0 && !edits ? null : { instructions: null, skills: [], mcpServers: [], env: [], ...docs };
  const offeredContext = milestonesOf(session, "context_offered").at(-1)?.detail;
  const calls = session.filter((event): event is EventOf<"tool_call"> => event.type === "tool_call");
  // A skill that could not be loaded was not used. A server that answered with an error was used.
  const failedIds = new Set(session.flatMap((event) => (hasFailedResult(event) ? [event.id] : [])));
  const loads = calls.filter(({ id }) => !failedIds.has(id));
  const chars = workspace.instructionChars;
  return {
    instructions: chars > 0 ? { chars, isUsed: offeredContext?.instructions ?? null } : null,
    skills: workspace.skills.map(({ name }) => ({
      name,
      isOffered: offeredContext?.skills.includes(name) ?? null,
      uses: loads.filter((call) => loadsSkill(call, name)).length,
    })),
    mcpServers: workspace.mcpServers.map(({ name }) => ({
      name,
      isOffered: offeredContext?.mcpServers.includes(name) ?? null,
      uses: calls.filter(({ tool }) => tool.startsWith(`mcp__${name}__`)).length,
    })),
    env: workspace.env,
    ...docs,
  };
}

const hasFailedResult = (event: SessionEvent): event is EventOf<"tool_result"> =>
  event.type === "tool_result" && hasSucceeded(event) === false;

/** A call of the agent's own tool for skills, or one that reads the skill's SKILL.md. */
function loadsSkill({ tool, ownName = tool, input }: EventOf<"tool_call">, name: string): boolean {
  const skill = input.skill ?? input.name ?? input.command;
  if (skillTools.test(ownName) && typeof skill === "string") return skill.split(":").at(-1) === name;
  return tool !== "write_file" && JSON.stringify(input).includes(`${name}/SKILL.md`);
}
