import { and, asc, eq } from "drizzle-orm";
import type { SessionEvent } from "../agents/agent.ts";
import type { Db } from "../db/open.ts";
import { sessionEvents } from "../db/tables.ts";

/** The run and attempt of a session. */
export type SessionId = { orgId: string; runId: string; attempt: number };

/** A stored event in the format of agents and grading; `at` is epoch milliseconds. */
export const toSessionEvent = ({ seq, at, tMs, type, source, data }: typeof sessionEvents.$inferSelect) =>
  ({ seq, at, tMs, type, source, ...data }) as SessionEvent;

/** The stored events of a session, in order. */
export function readSession(db: Db, { orgId, runId, attempt }: SessionId): SessionEvent[] {
  const { orgId: org, runId: run, attempt: n, seq } = sessionEvents;
  return db
    .select()
    .from(sessionEvents)
    .where(and(eq(org, orgId), eq(run, runId), eq(n, attempt)))
    .orderBy(asc(seq))
    .all()
    .map(toSessionEvent);
}
