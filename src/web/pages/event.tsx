import { renderToString } from "preact-render-to-string";
import type { Artefact } from "../../agents/agent.ts";
import { line } from "../../grading/words.ts";
import type { Trace } from "../../reports/traceschema.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { plain, sizeWords } from "../words.ts";
import { toEventHref } from "./figures.tsx";
import { Payload } from "./payload.tsx";

type Event = Trace["events"][number];

/** Characters of payload that stand in the page beside its event; what is longer is loaded when it is opened. */
export const inlineChars = 1200;

type RowProps = {
  event: Event;
  /** Milliseconds since the event before, whatever the filter shows; null for the first. */
  sinceMs: number | null;
  /** The page with the events. */
  here: string;
  /** Friction that this event proves, as F1. */
  names: string[];
  report: string;
  /** Where its picture is; null where it is not to be seen. */
  files: string | null;
  isInline: boolean;
};

/** An event as one line, its fields behind it. */
export function EventRow({ event, sinceMs, here, names, report, files, isInline }: RowProps) {
  const { seq, at, tMs, type, source, ...rest } = event;
  const fields: Record<string, unknown> = rest;
  const address = `${here}/${seq}`;
  const { artefact } = fields as { artefact?: Artefact };
  const tookMs = type === "http" && typeof fields.ms === "number" ? fields.ms : sinceMs;
  return (
    <tr id={`e${seq}`} class={`event-${type}${hasFailed(event) ? " failed" : ""}`}>
      <td>
        <a href={toEventHref("", seq)}>{seq}</a>
      </td>
      <td title={at}>{(tMs / 1000).toFixed(2)}</td>
      <td class={tookMs !== null && tookMs >= 1000 ? "slow" : undefined}>{tookMs === null ? "" : tookWords(tookMs)}</td>
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
              <a href={address}>The whole event</a>, {sizeWords(JSON.stringify(fields).length)}
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

const tookWords = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

function hasFailed({ type, ...fields }: Event): boolean {
  const { ok, status }: Record<string, unknown> = fields;
  if (type === "http") return typeof status !== "number" || status >= 400;
  return type === "error" || type === "interruption" || (type === "tool_result" && ok === false);
}

/** One event with all its fields, as a page of its own. */
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
          {at}, {(tMs / 1000).toFixed(2)} s after the start, by {source}
        </p>
      </header>
      <Payload fields={fields} />
    </Layout>
  );
}

/** The fields of one event, to be put into the row of it. */
export function toWhole({ seq: _, at: __, tMs: ___, type: ____, source: _____, ...fields }: Event): string {
  return renderToString(<Payload fields={fields} />);
}

/** One line that tells an event from its neighbours; the fields are the target's or the agent's and may be anything. */
export function summaryOf(type: Event["type"], fields: Record<string, unknown>): string {
  const text = (name: string) =>
    typeof fields[name] === "string" || typeof fields[name] === "number" ? String(fields[name]) : "";
  const words: Record<Event["type"], () => string> = {
    thought: () => text("text"),
    message: () => text("text"),
    tool_call: () => `${text("tool")} · ${brief(fields.input)}`,
    tool_result: () => `${text("tool")} ${fields.ok ? "worked" : "failed"} · ${brief(fields.output)}`,
    http: () => `${text("method")} ${text("url")} → ${text("status") || "no answer"}`,
    usage: () => `${text("model")} · ${text("inputTokens")} tokens in, ${text("outputTokens")} out`,
    error: () => `${text("where")}: ${text("message")}`,
    interruption: () => text("question"),
    limit: () => `${fields.near === true ? "nearly " : ""}${text("limit")}: ${text("value")} ${text("unit")}`,
    milestone: () => `${plain(text("name"))} · ${brief(fields.detail)}`,
    end: () => `${plain(text("outcome"))}: ${text("reason")}`,
  };
  return line(words[type](), 220).replace(/ ·$/, "") || "empty";
}

/** The first fields of a record as `name value`. */
function brief(record: unknown): string {
  const fields = record !== null && typeof record === "object" ? Object.entries(record) : [];
  return fields
    .map(([name, value]) => `${name} ${(typeof value === "string" ? value : JSON.stringify(value)).slice(0, 200)}`)
    .join(" · ");
}
