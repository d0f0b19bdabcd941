import type { Artifact } from "../../agents/agent.ts";
import { eventSummary } from "../../reports/event-summary.ts";
import { formatBytes, humanize } from "../../reports/labels.ts";
import type { Trace } from "../../reports/trace-schema.ts";
import { Payload } from "./payload.tsx";

type Event = Trace["events"][number];

/** Payloads of up to this many characters are part of the page. Longer payloads are loaded when they are opened. */
export const maxInlineEventChars = 1200;

type LineProps = {
  event: Event;
  isFailed: boolean;
  /** URL of the session page. */
  here: string;
  /** Labels of the friction points that this event supports, such as F1. */
  frictionLabels: string[];
  reportUrl: string;
  /** URL of the screenshots; null if the viewer may not see them. */
  filesUrl: string | null;
  isInline: boolean;
};

/** An event as one line. The line opens to show the fields and the picture of the event. */
export function EventLine({ event, isFailed, here, frictionLabels, reportUrl, filesUrl, isInline }: LineProps) {
  const { seq, at: _at, tMs: _tMs, type, source, ...rest } = event;
  const fields: Record<string, unknown> = rest;
  const eventUrl = `${here}/${seq}`;
  const { artifact } = fields as { artifact?: Artifact };
  const hasFile = artifact && !artifact.missing && filesUrl !== null;
  const file = hasFile ? { name: artifact.name, url: `${filesUrl}/${artifact.name}` } : null;
  const loadWhenOpened = {
    "hx-get": eventUrl,
    "hx-trigger": "toggle once",
    "hx-target": "find .whole",
    "hx-swap": "outerHTML",
  };
  return (
    <div class="line">
      <details id={`e${seq}`} class={`event-${type}${isFailed ? " failed" : ""}`} {...(isInline ? {} : loadWhenOpened)}>
        <summary>
          <span class="kind">
            {humanize(type)}
            {source !== "agent" && <small> {source}</small>}
          </span>{" "}
          <span class="what">{eventSummary(type, fields)}</span>
        </summary>
        {isInline ? (
          <Payload fields={fields} />
        ) : (
          <p class="whole">
            <a href={eventUrl}>View full event</a> ({formatBytes(JSON.stringify(fields).length)})
          </p>
        )}
      </details>
      {frictionLabels.map((name) => (
        <a key={name} class="pill proves" href={`${reportUrl}#${name}`}>
          {name}
        </a>
      ))}
      {file && (
        <a class="picture" href={file.url}>
          {file.name.endsWith(".webp") ? (
            <img src={file.url} alt={`Screenshot after event ${seq}`} loading="lazy" />
          ) : (
            file.name
          )}
        </a>
      )}
    </div>
  );
}
