import { and, asc, eq, or, type SQL, sql } from "drizzle-orm";
import { type EventSource, type EventType, eventSources, eventTypes, type SessionEvent } from "../agents/agent.ts";
import type { Context } from "../context.ts";
import { sessionEvents } from "../db/tables/runs.ts";
import { factsOf } from "../grading/facts.ts";
import { splitJudging } from "../grading/judge/judge.ts";
import { toSessionEvent } from "./session-events.ts";
import { field, hasFailed, readInBatches, type StoredSession, toolName } from "./trace.ts";

/** Cost in USD; null: there were no calls, or a price is unknown. */
type ModelCost = number | null;

type EventCount<T> = { name: T; events: number };

/** An overview of a whole session. */
export type Timeline = {
  events: number;
  durationMs: number;
  /** The cost of the agent's model calls, as in the report, and the cost of the judge's. */
  costs: Record<"agent" | "judge", ModelCost>;
  types: EventCount<EventType>[];
  sources: EventCount<EventSource>[];
  tools: EventCount<string>[];
  /** The first event of each failure, in order. These are the failures that the report counts. */
  failures: number[];
  /** All events of these failures. */
  failedEvents: ReadonlySet<number>;
  /** `slicesShown` intervals of equal length, oldest first; null: nothing happened in the interval. */
  slices: ({ fromSeq: number; events: number; failures: number } | null)[];
  /** Time of an event, in milliseconds since the start of the session. */
  tMsOf: (seq: number) => number;
};

const slicesShown = 96;
const maxTimelines = 64;

const timelines = new Map<string, Promise<Timeline>>();

/** The timeline of a session. The timelines of the sessions that were requested last are kept in memory. */
export function getTimeline(ctx: Context, session: StoredSession): Promise<Timeline> {
  const { report, notice } = session;
  const areEventsStored = notice === null;
  const timeline = (areEventsStored ? timelines.get(report.id) : undefined) ?? buildTimeline(ctx, session);
  // The last entry of the map is the one that was requested last.
  timelines.delete(report.id);
  if (areEventsStored) timelines.set(report.id, timeline);
  timeline.catch(() => timelines.delete(report.id));
  for (const oldest of timelines.keys()) if (timelines.size > maxTimelines) timelines.delete(oldest);
  return timeline;
}

/**
 * The failures as grading counts them. It reads only what it needs: failed events and milestones in full, and the main fields of calls and successful
 * checks.
 */
async function failuresOf(ctx: Context, stored: StoredSession) {
  const { seq, type, data } = sessionEvents;
  const needsAllFields = or(sql`${hasFailed} = 1`, eq(type, "milestone"));
  const input = sql`json_object('url', ${field("input.url")}, 'method', ${field("input.method")})`;
  const callFields = sql<string>`json_object('id', ${field("id")}, 'tool', ${field("tool")}, 'input', ${input})`;
  const requestFields = sql<string>`json_remove(${data}, '$.body', '$.headers')`;
  const isSuccessfulCheck = and(eq(type, "http"), sql`${field("purpose")} = 'check'`, sql`${hasFailed} = 0`);
  const selectFields = (fields: SQL<string>, where: SQL | undefined) =>
    ctx.db
      .select({ seq, at: sessionEvents.at, tMs: sessionEvents.tMs, type, source: sessionEvents.source, fields })
      .from(sessionEvents)
      .where(where)
      .all()
      .map(({ fields, ...row }) => ({ ...JSON.parse(fields), ...row }) as SessionEvent);
  const session = await readInBatches(ctx, stored, (part) => [
    ...ctx.db.select().from(sessionEvents).where(and(part, needsAllFields)).all().map(toSessionEvent),
    ...selectFields(callFields, and(part, eq(type, "tool_call"))),
    ...selectFields(requestFields, and(part, isSuccessfulCheck)),
  ]);
  return factsOf(splitJudging(session.sort((a, b) => a.seq - b.seq)).session).failures;
}

async function buildTimeline(ctx: Context, session: StoredSession): Promise<Timeline> {
  const { whereEvents } = session;
  const failures = await failuresOf(ctx, session);
  const { seq, tMs, type, source } = sessionEvents;
  const rows = ctx.db.select({ seq, tMs, type, source }).from(sessionEvents).where(whereEvents).orderBy(asc(seq)).all();
  const firstSeqs = failures.map(({ seqs }) => seqs[0] ?? 0).sort((a, b) => a - b);
  const durationMs = rows.reduce((max, row) => Math.max(max, row.tMs), 0);
  const times = new Map(rows.map((row) => [row.seq, row.tMs]));
  return {
    events: rows.length,
    durationMs,
    costs: costsOf(ctx, whereEvents),
    types: countByName(rows, (row) => row.type, eventTypes),
    sources: countByName(rows, (row) => row.source, eventSources),
    tools: countTools(ctx, whereEvents),
    failures: firstSeqs,
    failedEvents: new Set(failures.flatMap(({ seqs }) => seqs)),
    slices: slicesOf(rows, new Set(firstSeqs), durationMs),
    tMsOf: (seq) => times.get(seq) ?? 0,
  };
}

/** The calls of each tool. The tool with the most calls comes first. */
function countTools(ctx: Context, whereEvents: SQL | undefined): EventCount<string>[] {
  const toolNames = ctx.db
    .select({ tool: toolName })
    .from(sessionEvents)
    .where(and(whereEvents, eq(sessionEvents.type, "tool_call")))
    .all()
    .flatMap(({ tool }) => tool ?? []);
  return [...Map.groupBy(toolNames, (name) => name)]
    .map(([name, calls]) => ({ name, events: calls.length }))
    .sort((a, b) => b.events - a.events || (a.name < b.name ? -1 : 1));
}

/** The model calls after the milestone `judging` belong to the judge. */
function costsOf(ctx: Context, whereEvents: SQL | undefined): Timeline["costs"] {
  const { seq, type, source, data } = sessionEvents;
  const calls = ctx.db
    .select({ seq, usd: sql<number | null>`json_extract(${data}, '$.costUsd')` })
    .from(sessionEvents)
    .where(and(whereEvents, eq(type, "usage")))
    .all();
  const judging = ctx.db
    .select({ seq })
    .from(sessionEvents)
    .where(and(whereEvents, eq(source, "runner"), eq(type, "milestone"), sql`${field("name")} = 'judging'`))
    .orderBy(asc(seq))
    .limit(1)
    .get();
  const judgingSeq = judging?.seq ?? Number.POSITIVE_INFINITY;
  return {
    agent: sumOf(calls.filter((call) => call.seq < judgingSeq)),
    judge: sumOf(calls.filter((call) => call.seq >= judgingSeq)),
  };
}

function sumOf(calls: { usd: number | null }[]): ModelCost {
  const isPriced = calls.length > 0 && calls.every(({ usd }) => usd !== null);
  return isPriced ? calls.reduce((sum, { usd }) => sum + (usd ?? 0), 0) : null;
}

/** The number of rows for each name of a closed set, in the order of the set. Names without rows are left out. */
function countByName<R, T extends string>(rows: R[], nameOf: (row: R) => T, names: readonly T[]): EventCount<T>[] {
  const counts = Map.groupBy(rows, nameOf);
  return names.flatMap((name) => {
    const events = counts.get(name)?.length ?? 0;
    return events === 0 ? [] : [{ name, events }];
  });
}

function slicesOf(rows: { seq: number; tMs: number }[], failures: Set<number>, durationMs: number): Timeline["slices"] {
  const slices: Timeline["slices"] = Array.from({ length: slicesShown }, () => null);
  for (const { seq, tMs } of rows) {
    const sliceIndex = Math.min(slicesShown - 1, Math.floor((tMs / Math.max(1, durationMs)) * slicesShown));
    const slice = slices[sliceIndex] ?? { fromSeq: seq, events: 0, failures: 0 };
    slices[sliceIndex] = slice;
    slice.events++;
    if (failures.has(seq)) slice.failures++;
  }
  return slices;
}
