import { and, count, desc, eq, gt, isNotNull, isNull, lte, min, ne, sql } from "drizzle-orm";
import type { Commit } from "../db/commit.ts";
import { isPassing } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { preparedInsert } from "../db/rows.ts";
import { evalRequests, orgs, prompts, runs, slots } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { AppError } from "../errors.ts";
import { nextSlot, type Schedule } from "../jobs/schedule.ts";
import type { Page, Paged } from "../paging.ts";
import type { Prompts } from "../prompts/prompts.ts";
import type { Requests } from "./requests.ts";
import type { Slot } from "./schema.ts";

/** After a downtime the latest slot that is no older than this is made up for. */
const catchUpMs = 24 * 3600_000;
/** Slots of one prompt that are dealt with in one transaction, and prompts that are realigned in one. */
const batch = 200;
/** The clock and the schedules are read again at least this often: the clock may have been set, and another process may have changed a schedule. */
const longestSleepMs = 30_000;

const missed = {
  notLatest: "the service was not at work at that time, and made up for nothing but the latest slot",
  tooOld: "the service was not at work at that time, nor within 24 hours of it",
};

type Parts = { prompts: Prompts; requests: Requests; commit: Commit; onError?: (error: unknown) => void };
type Became = Pick<Slot, "outcome" | "evalRequestId" | "reason">;
/** `broken`: what becomes of its latest slot, once a defect was met. */
type Due = { id: string; broken: Became | null };

export type Slots = ReturnType<typeof createSlots>;

/** Runs prompts by their schedule: each moment that was due gets one row, in the same transaction as the runs that it asks for. */
export function createSlots({ db, now, log }: Deps, { prompts: ofPrompts, requests, commit, onError }: Parts) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let looking: Promise<void> | null = null;
  let serving = false;
  let stopped = false;
  /** The latest that the clock has said. A former process may have seen it later than any time that is known here. */
  let seen = Number.POSITIVE_INFINITY;
  /** Milliseconds of the monotonic clock. */
  let lookedAt = 0;

  const insertSlot = preparedInsert(db, slots);
  const id = sql.placeholder("id");
  const at = sql.placeholder("at");
  const listDue = db.select({ id: prompts.id }).from(prompts).where(lte(prompts.nextSlotAt, at)).prepare();
  const firstSlot = db
    .select({ at: min(prompts.nextSlotAt) })
    .from(prompts)
    .where(isNotNull(prompts.nextSlotAt))
    .prepare();
  const setNext = db
    .update(prompts)
    .set({ nextSlotAt: sql`${at}` })
    .where(eq(prompts.id, id))
    .prepare();
  const forgetAfter = db
    .delete(slots)
    .where(and(eq(slots.promptId, id), gt(slots.at, at), ne(slots.outcome, "ran")))
    .prepare();
  const findSlot = db
    .select({ at: slots.at })
    .from(slots)
    .where(and(eq(slots.promptId, id), eq(slots.at, at)))
    .prepare();
  const withZone = () =>
    db
      .select({
        id: prompts.id,
        orgId: prompts.orgId,
        status: prompts.status,
        frequency: prompts.frequency,
        runsPerEval: prompts.runsPerEval,
        templateDefaults: prompts.templateDefaults,
        createdAt: prompts.createdAt,
        nextSlotAt: prompts.nextSlotAt,
        timeZone: orgs.timeZone,
      })
      .from(prompts)
      .innerJoin(orgs, eq(orgs.id, prompts.orgId));
  const getRow = withZone().where(eq(prompts.id, id)).prepare();
  const listRows = withZone()
    .where(and(gt(prompts.id, id), isNotNull(prompts.frequency)))
    .orderBy(prompts.id)
    .limit(batch)
    .prepare();
  type Row = ReturnType<typeof listRows.all>[number];

  /** The schedule of a prompt that has one and is active; null for all others. */
  const scheduleOf = ({ id, status, frequency, timeZone }: Row): Schedule | null =>
    status === "active" && frequency !== null ? { id, frequency, timeZone } : null;

  function readClock(): number {
    const time = now();
    seen = Math.max(seen, time);
    return time;
  }

  /**
   * Begins anew at the present time, for the clock was set back or may have been: the next slot of a prompt must not wait behind those that were
   * dealt with in what is the future now. What was said of slots to come is forgotten, but for those that ran: they do not run again.
   */
  async function realign(time: number): Promise<void> {
    let last: string | undefined = "";
    while (last !== undefined && !stopped) {
      const after: string = last;
      last = await commit(() => {
        const rows = listRows.all({ id: after });
        for (const row of rows) {
          forgetAfter.run({ id: row.id, at: time });
          const schedule = scheduleOf(row);
          const next = schedule && nextSlot(schedule, time);
          if (next !== null && (row.nextSlotAt === null || next < row.nextSlotAt))
            setNext.run({ id: row.id, at: next });
        }
        return rows.at(-1)?.id;
      });
    }
    seen = time;
  }

  /** Whether runs that the schedule asked for before are still unfinished. */
  function isStillRunning(t: Tx, row: Row): boolean {
    const unfinished = t
      .select({ id: runs.id })
      .from(runs)
      .innerJoin(evalRequests, eq(evalRequests.id, runs.evalRequestId))
      .where(
        and(
          eq(runs.orgId, row.orgId),
          eq(runs.promptId, row.id),
          isNull(runs.completedAt),
          eq(evalRequests.trigger, "schedule"),
        ),
      )
      .limit(1)
      .get();
    return unfinished !== undefined;
  }

  /** What becomes of a slot that is to run now. */
  function runSlot(t: Tx, row: Row): Became {
    if (isStillRunning(t, row))
      return { outcome: "skipped_overlap", evalRequestId: null, reason: "runs of an earlier slot were not finished" };
    try {
      const { evalRequestId } = requests.accept(t, row.orgId as OrgId, row.id, {
        urlMap: {},
        templateArgs: row.templateDefaults ?? {},
        runs: row.runsPerEval ?? 1,
        trigger: "schedule",
      });
      return { outcome: "ran", evalRequestId, reason: null };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return { outcome: "failed", evalRequestId: null, reason: error.detail };
    }
  }

  /**
   * Deals with slots of a prompt that are due, oldest first, and moves on to the first that it left. Answers with the moment of that one, and what
   * became of the latest slot if it was that one's turn; `broken` says so beforehand.
   */
  function settleSome(t: Tx, promptId: string, broken: Became | null) {
    const row = getRow.get({ id: promptId });
    const schedule = row ? scheduleOf(row) : null;
    const time = readClock();
    let slot = row?.nextSlotAt ?? null;
    let latest: Became | null = null;
    let passed = 0;
    // What lies before its creation is no downtime: the clock stood wrong, and was set right.
    if (row && slot !== null && slot < row.createdAt && row.createdAt <= time)
      slot = schedule && nextSlot(schedule, row.createdAt);
    for (let i = 0; i < batch && row && schedule && slot !== null && slot <= time; i++) {
      const following = nextSlot(schedule, slot);
      if (!findSlot.get({ id: row.id, at: slot })) {
        const isLatest = following === null || following > time;
        const reason = !isLatest ? missed.notLatest : time - slot > catchUpMs ? missed.tooOld : null;
        if (reason === null) latest = broken ?? runSlot(t, row);
        else passed++;
        const became = latest ?? { outcome: "missed" as const, evalRequestId: null, reason };
        insertSlot({ orgId: row.orgId, promptId: row.id, at: slot, decidedAt: time, ...became });
      }
      slot = following;
    }
    setNext.run({ id: promptId, at: schedule ? slot : null });
    return { isDone: !schedule || slot === null || slot > time, latest, passed };
  }

  /** Deals with some slots of a prompt, and tells whether none is left. One that meets a defect fails, so that it keeps neither itself nor others waiting. */
  async function settle(due: Due): Promise<boolean> {
    try {
      const { isDone, latest, passed } = await commit((t) => settleSome(t, due.id, due.broken));
      if (passed > 0) log.warn({ prompt: due.id, slots: passed }, "slots were missed");
      if (latest) log.info({ prompt: due.id, outcome: latest.outcome, evalRequest: latest.evalRequestId }, "slot");
      if (latest?.outcome === "ran") requests.onQueued();
      return isDone;
    } catch (error) {
      if (due.broken || isPassing(error)) throw error;
      log.error({ err: error, prompt: due.id }, "a slot failed");
      due.broken = { outcome: "failed", evalRequestId: null, reason: "a defect of the service; its log says more" };
      return false;
    }
  }

  /** Deals with all that is due. Answers with the moment of the next slot, epoch ms; null if nothing is scheduled. */
  async function tick(): Promise<number | null> {
    const time = now();
    // Set back some time after the last look: what has come due since then must not be passed over. By the monotonic clock, in whole seconds.
    const sinceLook = seen === Number.POSITIVE_INFINITY ? 0 : Math.floor((performance.now() - lookedAt) / 1000) * 1000;
    lookedAt = performance.now();
    if (time < seen) await realign(time - sinceLook);
    let due: Due[] = listDue.all({ at: readClock() }).map(({ id }) => ({ id, broken: null }));
    // In turn, a batch each: what one prompt missed in months must not keep the others waiting.
    while (due.length > 0) {
      const left: Due[] = [];
      for (const each of due) if (!stopped && !(await settle(each))) left.push(each);
      due = left;
    }
    return firstSlot.get()?.at ?? null;
  }

  /** Looks at the schedules now: call it when one was changed. */
  function wake(): void {
    if (!serving || looking) return;
    clearTimeout(timer);
    looking = untilNext().then((waitMs) => {
      looking = null;
      if (serving) timer = setTimeout(wake, waitMs);
    });
  }

  async function untilNext(): Promise<number> {
    try {
      const next = await tick();
      return next === null ? longestSleepMs : Math.max(1, Math.min(longestSleepMs, next - now()));
    } catch (error) {
      onError?.(error);
      log.error({ err: error }, "due slots could not be dealt with");
      return 2_000;
    }
  }

  return {
    tick,
    wake,
    /** Takes up the schedules where a former process left them. */
    start(): void {
      serving = true;
      stopped = false;
      seen = Number.POSITIVE_INFINITY;
      wake();
    },
    async stop(): Promise<void> {
      serving = false;
      stopped = true;
      clearTimeout(timer);
      await looking;
    },

    /** What became of the slots of a prompt, newest first. Throws not_found. */
    listSlots(org: OrgId, promptId: string, { limit, offset }: Page): Paged<Slot> {
      const { id } = ofPrompts.getPromptRow(org, promptId);
      const own = and(eq(slots.orgId, org), eq(slots.promptId, id));
      const rows = db.select().from(slots).where(own).orderBy(desc(slots.at)).limit(limit).offset(offset).all();
      return {
        items: rows.map(({ at, outcome, evalRequestId, reason, decidedAt }) => ({
          at: new Date(at).toISOString(),
          outcome,
          evalRequestId,
          reason,
          decidedAt: new Date(decidedAt).toISOString(),
        })),
        total: db.select({ n: count() }).from(slots).where(own).get()?.n ?? 0,
      };
    },
  };
}
