import type { SessionEvent } from "../../agents/agent.ts";
import { plain } from "../words.ts";
import { summaryOf } from "./event.tsx";

/** Events of a run as they happened, each a line. */
export const TimelineRows = ({ events }: { events: SessionEvent[] }) => (
  <>
    {events.map(({ seq, at: _, tMs, type, source, ...fields }) => (
      <li key={seq} class={`event-${type}`}>
        <span class="t">{(tMs / 1000).toFixed(1)} s</span>
        <span class="kind">
          {plain(type)}
          {source !== "agent" && <small> {source}</small>}
        </span>
        <span class="what">{summaryOf(type, fields)}</span>
      </li>
    ))}
  </>
);
