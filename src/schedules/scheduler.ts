import { mailPromptPaused } from "../auth/mail.ts";
import { listOwnerEmails } from "../auth/members.ts";
import { getOrg } from "../auth/orgs.ts";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import { isTemporary } from "../db/fault.ts";
import { createPoll } from "../poll.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { pausedReason } from "../prompts/warnings.ts";
import { titleOf } from "../reports/labels.ts";
import {
  type DueResult,
  isWaitOver,
  type Outcome,
  settleDueEvaluations,
  settleWaitingEvaluation,
} from "./due-evaluations.ts";
import {
  deleteLaterEvaluations,
  duePrompts,
  firstDueTime,
  scheduledPromptById,
  scheduledPromptsAfter,
  scheduleOf,
  setNextEvaluation,
  waitingPrompts,
} from "./scheduled-prompts.ts";

/** Maximum time between checks. The clock may be set, and another process may change a schedule. */
const longestSleepMs = 30_000;
const maxTitleLength = 80;

/** A prompt with due evaluations. `failure`: the outcome of the latest one after an internal error. */
type DuePrompt = { id: string; failure: Outcome | null };

type Scheduler = {
  ctx: Context;
  isStopped: boolean;
  /** The latest time that the clock showed. Before the first check it is infinite, because a previous process may have read a later time. */
  latestTime: number;
  /** When the last check began, in milliseconds of the monotonic clock. */
  checkedAt: number;
};

/** Runs prompts on schedule. Each due evaluation gets one row, in the same transaction as its runs. */
export function createScheduler(ctx: Context) {
  const scheduler: Scheduler = { ctx, isStopped: false, latestTime: Number.POSITIVE_INFINITY, checkedAt: 0 };
  const poll = createPoll({
    async check() {
      const next = await processDue(scheduler);
      return next === null ? longestSleepMs : Math.max(1, Math.min(longestSleepMs, next - ctx.now()));
    },
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not process scheduled evaluations");
    },
    retryMs: 2_000,
  });
  return {
    /** Processes everything that is due now. */
    tick: () => processDue(scheduler),
    /** Checks the schedules now. Call it after changing one. */
    wake: poll.wake,
    /** Resumes the schedules where the previous process left them. */
    start(): void {
      scheduler.isStopped = false;
      scheduler.latestTime = Number.POSITIVE_INFINITY;
      poll.start();
    },
    stop(): Promise<void> {
      scheduler.isStopped = true;
      return poll.stop();
    },
  };
}

/** Processes everything that is due. Returns the time of the next evaluation, epoch ms; null if nothing is scheduled. */
async function processDue(scheduler: Scheduler): Promise<number | null> {
  const { ctx } = scheduler;
  await realignToClock(scheduler);
  // Evaluations that wait come first, because they were due earlier.
  for (const { id } of waitingPrompts(ctx.db).all())
    if (!scheduler.isStopped && isWaitOver(ctx, id)) await settleWaiting(scheduler, id);
  let due: DuePrompt[] = duePrompts(ctx.db)
    .all({ at: readClock(scheduler) })
    .map(({ id }) => ({ id, failure: null }));
  // Prompts take turns in batches, so that a prompt with many missed evaluations does not block the others.
  while (due.length > 0) {
    const unfinished: DuePrompt[] = [];
    for (const prompt of due) {
      if (scheduler.isStopped) break;
      const isDone = await settle(scheduler, prompt);
      if (!isDone) unfinished.push(prompt);
    }
    due = scheduler.isStopped ? [] : unfinished;
  }
  return firstDueTime(ctx.db).get()?.at ?? null;
}

function readClock(scheduler: Scheduler): number {
  const time = scheduler.ctx.now();
  scheduler.latestTime = Math.max(scheduler.latestTime, time);
  return time;
}

/**
 * Processes some due evaluations of a prompt. Returns whether none is left. An evaluation with an internal error fails, so that it does not block
 * others.
 */
async function settle(scheduler: Scheduler, due: DuePrompt): Promise<boolean> {
  const { ctx } = scheduler;
  try {
    const result = await ctx.commit((tx) => settleDueEvaluations(ctx, tx, due.id, readClock(scheduler), due.failure));
    announceResult(ctx, due.id, result);
    return result.isDone;
  } catch (error) {
    if (due.failure || isTemporary(error)) throw error;
    ctx.log.error({ err: error, prompt: due.id }, "scheduled evaluation failed");
    due.failure = { outcome: "failed", evalRequestId: null, reason: "internal error; see the server log" };
    return false;
  }
}

/** Starts the waiting evaluation of a prompt if the previous evaluation has ended. */
async function settleWaiting({ ctx }: Scheduler, promptId: string): Promise<void> {
  const latest = await ctx.commit((tx) => settleWaitingEvaluation(ctx, tx, promptId, ctx.now()));
  announceResult(ctx, promptId, { latest, missed: 0 });
}

/**
 * Realigns all schedules at the first check, and again if the clock was set back. After that, they continue from the time of the last check as the
 * new clock would have shown it, so that evaluations that have come due since aren't skipped. The monotonic clock tells how long ago the last check
 * was, in whole seconds.
 */
async function realignToClock(scheduler: Scheduler): Promise<void> {
  const { ctx, latestTime, checkedAt } = scheduler;
  const isFirst = latestTime === Number.POSITIVE_INFINITY;
  const sinceCheckMs = isFirst ? 0 : Math.floor((performance.now() - checkedAt) / 1000) * 1000;
  scheduler.checkedAt = performance.now();
  const now = ctx.now();
  if (now >= latestTime) return;
  const time = now - sinceCheckMs;
  let lastId: string | undefined = "";
  while (lastId !== undefined && !scheduler.isStopped) lastId = await realignBatch(ctx, lastId, time);
  scheduler.latestTime = time;
}

/**
 * Realigns the schedules after a prompt ID. Returns the last ID; undefined: none is left. The next evaluation of a prompt must not wait behind
 * evaluations that were processed at a time that is now in the future. These are deleted, except those that ran, which do not run again.
 */
const realignBatch = (ctx: Context, afterId: string, time: number): Promise<string | undefined> =>
  ctx.commit(() => {
    const prompts = scheduledPromptsAfter(ctx.db).all({ id: afterId });
    for (const prompt of prompts) {
      deleteLaterEvaluations(ctx.db).run({ id: prompt.id, at: time });
      const schedule = scheduleOf(prompt);
      const next = schedule && nextTime(schedule, time);
      if (next !== null && (prompt.nextEvaluationAt === null || next < prompt.nextEvaluationAt))
        setNextEvaluation(ctx.db).run({ id: prompt.id, at: next });
    }
    return prompts.at(-1)?.id;
  });

/** Logs the outcomes of a prompt's due evaluations, and notifies the people and features that they concern. Call it after the commit. */
function announceResult(ctx: Context, promptId: string, { latest, missed }: Omit<DueResult, "isDone">): void {
  if (missed > 0) ctx.log.warn({ prompt: promptId, missed }, "scheduled evaluations missed");
  if (!latest) return;
  const { outcome, evalRequestId, reason } = latest;
  ctx.log.info({ prompt: promptId, outcome, evalRequest: evalRequestId }, "scheduled evaluation");
  if (reason === pausedReason) {
    const org = scheduledPromptById(ctx.db).get({ id: promptId })?.orgId as OrgId | undefined;
    if (org) announcePause(ctx, org, getPromptRow(ctx, org, promptId));
  }
  if (outcome === "ran") ctx.signals.jobQueued.emit();
}

/** Emails the owners of an organization that a prompt was paused, because its scheduled evaluations failed. */
function announcePause(ctx: Context, org: OrgId, prompt: { id: string; title: string | null; text: string }): void {
  const title = titleOf(prompt).slice(0, maxTitleLength);
  const { name } = getOrg(ctx, org);
  for (const email of listOwnerEmails(ctx, org))
    void mailPromptPaused(ctx, email, { orgName: name, title, path: `/prompts/${prompt.id}` });
}
