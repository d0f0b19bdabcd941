import { count, dollars } from "../../grading/text.ts";
import { formatNumber, frictionLabels, humanize, titleOf } from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import type { Timeline } from "../../reports/timeline.ts";
import type { Trace, TraceQuery } from "../../reports/trace-schema.ts";
import { turnsOf } from "../../reports/turns.ts";
import { docsVariantOf } from "../../runs/lists.ts";
import type { Attempt } from "../../runs/schema.ts";
import { maxInlineEventChars } from "../components/event-line.tsx";
import { toEventHref } from "../components/figures.tsx";
import { Choice, Filter } from "../components/filter.tsx";
import { foreignText, Layout } from "../components/layout.tsx";
import { Pager, toHref } from "../components/pager.tsx";
import { DocsMark } from "../components/run-table.tsx";
import { SessionStrip } from "../components/session-strip.tsx";
import { Turns } from "../components/turns.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { OutputLink } from "./run.tsx";

type Props = {
  site: Site;
  viewer?: Viewer;
  /** Path of the report, without the base path. */
  path: string;
  report: Report;
  trace: Trace;
  /** Whether there are matching events before this page. */
  hasEarlier: boolean;
  timeline: Timeline;
  query: TraceQuery;
  /** The attempts of the run, and the attempt that the session belongs to. undefined on a shared page. */
  attempts?: { runId: string; shown: number; all: Attempt[] };
  /** Set on a shared page. */
  publisher?: string;
};

/** Events per page if the URL has no `limit`. Links leave out this limit. */
const defaultLimit = 100;
/** From this number of events on, a page also has links to other pages at its end. */
const minEventsForSecondPager = 10;
/** Maximum number of characters in all inline payloads of a page. */
const maxInlineChars = 24_000;

/** The events of a session, paginated, below an overview of the whole session. */
export function SessionPage(props: Props) {
  const { site, viewer, publisher, path, report, trace, hasEarlier, timeline, query, attempts } = props;
  const here = `${site.base}${path}/session`;
  const labels = frictionLabels(report);
  const marks = report.frictionPoints.map(({ id, title, events }) => ({
    name: labels.get(id) ?? "",
    title,
    seq: events[0] ?? 0,
  }));
  const frictionBySeq = Map.groupBy(
    report.frictionPoints.flatMap(({ id, events }) => events.map((seq) => ({ seq, name: labels.get(id) ?? "" }))),
    ({ seq }) => seq,
  );
  const [first, last] = [trace.events[0]?.seq, trace.events.at(-1)?.seq];
  const inlineSeqs = inlineSeqsOf(trace.events);
  return (
    <Layout
      {...{ site, viewer, publisher }}
      path={`${path}/session`}
      title={`Session: ${titleOf(report.task)}`}
      crumbs={[
        ...(viewer ? [{ name: "Reports", path: "/reports" }] : []),
        { name: viewer ? titleOf(report.task) : "Report", path },
        { name: "Session" },
      ]}
    >
      <div class="session" data-session={here}>
        <header class="head">
          <h1 {...foreignText}>{titleOf(report.task)}</h1>
          <DocsMark variant={docsVariantOf(report.run)} />
          {trace.notice && <p class="notice">{trace.notice}</p>}
          {attempts && <AttemptLinks base={site.base} {...attempts} />}
        </header>
        {timeline.events > 0 && (
          <>
            <SessionStrip
              {...{ timeline, marks }}
              firstAndLast={first === undefined || last === undefined ? null : [first, last]}
            />
            <JumpLinks {...{ timeline, marks }} first={first} last={last} />
            <EventFilter {...{ here, timeline, query }} />
          </>
        )}
        <EventPager {...props} label="Pages" {...{ here, first, last }} />
        <Turns
          turns={turnsOf(trace.events)}
          here={here}
          reportUrl={site.base + path}
          filesUrl={viewer ? `${site.base}${path}/artifacts` : null}
          isInline={({ seq }) => inlineSeqs.has(seq)}
          isFailed={({ seq }) => timeline.failedEvents.has(seq)}
          labelsOf={({ seq }) => [...new Set((frictionBySeq.get(seq) ?? []).map(({ name }) => name))]}
          tMsBefore={({ seq, tMs }) => (seq === 0 ? tMs : timeline.tMsOf(seq - 1))}
        />
        {trace.events.length === 0 && !trace.notice && <p class="empty">No matching events. Clear filters.</p>}
        {trace.events.length > minEventsForSecondPager && (hasEarlier || trace.nextSeq !== null) && (
          <EventPager {...props} label="Pages (bottom)" {...{ here, first, last }} />
        )}
      </div>
    </Layout>
  );
}

/** The events whose payloads are inline: short ones, until the page has no more room. */
function inlineSeqsOf(events: Trace["events"]): Set<number> {
  let total = 0;
  const seqs = new Set<number>();
  for (const event of events) {
    const chars = JSON.stringify(event).length;
    if (chars > maxInlineEventChars || total + chars > maxInlineChars) continue;
    total += chars;
    seqs.add(event.seq);
  }
  return seqs;
}

/** Links to the session of each attempt, if there are several, and to the output of the coding agent. */
function AttemptLinks({ base, runId, shown, all }: NonNullable<Props["attempts"]> & { base: string }) {
  const path = `${base}/runs/${runId}`;
  const hasOutput = all.find(({ attempt }) => attempt === shown)?.hasOutput ?? false;
  if (all.length < 2 && !hasOutput) return null;
  return (
    <nav class="jumps" aria-label="Attempts">
      {all.length > 1 && (
        <span>
          Attempts{" "}
          {all.map(({ attempt }) =>
            attempt === shown ? (
              <strong key={attempt} aria-current="true">
                {attempt}{" "}
              </strong>
            ) : (
              <span key={attempt}>
                <a href={`${path}?attempt=${attempt}`}>{attempt}</a>{" "}
              </span>
            ),
          )}
        </span>
      )}
      {hasOutput && <OutputLink path={path} attempt={shown} />}
    </nav>
  );
}

type JumpProps = Omit<Parameters<typeof SessionStrip>[0], "firstAndLast"> & { first?: number; last?: number };

/** Links to the previous and next failure and to each friction point. */
function JumpLinks({ timeline: { failures, costs }, marks, first = 0, last = 0 }: JumpProps) {
  const before = failures.findLast((seq) => seq < first);
  const after = failures.find((seq) => seq > last);
  return (
    <nav class="jumps" aria-label="Jump to">
      {before !== undefined && (
        <a data-jump="previous" href={toEventHref("", before)}>
          ↑ Previous failure ({before})
        </a>
      )}
      {after !== undefined && (
        <a data-jump="next" href={toEventHref("", after)}>
          ↓ Next failure ({after})
        </a>
      )}
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
      {costs.agent !== null && (
        <span class="muted" data-cost="agent">
          Cost of the agent: {dollars(costs.agent)}
        </span>
      )}
      {costs.judge !== null && (
        <span class="muted" data-cost="judge">
          Cost of the judge: {dollars(costs.judge)}
        </span>
      )}
    </nav>
  );
}

function EventFilter({ here, timeline, query }: { here: string; timeline: Timeline; query: TraceQuery }) {
  const { types, source, tool, failed, search } = query;
  const filterQuery = { types, source, tool, failed, search };
  const selectedTypes = new Set(types?.split(",").map((type) => type.trim()));
  const isFiltered = Object.values(filterQuery).some((value) => value !== undefined);
  return (
    <>
      <nav class="filter" aria-label="Event types">
        <a
          href={toHref(here, { ...filterQuery, types: undefined })}
          aria-current={selectedTypes.size === 0 ? "true" : undefined}
        >
          All <small>{formatNumber(timeline.events)}</small>
        </a>
        {timeline.types.map(({ name, events }) => {
          const next = [...selectedTypes.symmetricDifference(new Set([name]))];
          return (
            <a
              key={name}
              href={toHref(here, { ...filterQuery, types: next.length === 0 ? undefined : next.join(",") })}
              aria-current={selectedTypes.has(name) ? "true" : undefined}
            >
              {humanize(name)} <small>{formatNumber(events)}</small>
            </a>
          );
        })}
      </nav>
      <Filter action={here} clearLabel={isFiltered && "Clear filters"}>
        {types && <input type="hidden" name="types" value={types} />}
        <input
          type="search"
          name="search"
          value={search}
          maxLength={200}
          aria-label="Search events"
          placeholder="Search events"
        />
        <Choice name="source" label="Source" allLabel="All sources" value={source}>
          {timeline.sources.map(({ name }) => [name, name])}
        </Choice>
        {timeline.tools.length > 0 && (
          <Choice name="tool" label="Tool" allLabel="All tools" value={tool}>
            {timeline.tools.map(({ name, events }) => [name, `${name} (${formatNumber(events)})`])}
          </Choice>
        )}
        <label class="check">
          <input type="checkbox" name="failed" value="1" checked={failed !== undefined} /> Failures only{" "}
          <small data-failed-events={timeline.failedEvents.size}>{count(timeline.failedEvents.size, "event")}</small>
        </label>
      </Filter>
    </>
  );
}

type PagerProps = Props & { label: string; here: string; first?: number; last?: number };

function EventPager({ label, here, query, trace, hasEarlier, first, last }: PagerProps) {
  const { fromSeq: _fromSeq, beforeSeq: _beforeSeq, limit, ...filter } = query;
  const pageQuery = limit === defaultLimit ? filter : { ...filter, limit };
  if (first === undefined || last === undefined) return null;
  return (
    <Pager
      label={label}
      links={[
        hasEarlier && { href: toHref(here, pageQuery), text: "First" },
        hasEarlier && { rel: "prev", href: toHref(here, { ...pageQuery, beforeSeq: first }), text: "Earlier" },
        trace.nextSeq !== null && {
          rel: "next",
          href: toHref(here, { ...pageQuery, fromSeq: trace.nextSeq }),
          text: "Later",
        },
      ]}
    >
      Events {formatNumber(first)}–{formatNumber(last)}
      <small> {formatNumber(trace.total)} match</small>
    </Pager>
  );
}
