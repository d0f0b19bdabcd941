import type { Report } from "../../reports/schema.ts";
import type { Timeline } from "../../reports/timeline.ts";
import type { Trace, TraceQuery } from "../../reports/traceschema.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { frictionNames, numberWords, plain, titleOf } from "../words.ts";
import { Choice, Filter } from "./choice.tsx";
import { EventRow, inlineChars } from "./event.tsx";
import { toEventHref } from "./figures.tsx";
import { Strip } from "./strip.tsx";

type Props = {
  site: Site;
  viewer?: Viewer;
  /** Of the report, from the base on. */
  path: string;
  report: Report;
  trace: Trace;
  /** Whether events that match stand before those of this page. */
  hasEarlier: boolean;
  timeline: Timeline;
  query: TraceQuery;
};

/** Characters of payload in one page, all together. */
const maxInline = 24_000;

/** The events of a session, a page at a time, under a picture of the whole. */
export function SessionPage({ site, viewer, path, report, trace, hasEarlier, timeline, query }: Props) {
  const here = `${site.base}${path}/session`;
  const names = frictionNames(report);
  const marks = report.frictionPoints.map(({ id, title, events }) => ({
    name: names.get(id) ?? "",
    title,
    seq: events[0] ?? 0,
  }));
  const proves = Map.groupBy(
    report.frictionPoints.flatMap(({ id, events }) => events.map((seq) => ({ seq, name: names.get(id) ?? "" }))),
    ({ seq }) => seq,
  );
  const [first, last] = [trace.events[0]?.seq, trace.events.at(-1)?.seq];
  let inline = 0;
  const rows = trace.events.map((event) => {
    const chars = JSON.stringify(event).length;
    const isInline = chars <= inlineChars && inline + chars <= maxInline;
    if (isInline) inline += chars;
    return { event, isInline };
  });
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={`${path}/session`}
      title={`Session: ${titleOf(report.task)}`}
      crumbs={[
        ...(viewer ? [{ name: "Reports", path: "/reports" }] : []),
        { name: viewer ? report.slug : "Report", path },
        { name: "Session" },
      ]}
    >
      <div class="session" data-session={here}>
        <header class="head">
          <h1>{titleOf(report.task)}</h1>
          {trace.notice && <p class="notice">{trace.notice}</p>}
        </header>
        {timeline.events > 0 && (
          <>
            <Strip {...{ timeline, marks }} shown={first === undefined || last === undefined ? null : [first, last]} />
            <Jumps {...{ timeline, marks }} first={first} last={last} />
            <Narrow {...{ here, timeline, query }} />
          </>
        )}
        <Pager label="Pages" {...{ here, query, trace, hasEarlier, first, last }} />
        <table class="events">
          <thead>
            <tr>
              <th scope="col">Event</th>
              <th scope="col">At, s</th>
              <th scope="col">Took</th>
              <th scope="col">Type</th>
              <th scope="col">What happened</th>
              <th scope="col">Cost</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ event, isInline }) => (
              <EventRow
                key={event.seq}
                {...{ event, here, isInline }}
                report={site.base + path}
                files={viewer ? `${site.base}${path}/artefacts` : null}
                sinceMs={event.seq === 0 ? null : event.tMs - timeline.tMsOf(event.seq - 1)}
                names={(proves.get(event.seq) ?? []).map(({ name }) => name)}
              />
            ))}
          </tbody>
        </table>
        {trace.events.length === 0 && !trace.notice && (
          <p class="empty">No event matches. Show all of them, or ask for less.</p>
        )}
        {trace.events.length > 10 && (
          <Pager label="Pages, again" {...{ here, query, trace, hasEarlier, first, last }} />
        )}
      </div>
    </Layout>
  );
}

type JumpProps = Pick<Parameters<typeof Strip>[0], "timeline" | "marks"> & { first?: number; last?: number };

/** Where a reader wants to be: what failed before and after what is shown, and each friction. */
function Jumps({ timeline: { failures, costUsd }, marks, first = 0, last = 0 }: JumpProps) {
  const before = failures.findLast((seq) => seq < first);
  const after = failures.find((seq) => seq > last);
  return (
    <nav class="jumps" aria-label="Jump to">
      {before !== undefined && <a href={toEventHref("", before)}>↑ Failure before, event {before}</a>}
      {after !== undefined && <a href={toEventHref("", after)}>↓ Next failure, event {after}</a>}
      {marks.length > 0 && (
        <span class="marks">
          Friction{" "}
          {marks.map(({ name, title, seq }) => (
            <a key={name} class="pill" href={toEventHref("", seq)} title={title} aria-label={`${name}: ${title}`}>
              {name}
            </a>
          ))}
        </span>
      )}
      {costUsd !== null && <span class="muted">model calls ${costUsd.toFixed(2)}</span>}
    </nav>
  );
}

function Narrow({ here, timeline, query }: { here: string; timeline: Timeline; query: TraceQuery }) {
  const { types, source, tool, failed, search } = query;
  const kept = { types, source, tool, failed, search };
  const chosen = new Set(types?.split(",").map((type) => type.trim()));
  const isFiltered = Object.values(kept).some((value) => value !== undefined);
  return (
    <>
      <nav class="filter" aria-label="Event types">
        <a href={toHref(here, { ...kept, types: undefined })} aria-current={chosen.size === 0 ? "true" : undefined}>
          all <small>{numberWords(timeline.events)}</small>
        </a>
        {timeline.types.map(({ name, events }) => {
          const next = [...chosen.symmetricDifference(new Set([name]))];
          return (
            <a
              key={name}
              href={toHref(here, { ...kept, types: next.length === 0 ? undefined : next.join(",") })}
              aria-current={chosen.has(name) ? "true" : undefined}
            >
              {plain(name)} <small>{numberWords(events)}</small>
            </a>
          );
        })}
      </nav>
      <Filter action={here} all={isFiltered && "Show all"}>
        {types && <input type="hidden" name="types" value={types} />}
        <input
          type="search"
          name="search"
          value={search}
          maxLength={200}
          aria-label="Text that an event must contain"
          placeholder="Text in an event"
        />
        <Choice name="source" label="Who vouches for it" all="Any source" value={source}>
          {timeline.sources.map(({ name }) => [name, name])}
        </Choice>
        {timeline.tools.length > 0 && (
          <Choice name="tool" label="Tool" all="Any tool" value={tool}>
            {timeline.tools.map(({ name, events }) => [name, `${name} (${numberWords(events)})`])}
          </Choice>
        )}
        <label class="check">
          <input type="checkbox" name="failed" value="1" checked={failed !== undefined} /> only failures
        </label>
      </Filter>
    </>
  );
}

type PagerProps = Pick<Props, "query" | "trace" | "hasEarlier"> & {
  label: string;
  here: string;
  first?: number;
  last?: number;
};

function Pager({ label, here, query, trace, hasEarlier, first, last }: PagerProps) {
  const { fromSeq: _, beforeSeq: __, limit, ...rest } = query;
  const kept = limit === 100 ? rest : { ...rest, limit };
  if (first === undefined || last === undefined) return null;
  return (
    <nav class="pager" aria-label={label}>
      <span>
        Events {numberWords(first)} to {numberWords(last)}
        <small> {numberWords(trace.total)} match</small>
      </span>
      <span class="end">
        {hasEarlier && (
          <>
            <a class="button" href={toHref(here, kept)}>
              First
            </a>
            <a class="button" rel="prev" href={toHref(here, { ...kept, beforeSeq: first })}>
              Earlier
            </a>
          </>
        )}
        {trace.nextSeq !== null && (
          <a class="button" rel="next" href={toHref(here, { ...kept, fromSeq: trace.nextSeq })}>
            Later
          </a>
        )}
      </span>
    </nav>
  );
}

function toHref(here: string, query: TraceQuery): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, String(value));
  return params.size === 0 ? here : `${here}?${params}`;
}
