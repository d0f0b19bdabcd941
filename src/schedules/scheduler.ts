import { mailPause } from "../auth/mail.ts";
import { listOwnerEmails } from "../auth/members.ts";
import { getOrg } from "../auth/orgs.ts";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import { isTemporary } from "../db/fault.ts";
import { createPoll } from "../poll.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { pausedReason } from "../prompts/warnings.ts";
import { type DueResult, type Outcome, settleDueEvaluations } from "./due-evaluations.ts";
import {
  deleteLaterEvaluations,
  duePrompts,
  firstDueTime,
  scheduledPromptById,
  scheduledPromptsAfter,
  scheduleOf,
  setNextEvaluation,
} from "./scheduled-prompts.ts";

/** Maximum time between checks, since the clock may be set and another process may change a schedule. */
const longestSleepMs = 30_000;
const maxTitleLength = 80;

/** A prompt with due evaluations. `failure`: the outcome of the latest one after an internal error. */
type Due = { id: string; failure: Outcome | null };

/** Runs prompts on schedule. Each due evaluation gets one row, in the same transaction as its runs. */
export function createScheduler(ctx: Context) {
  const { log } = ctx;
  let isStopped = false;
  /** The latest time that the clock showed. A previous process may have read a later one. */
  let latestTime = Number.POSITIVE_INFINITY;
  /** When the last check began, in milliseconds of the monotonic clock. */
  let checkedAt = 0;

  function readClock(): number {
    const time = ctx.now();
    latestTime = Math.max(latestTime, time);
    return time;
  }

  /** Realigns all schedules to the present after the clock was set back. */
  async function realign(time: number): Promise<void> {
    let last: string | undefined = "";
    while (last !== undefined && !isStopped) last = await realignBatch(ctx, last, time);
    latestTime = time;
  }

  /**
   * Processes some due evaluations of a prompt and returns whether none is left. An evaluation with an internal error fails, so it does not
   * block others.
   */
  async function settle(due: Due): Promise<boolean> {
    try {
      const result = await ctx.commit((tx) => settleDueEvaluations(ctx, tx, due.id, readClock(), due.failure));
      announceResult(ctx, due.id, result);
      return result.isDone;
    } catch (error) {
      if (due.failure || isTemporary(error)) throw error;
      log.error({ err: error, prompt: due.id }, "scheduled evaluation failed");
      due.failure = { outcome: "failed", evalRequestId: null, reason: "internal error; see the server log" };
      return false;
    }
  }

  /** Processes everything that is due. Returns the time of the next evaluation, epoch ms; null if nothing is scheduled. */
  async function tick(): Promise<number | null> {
    const time = ctx.now();
    // If the clock was set back some time after the last check, evaluations that came due since then must not be skipped. The time
    // since then is measured by the monotonic clock, in whole seconds.
    const isFirst = latestTime === Number.POSITIVE_INFINITY;
    const sinceCheckMs = isFirst ? 0 : Math.floor((performance.now() - checkedAt) / 1000) * 1000;
    checkedAt = performance.now();
    if (time < latestTime) await realign(time - sinceCheckMs);
    let due: Due[] = duePrompts(ctx.db)
      .all({ at: readClock() })
      .map(({ id }) => ({ id, failure: null }));
    // Round robin in batches, so a prompt with many missed evaluations does not block the others.
    while (due.length > 0) {
      const unfinished: Due[] = [];
      for (const each of due) if (!isStopped && !(await settle(each))) unfinished.push(each);
      due = unfinished;
    }
    return firstDueTime(ctx.db).get()?.at ?? null;
  }

  const poll = createPoll({
    async check() {
      const next = await tick();
      return next === null ? longestSleepMs : Math.max(1, Math.min(longestSleepMs, next - ctx.now()));
    },
    onError(error) {
      ctx.disk.onError(error);
      log.error({ err: error }, "could not process scheduled evaluations");
    },
    retryMs: 2_000,
  });

  return {
    tick,
    /** Checks the schedules now. Call it after changing one. */
    wake: poll.wake,
    /** Resumes the schedules where the previous process left them. */
    start(): void {
      isStopped = false;
      latestTime = Number.POSITIVE_INFINITY;
      poll.start();
    },
    stop(): Promise<void> {
      isStopped = true;
      return poll.stop();
    },
  };
}

/**
 * Realigns the schedules after a prompt ID and returns the last ID; undefined if none is left. The next evaluation of a prompt must not wait
 * behind those that were processed in what is now the future. They are deleted, except those that ran, which do not run again.
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

/** Logs the outcomes of a prompt's due evaluations, and notifies the people and features concerned. Call it after the commit. */
function announceResult(ctx: Context, promptId: string, { latest, missed }: DueResult): void {
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
  const title = (prompt.title ?? prompt.text).replace(/\s+/g, " ").slice(0, maxTitleLength);
  const { name } = getOrg(ctx, org);
  for (const email of listOwnerEmails(ctx, org)) void mailPause(ctx, email, name, title, `/prompts/${prompt.id}`);
}
