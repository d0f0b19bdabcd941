import { and, asc, count, eq, gte, inArray, sql } from "drizzle-orm";
import { type EventType, eventTypes } from "../agents/agent.ts";
import { reports, sessionEvents } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Trace } from "./schema.ts";

const dropped =
  "The events of this session are no longer stored: the service drops them after some time. The report stays as it was.";

export type TraceFilter = { types?: string; fromSeq?: number; limit?: number; search?: string };

/** Throws bad_request that names the type that is none. */
function parseTypes(text: string): EventType[] {
  return text.split(",").map((name) => {
    const type = eventTypes.find((known) => known === name.trim());
    if (!type) throw badRequest(`types: ${JSON.stringify(name)} is no event type; use ${eventTypes.join(", ")}`);
    return type;
  });
}

function sessionOf({ db }: Pick<Deps, "db">, org: OrgId, slug: string) {
  const report = db
    .select({ runId: reports.runId, attempt: reports.attempt })
    .from(reports)
    .where(and(eq(reports.orgId, org), eq(reports.slug, slug)))
    .get();
  if (!report) throw notFound(`no report has the slug ${slug}`);
  const events = and(
    eq(sessionEvents.orgId, org),
    eq(sessionEvents.runId, report.runId),
    eq(sessionEvents.attempt, report.attempt),
  );
  // The first is dropped first.
  const first = db
    .select({ seq: sessionEvents.seq })
    .from(sessionEvents)
    .where(and(events, eq(sessionEvents.seq, 0)))
    .get();
  return { events, notice: first ? null : dropped };
}

/** What a reader must know of the session behind a report: that its events were dropped; null if they are there. Throws not_found. */
export const findNotice = (deps: Pick<Deps, "db">, org: OrgId, slug: string): string | null =>
  sessionOf(deps, org, slug).notice;

/** A page of the session behind a report, in order. `search` finds text in any field, whatever its case. Throws not_found, bad_request. */
export function getTrace(deps: Pick<Deps, "db">, org: OrgId, slug: string, filter: TraceFilter): Trace {
  const { types, fromSeq = 0, limit = 100, search } = filter;
  const { db } = deps;
  const { events, notice } = sessionOf(deps, org, slug);
  const matching = and(
    events,
    types === undefined ? undefined : inArray(sessionEvents.type, parseTypes(types)),
    search === undefined
      ? undefined
      : sql`instr(lower(${sessionEvents.data}), lower(${JSON.stringify(search).slice(1, -1)})) > 0`,
  );
  const rows = db
    .select()
    .from(sessionEvents)
    .where(and(matching, gte(sessionEvents.seq, fromSeq)))
    .orderBy(asc(sessionEvents.seq))
    .limit(limit + 1)
    .all();
  return {
    events: rows.slice(0, limit).map(({ seq, at, tMs, type, source, data }) => ({
      seq,
      at: new Date(at).toISOString(),
      tMs,
      type,
      source,
      ...data,
    })),
    total: db.select({ n: count() }).from(sessionEvents).where(matching).get()?.n ?? 0,
    nextSeq: rows[limit]?.seq ?? null,
    notice,
  };
}
