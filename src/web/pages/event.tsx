import { renderToString } from "preact-render-to-string";
import type { Artefact } from "../../agents/agent.ts";
import { line } from "../../grading/text.ts";
import { formatBytes, formatTime, plain } from "../../reports/labels.ts";
import type { Trace } from "../../reports/trace-schema.ts";
import { toEventHref } from "../components/figures.tsx";
import { Layout } from "../components/layout.tsx";
import { Payload } from "../components/payload.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

type Event = Trace["events"][number];

/** Payloads up to this many characters are part of the page. Longer ones load when opened. */
export const inlineChars = 1200;

type RowProps = {
  event: Event;
  /** Milliseconds since the previous event, filtered out or not; null for the first. */
  sinceMs: number | null;
  /** URL of the session page. */
  here: string;
  /** Labels of the friction points that this event supports, such as F1. */
  names: string[];
  report: string;
  /** URL of the screenshots; null if the viewer may not see them. */
  files: string | null;
  isInline: boolean;
};

/** An event as a row that opens to show its fields. */
export function EventRow({ event, sinceMs, here, names, report, files, isInline }: RowProps) {
  const { seq, at, tMs, type, source, ...rest } = event;
  const fields: Record<string, unknown> = rest;
  const address = `${here}/${seq}`;
  const { artefact } = fields as { artefact?: Artefact };
  const durationMs = type === "http" && typeof fields.ms === "number" ? fields.ms : sinceMs;
  return (
    <tr id={`e${seq}`} class={`event-${type}${hasFailed(event) ? " failed" : ""}`}>
      <td>
        <a href={toEventHref("", seq)}>{seq}</a>
      </td>
      <td title={formatTime(at)}>{(tMs / 1000).toFixed(2)}</td>
      <td class={durationMs !== null && durationMs >= 1000 ? "slow" : undefined}>
        {durationMs === null ? "" : formatMs(durationMs)}
      </td>
      <td>
        {plain(type)}
        {source !== "agent" && <small> {source}</small>}
      </td>
      <td>
        <details
          {...(isInline
            ? {}
            : { "hx-get": address, "hx-trigger": "toggle once", "hx-target": "find .whole", "hx-swap": "outerHTML" })}
        >
          <summary>{summaryOf(type, fields)}</summary>
          {isInline ? (
            <Payload fields={fields} />
          ) : (
            <p class="whole">
              <a href={address}>View full event</a> ({formatBytes(JSON.stringify(fields).length)})
            </p>
          )}
        </details>
        {artefact && !artefact.missing && files && <a href={`${files}/${artefact.name}`}>{artefact.name}</a>}
        {names.map((name) => (
          <a key={name} class="pill proves" href={`${report}#${name}`}>
            {name}
          </a>
        ))}
      </td>
      <td>{typeof fields.costUsd === "number" ? `$${fields.costUsd.toFixed(4)}` : ""}</td>
    </tr>
  );
}

const formatMs = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

function hasFailed({ type, ...fields }: Event): boolean {
  const { ok, status }: Record<string, unknown> = fields;
  if (type === "http") return typeof status !== "number" || status >= 400;
  return type === "error" || type === "interruption" || (type === "tool_result" && ok === false);
}

/** Page of one event with all its fields. */
export function EventPage({ site, viewer, path, event }: { site: Site; viewer?: Viewer; path: string; event: Event }) {
  const { seq, at, tMs, type, source, ...fields } = event;
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={`${path}/session/${seq}`}
      title={`Event ${seq}`}
      crumbs={[
        { name: "Report", path },
        { name: "Session", path: toEventHref(`${path}/session`, seq) },
        { name: `Event ${seq}` },
      ]}
    >
      <header class="head">
        <h1>
          Event {seq}: {plain(type)}
        </h1>
        <p class="muted">
          {at} · {(tMs / 1000).toFixed(2)} s after start · source: {source}
        </p>
      </header>
      <Payload fields={fields} />
    </Layout>
  );
}

/** The fields of an event as a fragment for its row. */
export function renderPayload({ seq: _, at: __, tMs: ___, type: ____, source: _____, ...fields }: Event): string {
  return renderToString(<Payload fields={fields} />);
}

/** One-line summary of an event. The fields come from the target or the agent and are not trusted. */
export function summaryOf(type: Event["type"], fields: Record<string, unknown>): string {
  const text = (name: string) =>
    typeof fields[name] === "string" || typeof fields[name] === "number" ? String(fields[name]) : "";
  const summaries: Record<Event["type"], () => string> = {
    thought: () => text("text"),
    message: () => text("text"),
    tool_call: () => `${text("tool")}${text("ownName") && ` (${text("ownName")})`} · ${brief(fields.input)}`,
    tool_result: () => `${text("tool")} ${fields.ok ? "succeeded" : "failed"} · ${brief(fields.output)}`,
    http: () => `${text("method")} ${text("url")} → ${text("status") || "no response"}`,
    usage: () => `${text("model")} · ${text("inputTokens")} input tokens, ${text("outputTokens")} output tokens`,
    error: () => `${text("where")}: ${text("message")}`,
    interruption: () => text("question"),
    limit: () => `${fields.near === true ? "approaching " : ""}${text("limit")}: ${text("value")} ${text("unit")}`,
    milestone: () => `${plain(text("name"))} · ${brief(fields.detail)}`,
    end: () => `${plain(text("outcome"))}: ${text("reason")}`,
  };
  return line(summaries[type](), 220).replace(/ ·$/, "") || "empty";
}

/** The first fields of a record as `name value`. */
function brief(record: unknown): string {
  const fields = record !== null && typeof record === "object" ? Object.entries(record) : [];
  return fields
    .map(([name, value]) => `${name} ${(typeof value === "string" ? value : JSON.stringify(value)).slice(0, 200)}`)
    .join(" · ");
}
