import { announcePause } from "../auth/pause-notice.ts";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import type { Commit } from "../db/commit.ts";
import { isPassing } from "../db/fault.ts";
import type { Outbox } from "../notifications/outbox.ts";
import { createPoll } from "../poll.ts";
import type { Prompts } from "../prompts/prompts.ts";
import { pausedReason } from "../prompts/warnings.ts";
import type { Requests } from "./requests.ts";
import { createSlotLists } from "./slot-lists.ts";
import { type Became, createSlotSettling } from "./slot-settling.ts";
import { prepareSlots, scheduleOf } from "./slot-statements.ts";

/** Maximum time between checks, since the clock may be set and another process may change a schedule. */
const longestSleepMs = 30_000;

type Parts = {
  prompts: Prompts;
  requests: Requests;
  commit: Commit;
  emit: Outbox["emit"];
  onError?: (error: unknown) => void;
};
/** `broken`: outcome of its latest slot after an internal error. */
type Due = { id: string; broken: Became | null };

export type Slots = ReturnType<typeof createSlots>;

/** Runs prompts on schedule. Each due slot gets one row, in the same transaction as its runs. */
export function createSlots(ctx: Context, { prompts: ofPrompts, requests, commit, emit, onError }: Parts) {
  const { db, now, log, signals } = ctx;
  let stopped = false;
  /** The latest time seen on the clock. A previous process may have seen a later one. */
  let seen = Number.POSITIVE_INFINITY;
  /** Milliseconds of the monotonic clock. */
  let lookedAt = 0;

  const statements = prepareSlots(db);
  const { listDue, getRow, firstSlot, listRows, forgetAfter, setNext } = statements;
  const settleSome = createSlotSettling(statements, { requests, emit }, readClock);

  function readClock(): number {
    const time = now();
    seen = Math.max(seen, time);
    return time;
  }

  /**
   * Realigns all schedules to the present after the clock was set back: the next slot of a prompt must not wait behind slots
   * processed in what is now the future. Future slot rows are deleted, except those that ran, which do not run again.
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
          const next = schedule && nextTime(schedule, time);
          if (next !== null && (row.nextSlotAt === null || next < row.nextSlotAt))
            setNext.run({ id: row.id, at: next });
        }
        return rows.at(-1)?.id;
      });
    }
    seen = time;
  }

  /** Processes some slots of a prompt and returns whether none is left. A slot with an internal error fails, so it does not block others. */
  async function settle(due: Due): Promise<boolean> {
    try {
      const { isDone, latest, passed } = await commit((tx) => settleSome(tx, due.id, due.broken));
      if (passed > 0) log.warn({ prompt: due.id, slots: passed }, "missed scheduled slots");
      if (latest) log.info({ prompt: due.id, outcome: latest.outcome, evalRequest: latest.evalRequestId }, "slot");
      if (latest?.reason === pausedReason) {
        const row = getRow.get({ id: due.id });
        if (row) announcePause(ctx, row.orgId as OrgId, ofPrompts.getPrompt(row.orgId as OrgId, due.id));
      }
      if (latest?.outcome === "ran") signals.jobQueued.emit();
      return isDone;
    } catch (error) {
      if (due.broken || isPassing(error)) throw error;
      log.error({ err: error, prompt: due.id }, "scheduled slot failed");
      due.broken = { outcome: "failed", evalRequestId: null, reason: "internal error; see the server log" };
      return false;
    }
  }

  /** Processes all due slots. Returns the time of the next slot, epoch ms; null if nothing is scheduled. */
  async function tick(): Promise<number | null> {
    const time = now();
    // Set back some time after the last look: what has come due since then must not be passed over. By the monotonic clock, in whole seconds.
    const sinceLook = seen === Number.POSITIVE_INFINITY ? 0 : Math.floor((performance.now() - lookedAt) / 1000) * 1000;
    lookedAt = performance.now();
    if (time < seen) await realign(time - sinceLook);
    let due: Due[] = listDue.all({ at: readClock() }).map(({ id }) => ({ id, broken: null }));
    // Round robin in batches, so a prompt with many missed slots does not block the others.
    while (due.length > 0) {
      const left: Due[] = [];
      for (const each of due) if (!stopped && !(await settle(each))) left.push(each);
      due = left;
    }
    return firstSlot.get()?.at ?? null;
  }

  const poll = createPoll({
    async check() {
      const next = await tick();
      return next === null ? longestSleepMs : Math.max(1, Math.min(longestSleepMs, next - now()));
    },
    onError(error) {
      onError?.(error);
      log.error({ err: error }, "could not process due slots");
    },
    retryMs: 2_000,
  });

  return {
    ...createSlotLists({ db }, ofPrompts),
    tick,
    /** Checks the schedules now. Call it after changing one. */
    wake: poll.wake,
    /** Resumes the schedules where the previous process left them. */
    start(): void {
      stopped = false;
      seen = Number.POSITIVE_INFINITY;
      poll.start();
    },
    stop(): Promise<void> {
      stopped = true;
      return poll.stop();
    },
  };
}
