import { count } from "../../grading/text.ts";
import type { Trace } from "../../reports/trace-schema.ts";
import type { Turn } from "../../reports/turns.ts";
import { EventLine } from "./event-line.tsx";
import { toEventHref } from "./figures.tsx";
import { useTime } from "./when.tsx";

type Event = Trace["events"][number];
type Props = { here: string; reportUrl: string; filesUrl: string | null } & {
  turns: Turn[];
  isInline: (event: Event) => boolean;
  isFailed: (event: Event) => boolean;
  /** Labels of the friction points that an event supports, such as F1. */
  labelsOf: (event: Event) => string[];
  /** The time of the previous event, in milliseconds since the start of the session. */
  tMsBefore: (event: Event) => number;
};

/** Types of events that rarely matter within their turn, unless they failed. The values are the nouns for counting them. */
const quietTypes = { usage: "model call", http: "request", milestone: "milestone" } as const;

/** A session as turns. Each turn shows together what the agent thought, what it called, and what came back. */
export const Turns = ({ turns, ...props }: Props) => (
  <ol class="turns">
    {turns.map((turn) => (
      <TurnItem key={turn.events[0]?.seq} turn={turn} {...props} />
    ))}
  </ol>
);

function TurnItem({
  turn: { events },
  isInline,
  isFailed,
  labelsOf,
  tMsBefore,
  ...urls
}: Omit<Props, "turns"> & { turn: Turn }) {
  const [first, last] = [events[0] as Event, events.at(-1) as Event];
  const failed = events.some(isFailed);
  const costs = events.flatMap((event) =>
    "costUsd" in event && typeof event.costUsd === "number" ? [event.costUsd] : [],
  );
  const totalUsd = costs.reduce((sum, cost) => sum + cost, 0);
  const tookMs = last.tMs - tMsBefore(first);
  const line = (event: Event) => (
    <EventLine
      key={event.seq}
      {...urls}
      event={event}
      isInline={isInline(event)}
      isFailed={isFailed(event)}
      frictionLabels={labelsOf(event)}
    />
  );
  const quietEvents = events.filter(
    (event) => event.type in quietTypes && !isFailed(event) && labelsOf(event).length === 0,
  );
  // A turn that has only quiet events shows them, too.
  const foldedEvents = quietEvents.length === events.length ? [] : quietEvents;
  return (
    <li class={failed ? "agent-turn failed" : "agent-turn"}>
      <p class="turn-at">
        <a href={toEventHref("", first.seq)}>{first.seq === last.seq ? first.seq : `${first.seq}–${last.seq}`}</a>
        <span title={useTime()(first.at)}>{(first.tMs / 1000).toFixed(2)} s</span>
        <span class={tookMs >= 1000 ? "slow" : undefined}>
          {tookMs < 1000 ? `${tookMs} ms` : `${(tookMs / 1000).toFixed(1)} s`}
        </span>
        {costs.length > 0 && <span>${totalUsd.toFixed(4)}</span>}
      </p>
      <div class="turn-events">
        {events.filter((event) => !foldedEvents.includes(event)).map(line)}
        {foldedEvents.length > 0 && (
          <details class="quiet">
            <summary>{quietText(foldedEvents)}</summary>
            {foldedEvents.map(line)}
          </details>
        )}
      </div>
    </li>
  );
}

const quietText = (events: Event[]): string =>
  Object.entries(quietTypes)
    .map(([type, name]) => ({ name, total: events.filter((event) => event.type === type).length }))
    .filter(({ total }) => total > 0)
    .map(({ name, total }) => count(total, name))
    .join(", ");
