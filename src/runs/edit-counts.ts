import type { AgentEvent } from "../agents/agent.ts";
import type { Milestone } from "../agents/milestones.ts";
import { type CompiledEdits, matchesUrl } from "../net/edits.ts";

/** How often the edits of a run were met, by their positions. */
type EditCounts = { edits: CompiledEdits; detail: Milestone<"docs_edited">["detail"] };

/** The counts before the first request. */
export const openEditCounts = (edits: CompiledEdits): EditCounts => ({
  edits,
  detail: {
    hidden: edits.hidden.map(() => 0),
    replacements: edits.replacements.map(() => ({ requests: 0, applied: 0 })),
  },
});

/** Counts a request. For a replacement, `requests` counts the responses with a page, and `applied` counts those in which its text occurred. */
export function countEdits({ edits, detail }: EditCounts, event: AgentEvent): void {
  if (event.type !== "http" || event.status === null) return;
  const { edit, status, answeredBy = event.url } = event;
  const url = URL.parse(answeredBy);
  if (url === null) return;
  for (const [i, pattern] of edits.hidden.entries())
    if (edit?.kind === "hidden" && matchesUrl(pattern, url)) detail.hidden[i]!++;
  for (const [i, { pattern }] of edits.replacements.entries()) {
    const counts = detail.replacements[i]!;
    if (edit?.replacements?.includes(i)) counts.applied++;
    if (status >= 200 && status <= 299 && matchesUrl(pattern, url)) counts.requests++;
  }
}

/** The counts of the edits as an event of the session. */
export const toEditsEvent = ({ detail }: EditCounts): Milestone<"docs_edited"> => ({
  type: "milestone",
  name: "docs_edited",
  detail,
});
