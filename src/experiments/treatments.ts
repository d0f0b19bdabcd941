import type { SessionEvent } from "../agents/agent.ts";
import { mcpUrlsOf } from "../agents/task.ts";
import type { Arm, Treatment } from "../db/tables/experiments.ts";
import { contextOf } from "../grading/context.ts";
import { milestonesOf } from "../grading/events.ts";
import { meetsUrl } from "../net/edits.ts";

/** URLs that show that a session met the treatment of an arm: the URLs of the arm's MCP servers, with all paths below, and the arm's own URLs. */
const tracesOf = ({ markers = [], workspace }: Arm): string[] => [
  ...markers,
  ...mcpUrlsOf(workspace).flatMap((url) => [url, `${url.replace(/\/$/, "")}/*`]),
];

/**
 * What a session shows of the treatments of its experiment. Only the records of the gateway and the egress count, and not what the agent says about
 * itself.
 */
export function treatmentOf(events: SessionEvent[], own: Arm, others: readonly Arm[]): Treatment {
  const traces = tracesOf(own);
  const met = others.find((other) =>
    tracesOf(other).some((trace) => !traces.includes(trace) && meetsUrl(events, trace)),
  );
  const triggered = triggeredOf(events);
  return { offered: isOffered(events, own), used: isUsed(events, own, triggered), met: met?.name ?? null, triggered };
}

/** Whether the model received a part of the context that the arm gives it; null: the arm gives none. */
function isOffered(events: SessionEvent[], { workspace = {} }: Arm): boolean | null {
  const { instructions, skills, mcpServers = {} } = workspace;
  const servers = Object.keys(mcpServers);
  if (instructions === undefined && skills === undefined && servers.length === 0) return null;
  return milestonesOf(events, "context_offered").some(({ detail }) => {
    const hasInstructions = instructions !== undefined && detail.instructions;
    const hasSkills = skills !== undefined && detail.skills.length > 0;
    return hasInstructions || hasSkills || detail.mcpServers.some((name) => servers.includes(name));
  });
}

/** Whether the agent requested, read or called what the arm changes; null: the change leaves no trace, or nobody saw it. */
function isUsed(events: SessionEvent[], { markers = [], workspace = {}, edits }: Arm, triggered: Triggered | null) {
  const { skills, mcpServers = {} } = workspace;
  const hasEdits = edits !== undefined && edits.hidden.length + edits.replacements.length > 0;
  const hasContext = triggered !== null && (skills !== undefined || Object.keys(mcpServers).length > 0);
  if (markers.length === 0 && !hasEdits && !hasContext) return null;
  return (
    markers.some((url) => meetsUrl(events, url)) ||
    events.some((event) => event.type === "http" && isEdited(event)) ||
    (skills !== undefined && (triggered?.skills ?? []).length > 0) ||
    (triggered?.mcpServers ?? []).some((name) => name in mcpServers)
  );
}

type Triggered = NonNullable<Treatment["triggered"]>;

/** Whether the agent, and not the survey of the docs, got an edited response. */
const isEdited = ({ edit, phase }: Extract<SessionEvent, { type: "http" }>): boolean =>
  edit !== undefined && phase !== "survey" && (edit.kind === "hidden" || (edit.replacements ?? []).length > 0);

/**
 * The skills whose instructions the model received, and the MCP servers whose tools it called. null: the workspace has neither, or no request to the
 * model was seen. Connecting to a server doesn't count as use. evald's own agent reads files and calls tools itself, so its calls are records too.
 */
function triggeredOf(events: SessionEvent[]): Triggered | null {
  const workspace = milestonesOf(events, "workspace_prepared").at(-1)?.detail;
  if (!workspace || workspace.skills.length + workspace.mcpServers.length === 0) return null;
  if (milestonesOf(events, "context_offered").length === 0) return null;
  if (milestonesOf(events, "started").at(-1)?.detail.agent === "llm") {
    const { skills = [], mcpServers = [] } = contextOf(events) ?? {};
    return { skills: namesOfUsed(skills), mcpServers: namesOfUsed(mcpServers) };
  }
  // If the instructions of a skill are too short, nothing shows that the skill was read.
  if (workspace.skills.some(({ opening }) => opening === undefined)) return null;
  return {
    skills: milestonesOf(events, "skill_read").map(({ detail }) => detail.skill),
    mcpServers: milestonesOf(events, "mcp_server_called").map(({ detail }) => detail.server),
  };
}

const namesOfUsed = (parts: { name: string; uses: number }[]): string[] =>
  parts.flatMap(({ name, uses }) => (uses > 0 ? [name] : []));
