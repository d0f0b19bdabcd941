import { and, eq, isNull } from "drizzle-orm";
import type { Tx } from "../db/open.ts";
import { evalRequests, runs } from "../db/tables.ts";
import type { OrgId } from "../deps.ts";
import { AppError } from "../errors.ts";
import { nextSlot } from "../jobs/schedule.ts";
import type { Requests } from "./requests.ts";
import type { Slot } from "./schema.ts";
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
  requests: Pick<Requests, "accept">,
  readClock: () => number,
) {
  /** Whether earlier scheduled runs are unfinished. */
  function isStillRunning(t: Tx, row: ScheduledPrompt): boolean {
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

  /** The outcome of a slot that should run now. */
  function runSlot(t: Tx, row: ScheduledPrompt): Became {
    if (isStillRunning(t, row))
      return { outcome: "skipped_overlap", evalRequestId: null, reason: "runs of an earlier slot were still active" };
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
   * Processes due slots of a prompt, oldest first, and advances its schedule. Returns the time of the next slot and, if
   * it was processed, the outcome of the latest one; `broken` sets that outcome beforehand.
   */
  return function settleSome(t: Tx, promptId: string, broken: Became | null) {
    const row = getRow.get({ id: promptId });
    const schedule = row ? scheduleOf(row) : null;
    const time = readClock();
    let slot = row?.nextSlotAt ?? null;
    let latest: Became | null = null;
    let passed = 0;
    // Slots before its creation were not missed: the clock was wrong and has been corrected.
    if (row && slot !== null && slot < row.createdAt && row.createdAt <= time)
      slot = schedule && nextSlot(schedule, row.createdAt);
    for (let i = 0; i < batch && row && schedule && slot !== null && slot <= time; i++) {
      const following = nextSlot(schedule, slot);
      if (!findSlot.get({ id: row.id, at: slot })) {
        const isLatest = following === null || following > time;
        const reason = !isLatest ? missed.notLatest : time - slot > catchUpMs ? missed.tooOld : null;
        if (reason === null) latest = broken ?? runSlot(t, row);
        else passed++;
        const settled = latest ?? { outcome: "missed" as const, evalRequestId: null, reason };
        insertSlot({ orgId: row.orgId, promptId: row.id, scheduledAt: slot, createdAt: time, ...settled });
      }
      slot = following;
    }
    setNext.run({ id: promptId, at: schedule ? slot : null });
    return { isDone: !schedule || slot === null || slot > time, latest, passed };
  };
}
