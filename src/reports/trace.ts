import { and, asc, count, desc, eq, gte, inArray, lt, type SQL, sql } from "drizzle-orm";
import { type EventType, eventTypes } from "../agents/agent.ts";
import type { Context, OrgId } from "../context.ts";
import { sessionEvents } from "../db/tables/runs.ts";
import { badRequest, notFound } from "../errors.ts";
import { turnOfOrg } from "../http/turns.ts";
import { toIso } from "../schema.ts";
import { withMissingArtifacts } from "./artifacts.ts";
import { getReportRow, type ReportRow } from "./report-row.ts";
import { eventsPerBatch, toSessionEvent } from "./session-events.ts";
import type { Trace, TraceQuery } from "./trace-schema.ts";

const eventsDeletedNotice =
  "The events of this session were deleted because it is older than EVALD_KEEP_SESSIONS_DAYS. The report is unchanged.";

type EventRow = typeof sessionEvents.$inferSelect;
type TraceEvent = Trace["events"][number];

/** Parses a list of event types. Throws bad_request that names an unknown type. */
function parseTypes(text: string): EventType[] {
  return text.split(",").map((name) => {
    const type = eventTypes.find((eventType) => eventType === name.trim());
    if (!type)
      throw badRequest(`Invalid types: ${JSON.stringify(name)} is not an event type. Use ${eventTypes.join(", ")}.`);
    return type;
  });
}

/**
 * The stored session of a report. `whereEvents`: the condition that selects its event rows. `notice`: says that they were deleted; null: they are
 * stored.
 */
export type StoredSession = {
  report: ReportRow;
  runId: string;
  attempt: number;
  whereEvents: SQL | undefined;
  notice: string | null;
};

/** Throws not_found. */
export function getSession({ db }: Context, org: OrgId, slug: string): StoredSession {
  const report = getReportRow(db, org, slug);
  const { runId, attempt } = report;
  // The run belongs to the same organization as its report, so the organization isn't checked again. Another condition would keep SQLite from
  // counting with the index alone.
  const whereEvents = and(eq(sessionEvents.runId, runId), eq(sessionEvents.attempt, attempt));
  // Events are deleted oldest first, so the session is incomplete if the first event is missing.
  const first = db
    .select({ seq: sessionEvents.seq })
    .from(sessionEvents)
    .where(and(whereEvents, eq(sessionEvents.seq, 0)))
    .get();
  return { report, runId, attempt, whereEvents, notice: first ? null : eventsDeletedNotice };
}

const toEvent = (row: EventRow): TraceEvent => ({ ...toSessionEvent(row), at: toIso(row.at) });

/** A field in the data of a stored event, as SQL. */
export const field = (name: string) => sql`json_extract(${sessionEvents.data}, ${`$.${name}`})`;

/** Whether an event is a failure: an error, a failed tool call, an interruption, or a request that failed or got no response. */
export const hasFailed: SQL = sql`case ${sessionEvents.type}
  when 'error' then 1 when 'interruption' then 1
  when 'tool_result' then ${field("ok")} = 0 or coalesce(${field("output.exitCode")}, 0) <> 0
    or coalesce(${field("output.status")}, 0) >= 400
  when 'http' then coalesce(${field("status")}, 999) >= 400
  else 0 end`;

/** The tool of an event; null if it has none. */
export const toolName: SQL<string | null> = sql<string | null>`${field("tool")}`;

/** Throws bad_request. */
function matchConditions({ types, source, tool, failed, search }: TraceQuery): SQL | undefined {
  // The text as it appears in stored JSON, without quotation marks.
  const jsonText = search === undefined ? undefined : JSON.stringify(search).slice(1, -1);
  return and(
    types === undefined ? undefined : inArray(sessionEvents.type, parseTypes(types)),
    source && eq(sessionEvents.source, source),
    tool === undefined
      ? undefined
      : and(inArray(sessionEvents.type, ["tool_call", "tool_result"]), sql`${toolName} = ${tool}`),
    failed === undefined ? undefined : sql`${hasFailed} = 1`,
    jsonText === undefined ? undefined : sql`instr(lower(${sessionEvents.data}), lower(${jsonText})) > 0`,
  );
}

/**
 * Calls `read` for one part of a session after another, so that other work can run in between. `part`: the condition that selects the rows of the
 * part. Returns everything that `read` returned.
 */
export async function readInBatches<T>(
  ctx: Context,
  { whereEvents, report }: StoredSession,
  read: (part: SQL | undefined) => T[],
): Promise<T[]> {
  const { seq } = sessionEvents;
  const last = ctx.db.select({ seq }).from(sessionEvents).where(whereEvents).orderBy(desc(seq)).limit(1).get();
  const rows: T[] = [];
  for (let from = 0; from <= (last?.seq ?? -1); from += eventsPerBatch) {
    for (const row of read(and(whereEvents, gte(seq, from), lt(seq, from + eventsPerBatch)))) rows.push(row);
    await turnOfOrg(ctx, report.orgId);
  }
  return rows;
}

/**
 * The seq of every event that matches a query about the content of events. null if the query isn't about content, because the index is enough then.
 * `failedEvents`: the events that `failed` selects; default: all events that report a failure. Throws bad_request.
 */
async function searchContent(
  ctx: Context,
  session: StoredSession,
  query: TraceQuery,
  failedEvents?: ReadonlySet<number>,
): Promise<number[] | null> {
  const { search, tool, failed } = query;
  if (search === undefined && tool === undefined && failed === undefined) return null;
  const { seq } = sessionEvents;
  const selectedSeqs = failed === undefined ? undefined : failedEvents;
  const matching = matchConditions(selectedSeqs ? { ...query, failed: undefined } : query);
  const rows = await readInBatches(ctx, session, (part) =>
    ctx.db.select({ seq }).from(sessionEvents).where(and(part, matching)).orderBy(asc(seq)).all(),
  );
  const seqs = rows.map((row) => row.seq);
  return selectedSeqs ? seqs.filter((each) => selectedSeqs.has(each)) : seqs;
}

/** A page ends before the event that would exceed this size. Hundreds of large events would block other requests. */
const maxPageBytes = 1024 * 1024;

/** The first events that fit on a page, but at least one. */
function takePage<T extends { bytes: number }>(events: T[]): T[] {
  let bytes = 0;
  return events.filter((event, i) => {
    bytes += event.bytes;
    return i === 0 || bytes <= maxPageBytes;
  });
}

/**
 * A page of a report's session, in order: the events from `fromSeq`, or the last events before `beforeSeq`. `search` finds text in any field and
 * ignores case. A page has fewer than `limit` events if they are large. `failedEvents`: as for `searchContent`. Throws bad_request.
 */
export async function getTrace(
  ctx: Context,
  session: StoredSession,
  query: TraceQuery,
  failedEvents?: ReadonlySet<number>,
): Promise<Trace> {
  const { db } = ctx;
  const { fromSeq = 0, beforeSeq, limit = 100 } = query;
  const { whereEvents, notice } = session;
  const { seq, data } = sessionEvents;
  const isBackward = beforeSeq !== undefined;
  await turnOfOrg(ctx, session.report.orgId);
  const matchingSeqs = await searchContent(ctx, session, query, failedEvents);
  // Here and below, one more event is read than the page shows. It tells where the next page begins.
  const candidateSeqs = isBackward
    ? matchingSeqs?.filter((each) => each < beforeSeq).slice(-limit - 1)
    : matchingSeqs?.filter((each) => each >= fromSeq).slice(0, limit + 1);
  const matching = candidateSeqs ? inArray(seq, candidateSeqs) : matchConditions(query);
  const candidates = db
    .select({ seq, bytes: sql<number>`octet_length(${data})` })
    .from(sessionEvents)
    .where(and(whereEvents, matching, isBackward ? lt(seq, beforeSeq) : gte(seq, fromSeq)))
    .orderBy(isBackward ? desc(seq) : asc(seq))
    .limit(limit + 1)
    .all();
  const fittingSeqs = takePage(candidates.slice(0, limit)).map((each) => each.seq);
  const whereOnPage = and(whereEvents, inArray(seq, fittingSeqs));
  const rows = db.select().from(sessionEvents).where(whereOnPage).orderBy(asc(seq)).all();
  const countAll = () => db.select({ n: count() }).from(sessionEvents).where(and(whereEvents, matching)).get()?.n ?? 0;
  return {
    events: withMissingArtifacts(db, session, rows.map(toEvent)),
    total: matchingSeqs?.length ?? countAll(),
    // The event after the page.
    nextSeq: rows.length === 0 ? null : (beforeSeq ?? candidates[fittingSeqs.length]?.seq ?? null),
    notice,
  };
}

/** Whether there are matching events before a given event. Throws bad_request. */
export async function hasEarlier(
  ctx: Context,
  session: StoredSession,
  query: TraceQuery,
  seq: number,
  failedEvents?: ReadonlySet<number>,
): Promise<boolean> {
  const matchingSeqs = await searchContent(ctx, session, query, failedEvents);
  if (matchingSeqs) return (matchingSeqs[0] ?? seq) < seq;
  const before = and(session.whereEvents, matchConditions(query), lt(sessionEvents.seq, seq));
  return ctx.db.select({ seq: sessionEvents.seq }).from(sessionEvents).where(before).limit(1).get() !== undefined;
}

/** One event in full. Throws not_found. */
export function getEvent({ db }: Context, session: StoredSession, seq: number): TraceEvent {
  const { whereEvents, notice, report } = session;
  const row = db
    .select()
    .from(sessionEvents)
    .where(and(whereEvents, eq(sessionEvents.seq, seq)))
    .get();
  if (!row) throw notFound(notice ?? `The session of ${report.slug} has no event with this seq.`);
  return toEvent(row);
}
