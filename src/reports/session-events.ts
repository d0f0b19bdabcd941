import { and, asc, eq, gt, type SQL } from "drizzle-orm";
import type { SessionEvent } from "../agents/agent.ts";
import { readMilestone } from "../agents/milestones.ts";
import type { Context } from "../context.ts";
import type { Db } from "../db/open.ts";
import { sessionEvents } from "../db/tables/runs.ts";
import { turnOfOrg } from "../http/turns.ts";

/** The run and attempt of a session. */
export type SessionId = { orgId: string; runId: string; attempt: number };

type EventRow = Pick<typeof sessionEvents.$inferSelect, "seq" | "at" | "tMs" | "type" | "source" | "data">;

/**
 * A stored event in the format of agents and grading. `at` is in epoch milliseconds. A milestone that can't be read becomes an UnreadableMilestone.
 */
export const toSessionEvent = ({ seq, at, tMs, type, source, data }: EventRow) =>
  ({ seq, at, tMs, type, source, ...(type === "milestone" ? readMilestone(data) : data) }) as SessionEvent;

/** Events that are stored together, such as the events of a second judge, in the format of agents and grading. */
export const readEvents = (events: SessionEvent[]): SessionEvent[] =>
  events.map(({ seq, at, tMs, type, source, ...data }) => toSessionEvent({ seq, at, tMs, type, source, data }));

const selectEvents = (db: Db, { orgId, runId, attempt }: SessionId, condition?: SQL) => {
  const ofSession = and(
    eq(sessionEvents.orgId, orgId),
    eq(sessionEvents.runId, runId),
    eq(sessionEvents.attempt, attempt),
  );
  return db.select().from(sessionEvents).where(and(ofSession, condition)).orderBy(asc(sessionEvents.seq));
};

/** The number of events that are read at once. Each has at most 32 KiB. */
export const eventsPerBatch = 50;

/** The stored events of a session in order, in batches. Reading the rows of a whole session at once would take twice the memory. */
function* batchesOf(db: Db, session: SessionId): Generator<SessionEvent[]> {
  for (let after = -1; ; ) {
    const rows = selectEvents(db, session, gt(sessionEvents.seq, after)).limit(eventsPerBatch).all();
    yield rows.map(toSessionEvent);
    const last = rows.at(-1);
    if (!last || rows.length < eventsPerBatch) return;
    after = last.seq;
  }
}

/** The stored events of a session in order, as of one moment. For a large session, this takes half a second: see `readSessionInBatches`. */
export const readSession = (db: Db, session: SessionId): SessionEvent[] =>
  db.transaction(() => [...batchesOf(db, session)].flat());

/** The stored events of a session in order. They are read in batches, so that other work can run in between. */
export async function readSessionInBatches(ctx: Context, session: SessionId): Promise<SessionEvent[]> {
  const events: SessionEvent[] = [];
  for (const batch of batchesOf(ctx.db, session)) {
    if (events.length > 0) await turnOfOrg(ctx, session.orgId);
    events.push(...batch);
  }
  return events;
}

/** Whether the session still has its events. The oldest event is always removed first. */
export const hasEvents = (db: Db, session: SessionId): boolean =>
  selectEvents(db, session, eq(sessionEvents.seq, 0)).limit(1).all().length > 0;
