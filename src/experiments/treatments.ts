import type { SessionEvent } from "../agents/agent.ts";
import { mcpUrlsOf } from "../agents/task.ts";
import type { Arm, Treatment } from "../db/tables/experiments.ts";
import { contextOf } from "../grading/context.ts";
import { milestonesOf } from "../grading/events.ts";
import { meetsUrl } from "../net/edits.ts";

/** URLs by which a session shows that it met the treatment of an arm: those of its MCP servers, with all paths below, and the arm's own. */
const tracesOf = ({ markers = [], workspace }: Arm): string[] => [
  ...markers,
  ...mcpUrlsOf(workspace).flatMap((url) => [url, `${url.replace(/\/$/, "")}/*`]),
];

/**
 * What a session shows of the treatments of its experiment, by the records of the gateway and the egress. What the agent says of itself does not
 * count.
 */
export function treatmentOf(events: SessionEvent[], own: Arm, others: readonly Arm[]): Treatment {
  const traces = tracesOf(own);
  const met = others.find((other) =>
    tracesOf(other).some((trace) => !traces.includes(trace) && meetsUrl(events, trace)),
  );
  return { offered: isOffered(events, own), used: isUsed(events, own, traces), met: met?.name ?? null };
}

/** Whether the model received a part of the context that the arm gives it; null: the arm gives none. */
function isOffered(events: SessionEvent[], { workspace = {} }: Arm): boolean | null {
  const { instructions, skills, mcpServers = {} } = workspace;
  const servers = Object.keys(mcpServers);
  if (instructions === undefined && skills === undefined && servers.length === 0) return null;
  return events.some(
    (event) =>
      event.type === "milestone" &&
      event.name === "context_offered" &&
      ((instructions !== undefined && event.detail.instructions) ||
        (skills !== undefined && event.detail.skills.length > 0) ||
        event.detail.mcpServers.some((name) => servers.includes(name))),
  );
}

/** Whether the agent requested, read or called what the arm changes; null: that leaves no trace. */
function isUsed(events: SessionEvent[], { workspace, edits }: Arm, traces: string[]): boolean | null {
  const edited = edits !== undefined && edits.hidden.length + edits.replacements.length > 0;
  if (traces.length === 0 && !edited && workspace?.skills === undefined) return null;
  return (
    traces.some((trace) => meetsUrl(events, trace)) ||
    events.some((event) => event.type === "http" && isEdited(event)) ||
    (workspace?.skills !== undefined && hasReadSkill(events))
  );
}

/** Whether the agent, and not the survey of the docs, got an edited response. */
const isEdited = ({ edit, phase }: Extract<SessionEvent, { type: "http" }>): boolean =>
  edit !== undefined && phase !== "survey" && (edit.kind === "hidden" || (edit.replacements ?? []).length > 0);

/** Whether the model received the instructions of a skill. evald's own agent reads files by its own tools, so their calls are records too. */
const hasReadSkill = (events: SessionEvent[]): boolean =>
  milestonesOf(events, "skill_read").length > 0 ||
  (milestonesOf(events, "started").at(-1)?.detail.agent === "llm" &&
    (contextOf(events)?.skills.some(({ uses }) => uses > 0) ?? false));
