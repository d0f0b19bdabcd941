import { and, desc, eq, inArray, isNull } from "drizzle-orm";
import type { OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import type { Tx } from "../db/open.ts";
import { prompts } from "../db/tables/prompts.ts";
import { evalRequests, runs } from "../db/tables/runs.ts";
import { slots } from "../db/tables/slots.ts";
import { AppError } from "../errors.ts";
import type { Outbox } from "../notifications/outbox.ts";
import { maxFailures, pausedReason } from "../prompts/warnings.ts";
import { toPromptEvent } from "../reports/announcements.ts";
import { toIso } from "../schema.ts";
import type { Requests } from "./requests.ts";
import type { Slot } from "./slot-schema.ts";
import { batch, type ScheduledPrompt, type SlotStatements, scheduleOf } from "./slot-statements.ts";

/** After a downtime, the latest missed slot still runs if it is at most this old. */
const catchUpMs = 24 * 3600_000;
const missed = {
  notLatest: "the service was not running at that time, and only the latest missed slot runs later",
  tooOld: "the service was not running at that time or within 24 hours after it",
};

export type Became = Pick<Slot, "outcome" | "evalRequestId" | "reason">;

/** Decides the outcome of due slots. */
export function createSlotSettling(
  { getRow, findSlot, insertSlot, setNext }: SlotStatements,
  { requests, emit }: { requests: Pick<Requests, "accept">; emit: Outbox["emit"] },
  readClock: () => number,
) {
  /** Whether earlier scheduled runs are unfinished. */
  function isStillRunning(tx: Tx, row: ScheduledPrompt): boolean {
    const unfinished = tx
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

  /** How many of the latest scheduled evaluations failed, without one that gave a report or was cancelled in between. */
  function failuresInARow(tx: Tx, { orgId, id }: ScheduledPrompt): number {
    const latest = tx
      .select({ outcome: slots.outcome, evalRequestId: slots.evalRequestId })
      .from(slots)
      .where(and(eq(slots.orgId, orgId), eq(slots.promptId, id), inArray(slots.outcome, ["ran", "failed"])))
      .orderBy(desc(slots.scheduledAt))
      .limit(100)
      .all();
    const isFailure = ({ outcome, evalRequestId }: (typeof latest)[number]) => {
      if (outcome === "failed" || evalRequestId === null) return outcome === "failed";
      const own = and(eq(runs.orgId, orgId), eq(runs.evalRequestId, evalRequestId));
      const made = tx.select({ status: runs.status, cause: runs.failureCause }).from(runs).where(own).all();
      return made.length > 0 && made.every(({ status, cause }) => status === "failed" && cause !== "cancelled");
    };
    const end = latest.findIndex((slot) => !isFailure(slot));
    return end < 0 ? latest.length : end;
  }

  /** The outcome of a slot that should run now. */
  function runSlot(tx: Tx, row: ScheduledPrompt): Became {
    if (isStillRunning(tx, row))
      return { outcome: "skipped_overlap", evalRequestId: null, reason: "runs of an earlier slot were still active" };
    // The slot of the pause counts too, so a resumed prompt gets further chances.
    const failures = failuresInARow(tx, row);
    if (failures > 0 && failures % maxFailures === 0) {
      tx.update(prompts).set({ status: "paused" }).where(eq(prompts.id, row.id)).run();
      return { outcome: "failed", evalRequestId: null, reason: pausedReason };
    }
    try {
      const { evalRequestId } = requests.accept(tx, row.orgId as OrgId, row.id, {
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
   * Processes due slots of a prompt, oldest first, and advances its schedule. Returns the time of the next slot and, if
   * it was processed, the outcome of the latest one; `broken` sets that outcome beforehand.
   */
  return function settleSome(tx: Tx, promptId: string, broken: Became | null) {
    const row = getRow.get({ id: promptId });
    const schedule = row ? scheduleOf(row) : null;
    const time = readClock();
    let slot = row?.nextSlotAt ?? null;
    let latest: Became | null = null;
    const passed: number[] = [];
    // Slots before its creation were not missed: the clock was wrong and has been corrected.
    if (row && slot !== null && slot < row.createdAt && row.createdAt <= time)
      slot = schedule && nextTime(schedule, row.createdAt);
    for (let i = 0; i < batch && row && schedule && slot !== null && slot <= time; i++) {
      const following = nextTime(schedule, slot);
      if (!findSlot.get({ id: row.id, at: slot })) {
        const isLatest = following === null || following > time;
        const reason = !isLatest ? missed.notLatest : time - slot > catchUpMs ? missed.tooOld : null;
        if (reason === null) latest = broken ?? runSlot(tx, row);
        else passed.push(slot);
        const settled = latest ?? { outcome: "missed" as const, evalRequestId: null, reason };
        insertSlot({ orgId: row.orgId, promptId: row.id, scheduledAt: slot, createdAt: time, ...settled });
      }
      slot = following;
    }
    if (row && passed.length > 0)
      emit(tx, row.orgId, "schedule.missed", () => ({
        prompt: toPromptEvent(tx, row.id),
        missed: passed.length,
        from: toIso(Math.min(...passed)),
        until: toIso(Math.max(...passed)),
      }));
    const isPaused = latest?.reason === pausedReason;
    setNext.run({ id: promptId, at: schedule && !isPaused ? slot : null });
    return { isDone: isPaused || !schedule || slot === null || slot > time, latest, passed: passed.length };
  };
}
