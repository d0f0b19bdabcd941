import { and, asc, desc, eq, gt, max } from "drizzle-orm";
import type { SessionEvent } from "../agents/agent.ts";
import type { Context, OrgId } from "../context.ts";
import { changeMark } from "../db/cache.ts";
import { bound, literal, statement } from "../db/prepared.ts";
import { sessionEvents } from "../db/tables/runs.ts";
import { pause } from "../deadline.ts";
import { turnOfOrg } from "../http/turns.ts";
import { toSessionEvent } from "../reports/session-events.ts";
import { getAttempt, getRun } from "./runs.ts";
import type { Run } from "./schema.ts";

/** Events read per poll, at most 32 KiB each. A reader that stops reading holds this many in memory. */
const eventsPerRead = 4;
/** How many events a page shows first. */
const maxShownFirst = 200;
const checkEveryMs = 250;

/** The last event that was read of the session of an attempt. `seq` -1: no event has been read yet. */
type StreamPosition = { attempt: number; seq: number };
/** `isOver`: nothing follows. */
export type Progress = { run: Run; events: SessionEvent[]; position: StreamPosition; isOver: boolean };
/** `hasRunChanged`: the run differs from the last update in which this was true. An ended run counts as changed only in the last update. */
type ProgressUpdate = Progress & { hasRunChanged: boolean };

/** `2.17`: event 17 of attempt 2. */
export const formatPosition = ({ attempt, seq }: StreamPosition): string => `${attempt}.${seq}`;

/** Parses a position such as `1.42`: the attempt and the number of the event. null: the text is invalid. */
export function parsePosition(text: string | null): StreamPosition | null {
  const [, attempt, seq] = /^(\d{1,9})\.(-?\d{1,9})$/.exec(text ?? "") ?? [];
  return attempt === undefined || seq === undefined ? null : { attempt: Number(attempt), seq: Number(seq) };
}

const eventsOfAttempt = and(
  eq(sessionEvents.runId, bound("run")),
  eq(sessionEvents.orgId, bound("org")),
  eq(sessionEvents.attempt, bound("attempt")),
);

const lastAttempt = statement((db) =>
  db
    .select({ attempt: max(sessionEvents.attempt) })
    .from(sessionEvents)
    .where(eq(sessionEvents.runId, bound("run"))),
);

const eventsAfter = statement((db) =>
  db
    .select()
    .from(sessionEvents)
    .where(and(eventsOfAttempt, gt(sessionEvents.seq, bound("seq"))))
    .orderBy(asc(sessionEvents.seq))
    .limit(literal(eventsPerRead)),
);

const newestEvents = statement((db) =>
  db.select().from(sessionEvents).where(eventsOfAttempt).orderBy(desc(sessionEvents.seq)).limit(literal(maxShownFirst)),
);

/** Up to 200 of the newest events of an attempt, oldest first, and the position after them. Default: the last attempt. Throws not_found. */
export function getRunProgress(ctx: Context, org: OrgId, id: string, ofAttempt?: number): Progress {
  const run = getRun(ctx, org, id);
  const attempt =
    ofAttempt === undefined ? findLastAttempt(ctx, run) : getAttempt(ctx, org, run.runId, ofAttempt).attempt;
  const events = newestEvents(ctx.db).all({ run: run.runId, org, attempt }).map(toSessionEvent).reverse();
  return { run, events, position: { attempt, seq: events.at(-1)?.seq ?? -1 }, isOver: run.completedAt !== null };
}

/** The last attempt that has events; 0 if none has. */
const findLastAttempt = (ctx: Context, { runId }: Run): number => lastAttempt(ctx.db).get({ run: runId })?.attempt ?? 0;

/**
 * `after` null: from the first event on. `ofAttempt`: default: whichever attempt is the last one at the time. `isOnce`: ends after the events that
 * are stored now.
 */
type FollowOptions = { after: StreamPosition | null; ofAttempt?: number; isOnce?: boolean };

/** Yields updates of a run until it or the attempt has ended, `signal` aborts or the service stops. Throws not_found. */
export async function* followRun(
  ctx: Context,
  org: OrgId,
  id: string,
  signal: AbortSignal,
  { after, ofAttempt, isOnce = false }: FollowOptions,
): AsyncGenerator<ProgressUpdate, void, undefined> {
  const stopSignal = AbortSignal.any([signal, ctx.stopping]);
  let position = after ?? { attempt: 0, seq: -1 };
  let lastState = "";
  for (;;) {
    await turnOfOrg(ctx, org);
    if (stopSignal.aborted) return;
    const mark = changeMark(ctx.db);
    // The run is read before its events. So if it has ended, all its events are stored.
    const run = getRun(ctx, org, id);
    const followedAttempt = ofAttempt === undefined ? null : getAttempt(ctx, org, run.runId, ofAttempt);
    const hasEnded = run.completedAt !== null || Boolean(followedAttempt?.completedAt);
    const attempt = followedAttempt?.attempt ?? (findLastAttempt(ctx, run) || position.attempt);
    const update = readEventsAfter(ctx, org, run.runId, attempt, position);
    const state = `${run.status} ${run.attempt} ${run.waitingFor?.what}`;
    // After a full read, there may be more stored events.
    const isLast = hasEnded && update.events.length < eventsPerRead;
    const hasRunChanged = isLast || (!hasEnded && state !== lastState);
    if (update.events.length > 0 || hasRunChanged) yield { run, ...update, isOver: isLast, hasRunChanged };
    position = update.position;
    lastState = state;
    if (update.events.length === eventsPerRead) continue;
    if (hasEnded || isOnce) return;
    if (!(await waitForChange(ctx.db, mark, stopSignal))) return;
  }
}

const secondMs = 1000;

/** Yields immediately, and then whenever something may have changed, at most once a second. Ends like `followRun`. */
export async function* watchDatabase(ctx: Context, signal: AbortSignal): AsyncGenerator<void, void, undefined> {
  const stopSignal = AbortSignal.any([signal, ctx.stopping]);
  let mark: string;
  do {
    mark = changeMark(ctx.db);
    yield;
  } while (await waitForChange(ctx.db, mark, stopSignal, secondMs));
}

/** Yields immediately, and then every second, for values that are not in the database. Ends like `followRun`. */
export async function* watchClock(ctx: Context, signal: AbortSignal): AsyncGenerator<void, void, undefined> {
  const stopSignal = AbortSignal.any([signal, ctx.stopping]);
  do yield;
  while (await pause(secondMs, stopSignal));
}

/** The events of an attempt after a position. The position may belong to another attempt. */
function readEventsAfter(
  ctx: Context,
  org: OrgId,
  runId: string,
  attempt: number,
  after: StreamPosition,
): { events: SessionEvent[]; position: StreamPosition } {
  const seq = attempt === after.attempt ? after.seq : -1;
  const events = eventsAfter(ctx.db).all({ run: runId, org, attempt, seq }).map(toSessionEvent);
  return { events, position: { attempt, seq: events.at(-1)?.seq ?? seq } };
}

async function waitForChange(
  db: Context["db"],
  mark: string,
  signal: AbortSignal,
  everyMs = checkEveryMs,
): Promise<boolean> {
  do {
    if (!(await pause(everyMs, signal))) return false;
  } while (changeMark(db) === mark);
  return true;
}
