import { eventTypes } from "../../agents/agent.ts";
import { line } from "../../grading/words.ts";
import type { Report, Trace } from "../../reports/schema.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { plain, titleOf } from "../words.ts";

type Filter = { types?: string; fromSeq?: number; search?: string };
type Event = Trace["events"][number];
type Props = { site: Site; viewer: Viewer; report: Report; trace: Trace; filter: Filter };

/** The events of a session, a page at a time. */
export function SessionPage({ site, viewer, report, trace, filter }: Props) {
  const path = `/reports/${report.slug}/session`;
  const here = site.base + path;
  const first = trace.events[0]?.seq;
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={path}
      title={`Session: ${titleOf(report.task)}`}
      crumbs={[{ name: "Reports" }, { name: report.slug, path: `/reports/${report.slug}` }, { name: "Session" }]}
    >
      <header class="head">
        <h1>Session</h1>
        <p class="muted">
          {trace.total} {trace.total === 1 ? "event" : "events"}
          {filter.types || filter.search ? " match" : " in all"}. What a target said is shown as it was stored: capped,
          and without secrets.
        </p>
        {trace.notice && <p class="notice">{trace.notice}</p>}
      </header>
      <TypeFilter here={here} filter={filter} />
      <form class="search" action={here} method="get">
        {filter.types && <input type="hidden" name="types" value={filter.types} />}
        <input
          type="search"
          name="search"
          value={filter.search}
          maxLength={200}
          aria-label="Text that an event must contain"
          placeholder="Text in an event"
          required
        />
        <button type="submit">Search</button>
        {filter.search && <a href={toHref(here, { types: filter.types })}>Clear</a>}
      </form>
      <table class="events">
        <thead>
          <tr>
            <th scope="col">Event</th>
            <th scope="col">Time</th>
            <th scope="col">Type</th>
            <th scope="col">What happened</th>
          </tr>
        </thead>
        <tbody>
          {trace.events.map((event) => (
            <EventRow key={event.seq} event={event} />
          ))}
        </tbody>
      </table>
      {trace.events.length === 0 && !trace.notice && <p class="muted">No event matches.</p>}
      <nav class="turn" aria-label="Pages">
        {first !== undefined && (filter.fromSeq ?? 0) > 0 ? (
          <a href={toHref(here, { ...filter, fromSeq: 0 })}>From the beginning</a>
        ) : (
          <span />
        )}
        {trace.nextSeq !== null && (
          <a href={toHref(here, { ...filter, fromSeq: trace.nextSeq })}>Next page, from event {trace.nextSeq}</a>
        )}
      </nav>
    </Layout>
  );
}

function TypeFilter({ here, filter }: { here: string; filter: Filter }) {
  const chosen = new Set(filter.types?.split(",").map((type) => type.trim()));
  return (
    <nav class="filter" aria-label="Event types">
      <a href={toHref(here, { search: filter.search })} aria-current={chosen.size === 0 ? "true" : undefined}>
        all
      </a>
      {eventTypes.map((type) => {
        const next = chosen.symmetricDifference(new Set([type]));
        const types = next.size === 0 ? undefined : eventTypes.filter((each) => next.has(each)).join(",");
        return (
          <a
            key={type}
            href={toHref(here, { search: filter.search, types })}
            aria-current={chosen.has(type) ? "true" : undefined}
          >
            {plain(type)}
          </a>
        );
      })}
    </nav>
  );
}

function toHref(here: string, filter: Filter): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value) query.set(name, String(value));
  return query.size === 0 ? here : `${here}?${query}`;
}

function EventRow({ event }: { event: Event }) {
  const { seq, at, tMs, type, source, ...fields } = event;
  return (
    <tr id={`e${seq}`} class={`event-${type}`}>
      <td>
        <a href={`#e${seq}`}>{seq}</a>
      </td>
      <td title={at}>{(tMs / 1000).toFixed(2)} s</td>
      <td>
        {plain(type)}
        {source !== "agent" && <small> {source}</small>}
      </td>
      <td>
        <details>
          <summary>{summaryOf(type, fields)}</summary>
          <pre>{JSON.stringify(fields, null, 2)}</pre>
        </details>
      </td>
    </tr>
  );
}

/** One line that tells an event from its neighbours; the fields are the target's or the agent's and may be anything. */
export function summaryOf(type: Event["type"], fields: Record<string, unknown>): string {
  const text = (name: string) =>
    typeof fields[name] === "string" || typeof fields[name] === "number" ? String(fields[name]) : "";
  const json = (name: string) => JSON.stringify(fields[name] ?? {});
  const words: Record<Event["type"], () => string> = {
    thought: () => text("text"),
    message: () => text("text"),
    tool_call: () => `${text("tool")} ${json("input")}`,
    tool_result: () => `${text("tool")} ${fields.ok ? "worked" : "failed"} ${json("output")}`,
    http: () => `${text("method")} ${text("url")} → ${text("status") || "no answer"} in ${text("ms")} ms`,
    usage: () => `${text("model")}: ${text("inputTokens")} tokens in, ${text("outputTokens")} out`,
    error: () => `${text("where")}: ${text("message")}`,
    interruption: () => text("question"),
    limit: () => `${fields.near === true ? "nearly " : ""}${text("limit")}: ${text("value")} ${text("unit")}`,
    milestone: () => `${plain(text("name"))} ${json("detail")}`,
    end: () => `${plain(text("outcome"))}: ${text("reason")}`,
  };
  return line(words[type](), 240) || "empty";
}
