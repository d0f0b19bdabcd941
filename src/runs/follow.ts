import { and, asc, desc, eq, gt, max, sql } from "drizzle-orm";
import type { SessionEvent } from "../agents/agent.ts";
import { changeMark } from "../db/open.ts";
import { sessionEvents } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import type { Runs } from "./runs.ts";
import type { Run } from "./schema.ts";

/** Events that one look takes. */
const batch = 200;
const lookEveryMs = 250;

/** A place in the session of a run: a later attempt is another session, told from its beginning. */
export type Place = { attempt: number; seq: number };
export type Progress = { run: Run; events: SessionEvent[]; place: Place };

/** `2.17`: event 17 of attempt 2. */
export const placeWords = ({ attempt, seq }: Place): string => `${attempt}.${seq}`;
export function toPlace(words: string | null): Place | null {
  const [, attempt, seq] = /^(\d{1,9})\.(-?\d{1,9})$/.exec(words ?? "") ?? [];
  return attempt === undefined || seq === undefined ? null : { attempt: Number(attempt), seq: Number(seq) };
}

export type Follow = ReturnType<typeof createFollow>;

/** Runs as they happen, read from what is stored: whoever comes back goes on where they were. */
export function createFollow({ db }: Pick<Deps, "db">, { runs, stopping }: { runs: Runs; stopping: AbortSignal }) {
  const lastAttempt = db
    .select({ attempt: max(sessionEvents.attempt) })
    .from(sessionEvents)
    .where(eq(sessionEvents.runId, sql.placeholder("run")))
    .prepare();
  const own = and(
    eq(sessionEvents.runId, sql.placeholder("run")),
    eq(sessionEvents.orgId, sql.placeholder("org")),
    eq(sessionEvents.attempt, sql.placeholder("attempt")),
  );
  const eventsAfter = db
    .select()
    .from(sessionEvents)
    .where(and(own, gt(sessionEvents.seq, sql.placeholder("seq"))))
    .orderBy(asc(sessionEvents.seq))
    .limit(batch)
    .prepare();
  const newest = db.select().from(sessionEvents).where(own).orderBy(desc(sessionEvents.seq)).limit(batch).prepare();

  const toEvent = ({ seq, at, tMs, type, source, data }: typeof sessionEvents.$inferSelect) =>
    ({ ...data, seq, at, tMs, type, source }) as SessionEvent;

  /** The session of the last attempt that has one, and what comes of it after a place. */
  function lookAfter(org: OrgId, runId: string, after: Place): { events: SessionEvent[]; place: Place } {
    const attempt = lastAttempt.get({ run: runId })?.attempt ?? after.attempt;
    const seq = attempt === after.attempt ? after.seq : -1;
    const events = eventsAfter.all({ run: runId, org, attempt, seq }).map(toEvent);
    return { events, place: { attempt, seq: events.at(-1)?.seq ?? seq } };
  }

  return {
    /** The newest events of a run, oldest first, 200 at most, and where they end. Throws not_found. */
    getProgress(org: OrgId, id: string): Progress {
      const run = runs.getRun(org, id);
      const attempt = lastAttempt.get({ run: run.runId })?.attempt ?? 0;
      const events = newest.all({ run: run.runId, org, attempt }).map(toEvent).reverse();
      return { run, events, place: { attempt, seq: events.at(-1)?.seq ?? -1 } };
    },

    /** What is new of a run, as it comes, until it has ended and all is told, `signal` says that nobody listens or the service stops. Throws not_found. */
    async *follow(
      org: OrgId,
      id: string,
      after: Place | null,
      signal: AbortSignal,
    ): AsyncGenerator<Progress, void, undefined> {
      const over = AbortSignal.any([signal, stopping]);
      let place = after ?? { attempt: 0, seq: -1 };
      let told = "";
      for (;;) {
        const mark = changeMark(db);
        // The run before its events: all that belong to an ended run were stored before its end.
        const run = runs.getRun(org, id);
        const found = lookAfter(org, run.runId, place);
        const state = `${run.status} ${run.attempt}`;
        if (found.events.length > 0 || state !== told) yield { run, ...found };
        place = found.place;
        told = state;
        if (found.events.length === batch) continue;
        if (run.completedAt !== null) return;
        if (!(await untilChanged(db, mark, over))) return;
      }
    },

    /** Comes back at once, and then whenever something may have been stored, at most once in `everyMs`; ends as `follow` does. */
    async *watch(signal: AbortSignal, everyMs = 1000): AsyncGenerator<void, void, undefined> {
      const over = AbortSignal.any([signal, stopping]);
      let mark: string;
      do {
        mark = changeMark(db);
        yield;
      } while (await untilChanged(db, mark, over, everyMs));
    },
  };
}

async function untilChanged(
  db: Deps["db"],
  mark: string,
  signal: AbortSignal,
  everyMs = lookEveryMs,
): Promise<boolean> {
  do {
    if (signal.aborted) return false;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, everyMs);
      signal.addEventListener("abort", done, { once: true });
    });
    if (signal.aborted) return false;
  } while (changeMark(db) === mark);
  return true;
}
