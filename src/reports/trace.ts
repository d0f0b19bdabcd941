import { and, asc, count, desc, eq, gte, inArray, lt, type SQL, sql } from "drizzle-orm";
import { type EventType, eventTypes } from "../agents/agent.ts";
import { sessionEvents } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import { withMissing } from "./artefacts.ts";
import { getReportRow, type ReportRow } from "./report-row.ts";
import { toSessionEvent } from "./session-events.ts";
import type { Trace, TraceQuery } from "./trace-schema.ts";

const dropped =
  "The events of this session were deleted because it is older than EVALD_KEEP_SESSIONS_DAYS. The report is unchanged.";

type Row = typeof sessionEvents.$inferSelect;
type TraceEvent = Trace["events"][number];

/** Throws bad_request that names an unknown type. */
function parseTypes(text: string): EventType[] {
  return text.split(",").map((name) => {
    const type = eventTypes.find((known) => known === name.trim());
    if (!type)
      throw badRequest(`Invalid types: ${JSON.stringify(name)} is not an event type. Use ${eventTypes.join(", ")}.`);
    return type;
  });
}

/** The stored session of a report. `events` is the condition for its rows, `notice` what a reader needs to know about them. */
export type StoredSession = {
  report: ReportRow;
  runId: string;
  attempt: number;
  events: SQL | undefined;
  notice: string | null;
};

/** Throws not_found. */
export function getSession({ db }: Pick<Deps, "db">, org: OrgId, slug: string): StoredSession {
  const report = getReportRow(db, org, slug);
  const { runId, attempt } = report;
  // The run belongs to the organization, like its report. Another condition would keep SQLite from counting by the
  // index alone.
  const events = and(eq(sessionEvents.runId, runId), eq(sessionEvents.attempt, attempt));
  // The oldest entry is removed first.
  const first = db
    .select({ seq: sessionEvents.seq })
    .from(sessionEvents)
    .where(and(events, eq(sessionEvents.seq, 0)))
    .get();
  return { report, runId, attempt, events, notice: first ? null : dropped };
}

const toEvent = (row: Row): TraceEvent => ({ ...toSessionEvent(row), at: toIso(row.at) });

const field = (name: string) => sql`json_extract(${sessionEvents.data}, ${`$.${name}`})`;

/** Failures: an error, a failed tool, a failed request, or an interruption. */
export const hasFailed: SQL = sql`case ${sessionEvents.type}
  when 'error' then 1 when 'interruption' then 1
  when 'tool_result' then ${field("ok")} = 0 when 'http' then coalesce(${field("status")}, 999) >= 400
  else 0 end`;

export const toolName: SQL<string | null> = sql<string | null>`${field("tool")}`;

/** Throws bad_request. */
const matches = ({ types, source, tool, failed, search }: TraceQuery): SQL | undefined =>
  and(
    types === undefined ? undefined : inArray(sessionEvents.type, parseTypes(types)),
    source && eq(sessionEvents.source, source),
    tool === undefined
      ? undefined
      : and(inArray(sessionEvents.type, ["tool_call", "tool_result"]), sql`${toolName} = ${tool}`),
    failed === undefined ? undefined : sql`${hasFailed} = 1`,
    search === undefined
      ? undefined
      : sql`instr(lower(${sessionEvents.data}), lower(${JSON.stringify(search).slice(1, -1)})) > 0`,
  );

/**
 * A page of a report's session, in order: from `fromSeq`, or the last events before `beforeSeq`. `search` finds text in
 * any field, ignoring case. Throws bad_request.
 */
export function getTrace({ db }: Pick<Deps, "db">, session: StoredSession, query: TraceQuery): Trace {
  const { fromSeq = 0, beforeSeq, limit = 100 } = query;
  const { events, notice } = session;
  const matching = and(events, matches(query));
  const isBack = beforeSeq !== undefined;
  const found = db
    .select()
    .from(sessionEvents)
    .where(and(matching, isBack ? lt(sessionEvents.seq, beforeSeq) : gte(sessionEvents.seq, fromSeq)))
    .orderBy(isBack ? desc(sessionEvents.seq) : asc(sessionEvents.seq))
    .limit(limit + 1)
    .all();
  const rows = found.slice(0, limit);
  if (isBack) rows.reverse();
  return {
    events: withMissing(db, session, rows.map(toEvent)),
    total: db.select({ n: count() }).from(sessionEvents).where(matching).get()?.n ?? 0,
    nextSeq: isBack ? (rows.length === 0 ? null : beforeSeq) : (found[limit]?.seq ?? null),
    notice,
  };
}

/** Whether matching events come before a certain one. Throws bad_request. */
export function hasEarlier({ db }: Pick<Deps, "db">, { events }: StoredSession, query: TraceQuery, seq: number) {
  return (
    db
      .select({ seq: sessionEvents.seq })
      .from(sessionEvents)
      .where(and(events, matches(query), lt(sessionEvents.seq, seq)))
      .limit(1)
      .get() !== undefined
  );
}

/** One event in full. Throws not_found. */
export function getEvent({ db }: Pick<Deps, "db">, session: StoredSession, seq: number): TraceEvent {
  const { events, notice, report } = session;
  const row = db
    .select()
    .from(sessionEvents)
    .where(and(events, eq(sessionEvents.seq, seq)))
    .get();
  if (!row) throw notFound(notice ?? `The session of ${report.slug} has no event with this seq.`);
  return toEvent(row);
}
