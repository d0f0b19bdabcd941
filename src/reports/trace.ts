import { and, asc, count, desc, eq, gte, inArray, lt, type SQL, sql } from "drizzle-orm";
import { type EventType, eventTypes } from "../agents/agent.ts";
import { reports, sessionEvents } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import { withMissing } from "./artefacts.ts";
import type { Trace, TraceQuery } from "./traceschema.ts";

const dropped =
  "The events of this session are no longer stored: the service drops them after some time. The report stays as it was.";

type Row = typeof sessionEvents.$inferSelect;
type TraceEvent = Trace["events"][number];

/** Throws bad_request that names the type that is none. */
function parseTypes(text: string): EventType[] {
  return text.split(",").map((name) => {
    const type = eventTypes.find((known) => known === name.trim());
    if (!type) throw badRequest(`types: ${JSON.stringify(name)} is no event type; use ${eventTypes.join(", ")}`);
    return type;
  });
}

/** The events behind a report, as a condition, and what a reader must know of them. Throws not_found. */
export function sessionOf({ db }: Pick<Deps, "db">, org: OrgId, slug: string) {
  const report = db
    .select({ id: reports.id, runId: reports.runId, attempt: reports.attempt })
    .from(reports)
    .where(and(eq(reports.orgId, org), eq(reports.slug, slug)))
    .get();
  if (!report) throw notFound(`no report has the slug ${slug}`);
  // The run is the organisation's, as its report is; naming it again would keep counts from being made by the index alone.
  const events = and(eq(sessionEvents.runId, report.runId), eq(sessionEvents.attempt, report.attempt));
  // The first is dropped first.
  const first = db
    .select({ seq: sessionEvents.seq })
    .from(sessionEvents)
    .where(and(events, eq(sessionEvents.seq, 0)))
    .get();
  const { id: reportId, ...session } = report;
  return { reportId, ...session, events, notice: first ? null : dropped };
}

const toEvent = ({ seq, at, tMs, type, source, data }: Row): TraceEvent => ({
  seq,
  at: new Date(at).toISOString(),
  tMs,
  type,
  source,
  ...data,
});

const field = (name: string) => sql`json_extract(${sessionEvents.data}, ${`$.${name}`})`;

/** What went wrong: an error, a tool that failed, a request without a good answer, a person who was needed. */
export const hasFailed: SQL = sql`case ${sessionEvents.type}
  when 'error' then 1 when 'interruption' then 1
  when 'tool_result' then ${field("ok")} = 0 when 'http' then coalesce(${field("status")}, 999) >= 400
  else 0 end`;

export const toolName: SQL<string | null> = sql<string | null>`${field("tool")}`;

/** What a reader must know of the session behind a report: that its events were dropped; null if they are there. Throws not_found. */
export const findNotice = (deps: Pick<Deps, "db">, org: OrgId, slug: string): string | null =>
  sessionOf(deps, org, slug).notice;

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
 * A page of the session behind a report, in order: from `fromSeq` on, or the last events before `beforeSeq`. `search` finds text in any field,
 * whatever its case. Throws not_found, bad_request.
 */
export function getTrace(deps: Pick<Deps, "db">, org: OrgId, slug: string, query: TraceQuery): Trace {
  const { fromSeq = 0, beforeSeq, limit = 100 } = query;
  const { db } = deps;
  const { events, notice, ...session } = sessionOf(deps, org, slug);
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

/** Whether events that a query matches stand before a certain one. Throws not_found, bad_request. */
export function hasEarlier(deps: Pick<Deps, "db">, org: OrgId, slug: string, query: TraceQuery, seq: number): boolean {
  const { events } = sessionOf(deps, org, slug);
  return (
    deps.db
      .select({ seq: sessionEvents.seq })
      .from(sessionEvents)
      .where(and(events, matches(query), lt(sessionEvents.seq, seq)))
      .limit(1)
      .get() !== undefined
  );
}

/** One event, whole. Throws not_found. */
export function getEvent(deps: Pick<Deps, "db">, org: OrgId, slug: string, seq: number): TraceEvent {
  const { events, notice } = sessionOf(deps, org, slug);
  const row = deps.db
    .select()
    .from(sessionEvents)
    .where(and(events, eq(sessionEvents.seq, seq)))
    .get();
  if (!row) throw notFound(notice ?? `the session of ${slug} has no event of that number`);
  return toEvent(row);
}
