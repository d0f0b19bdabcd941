import type { SessionEvent } from "../../agents/agent.ts";
import { eventSummary, hasEventFailed } from "../../reports/event-summary.ts";
import { humanize } from "../../reports/labels.ts";

/** Rows of the live timeline of a run. */
export const TimelineRows = ({ events }: { events: SessionEvent[] }) => (
  <>
    {events.map(({ seq, at: _, tMs, type, source, ...fields }) => (
      <li key={seq} class={`event-${type}${hasEventFailed(type, fields) ? " failed" : ""}`}>
        <span class="t">{(tMs / 1000).toFixed(1)} s</span>
        <span class="kind">
          {humanize(type)}
          {source !== "agent" && <small> {source}</small>}
        </span>
        <span class="what">{eventSummary(type, fields)}</span>
      </li>
    ))}
  </>
);
