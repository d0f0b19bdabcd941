import { and, desc, eq, isNull, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import type { Db, Tx } from "../db/open.ts";
import { bound, literal, statement } from "../db/prepared.ts";
import { prompts } from "../db/tables/prompts.ts";
import { evalRequests, runs } from "../db/tables/runs.ts";
import { scheduledEvaluations } from "../db/tables/schedules.ts";
import { AppError } from "../errors.ts";
import { emitEvent } from "../notifications/outbox.ts";
import { maxFailures, pausedReason } from "../prompts/warnings.ts";
import { toPromptEvent } from "../reports/announcements.ts";
import { acceptEval } from "../runs/requests.ts";
import { toIso } from "../schema.ts";
import {
  batchSize,
  insertScheduledEvaluation,
  type ScheduledPrompt,
  scheduledPromptById,
  scheduleOf,
  setNextEvaluation,
  settledEvaluationAt,
  settleWaiting,
  waitingEvaluationOf,
} from "./scheduled-prompts.ts";
import type { ScheduledEvaluation } from "./schema.ts";

const hourMs = 3600_000;
const dayMs = 24 * hourMs;
/** An evaluation counts as on time if it starts at most this late. A restart takes some seconds. */
const onTimeMs = 60_000;
const missedReasons = {
  notLatest: "the service was not running at that time, and only the latest missed evaluation runs later",
  tooOld: "the service was not running at that time or soon enough after it",
  skipped: "the service was not running at that time, and the schedule skips missed evaluations",
};
const overlapReasons = {
  active: "runs of the previous scheduled evaluation were still active",
  queued: "another scheduled evaluation already waited for the end of the previous one",
  stopped: "the schedule was paused or removed while the evaluation waited for the end of the previous one",
};
const lateReasons = {
  down: "late, because the service was not running at that time",
  waited: "late, because runs of the previous scheduled evaluation were still active",
};

export type Outcome = Omit<ScheduledEvaluation, "scheduledAt" | "createdAt">;

/** `latest`: the outcome of the latest evaluation, if it was due. `missed`: the number of due evaluations that were missed. */
export type DueResult = { isDone: boolean; latest: Outcome | null; missed: number };

/**
 * Decides the outcomes of the evaluations of a prompt that are due at `time`, oldest first and up to a batch of them. Advances the schedule of the
 * prompt. If there is a `failure`, it becomes the outcome of the latest evaluation.
 */
export function settleDueEvaluations(
  ctx: Context,
  tx: Tx,
  promptId: string,
  time: number,
  failure: Outcome | null,
): DueResult {
  const prompt = scheduledPromptById(ctx.db).get({ id: promptId });
  const schedule = prompt ? scheduleOf(prompt) : null;
  if (!prompt || !schedule) {
    setNextEvaluation(ctx.db).run({ id: promptId, at: null });
    return { isDone: true, latest: null, missed: 0 };
  }
  const { orgId, createdAt, nextEvaluationAt } = prompt;
  // An evaluation that was due before the prompt was created is not missed. The clock was wrong then and has been corrected since.
  const isOfWrongClock = nextEvaluationAt !== null && nextEvaluationAt < createdAt && createdAt <= time;
  let dueAt = isOfWrongClock ? nextTime(schedule, createdAt) : nextEvaluationAt;
  let latest: Outcome | null = null;
  const missedAt: number[] = [];
  for (let i = 0; i < batchSize && dueAt !== null && dueAt <= time; i++) {
    const following = nextTime(schedule, dueAt);
    if (!settledEvaluationAt(ctx.db).get({ id: promptId, at: dueAt })) {
      const reason = missedReasonOf(prompt, dueAt, following, time);
      const outcome: Outcome =
        reason === null
          ? (failure ?? runDueEvaluation(ctx, tx, prompt, time - dueAt > onTimeMs))
          : { outcome: "missed", evalRequestId: null, reason };
      if (reason === null) latest = outcome;
      else missedAt.push(dueAt);
      insertScheduledEvaluation(ctx.db)({ orgId, promptId, scheduledAt: dueAt, createdAt: time, ...outcome });
    }
    dueAt = following;
  }
  if (missedAt.length > 0)
    emitEvent(ctx, tx, orgId, "schedule.missed", () => ({
      prompt: toPromptEvent(tx, promptId),
      missed: missedAt.length,
      from: toIso(Math.min(...missedAt)),
      until: toIso(Math.max(...missedAt)),
    }));
  const isPaused = latest?.reason === pausedReason;
  setNextEvaluation(ctx.db).run({ id: promptId, at: isPaused ? null : dueAt });
  const isDone = isPaused || dueAt === null || dueAt > time;
  return { isDone, latest, missed: missedAt.length };
}

/** Why an evaluation that was due before `time` is missed, by the prompt's policy; null: it runs. `following`: when the next evaluation is due. */
function missedReasonOf(
  { catchUp, catchUpHours }: ScheduledPrompt,
  dueAt: number,
  following: number | null,
  time: number,
): string | null {
  const lateMs = time - dueAt;
  if (catchUp === "skip" && lateMs > onTimeMs) return missedReasons.skipped;
  if (following !== null && following <= time) return missedReasons.notLatest;
  const periodMs = (following ?? Number.POSITIVE_INFINITY) - dueAt;
  const maxLateMs = {
    skip: onTimeMs,
    automatic: Math.min(7 * dayMs, Math.max(dayMs, periodMs / 2)),
    window: (catchUpHours ?? 0) * hourMs,
    latest: Number.POSITIVE_INFINITY,
  };
  return lateMs > maxLateMs[catchUp] ? missedReasons.tooOld : null;
}

/** The outcome of an evaluation that is due now. By the prompt's policy, it may have to wait for unfinished runs of the previous evaluation. */
function runDueEvaluation(ctx: Context, tx: Tx, prompt: ScheduledPrompt, isLate: boolean): Outcome {
  const { overlap } = prompt;
  if (overlap === "queue" && waitingEvaluationOf(ctx.db).get({ id: prompt.id }))
    return { outcome: "skipped_overlap", evalRequestId: null, reason: overlapReasons.queued };
  if (overlap !== "allow" && isStillRunning(ctx.db, prompt))
    return {
      outcome: overlap === "queue" ? "waiting" : "skipped_overlap",
      evalRequestId: null,
      reason: overlapReasons.active,
    };
  return requestEvaluation(ctx, tx, prompt, isLate ? lateReasons.down : null);
}

/** Whether the waiting evaluation of a prompt no longer has to wait for the end of the previous one. */
export function isWaitOver({ db }: Context, promptId: string): boolean {
  const prompt = scheduledPromptById(db).get({ id: promptId });
  return prompt !== undefined && (scheduleOf(prompt) === null || !isStillRunning(db, prompt));
}

/** Gives the waiting evaluation of a prompt its outcome, if the previous evaluation has ended. null: no evaluation waits, or it still has to wait. */
export function settleWaitingEvaluation(ctx: Context, tx: Tx, promptId: string, time: number): Outcome | null {
  const prompt = scheduledPromptById(ctx.db).get({ id: promptId });
  const waiting = waitingEvaluationOf(ctx.db).get({ id: promptId });
  if (!prompt || !waiting || !isWaitOver(ctx, promptId)) return null;
  const outcome: Outcome = scheduleOf(prompt)
    ? requestEvaluation(ctx, tx, prompt, lateReasons.waited)
    : { outcome: "skipped_overlap", evalRequestId: null, reason: overlapReasons.stopped };
  settleWaiting(ctx.db).run({ id: promptId, ...outcome, createdAt: time });
  if (outcome.reason === pausedReason) setNextEvaluation(ctx.db).run({ id: promptId, at: null });
  return outcome;
}

/** Requests the runs of an evaluation, unless too many earlier evaluations have failed. `lateReason`: why it is late; null: it is on time. */
function requestEvaluation(ctx: Context, tx: Tx, prompt: ScheduledPrompt, lateReason: string | null): Outcome {
  if (haveAllFailed(ctx.db, prompt)) {
    tx.update(prompts).set({ status: "paused" }).where(eq(prompts.id, prompt.id)).run();
    return { outcome: "failed", evalRequestId: null, reason: pausedReason };
  }
  try {
    const { evalRequestId } = acceptEval(ctx, tx, prompt.orgId as OrgId, prompt.id, {
      urlMap: {},
      templateArgs: prompt.templateDefaults ?? {},
      runs: prompt.runsPerEval ?? 1,
      trigger: "schedule",
    });
    return { outcome: "ran", evalRequestId, reason: lateReason };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { outcome: "failed", evalRequestId: null, reason: error.detail };
  }
}

const unfinishedScheduledRun = statement((db) =>
  db
    .select({ id: runs.id })
    .from(runs)
    .innerJoin(evalRequests, eq(evalRequests.id, runs.evalRequestId))
    .where(
      and(
        eq(runs.orgId, bound("orgId")),
        eq(runs.promptId, bound("id")),
        isNull(runs.completedAt),
        sql`${evalRequests.trigger} = 'schedule'`,
      ),
    )
    .limit(literal(1)),
);

/** Whether earlier scheduled runs are unfinished. */
const isStillRunning = (db: Db, { orgId, id }: ScheduledPrompt): boolean =>
  unfinishedScheduledRun(db).get({ orgId, id }) !== undefined;

const latestEvaluations = statement((db) => {
  const { orgId, outcome, evalRequestId, promptId, reason, scheduledAt } = scheduledEvaluations;
  const where = and(eq(orgId, bound("orgId")), eq(promptId, bound("id")), sql`${outcome} in ('ran', 'failed')`);
  return db
    .select({ evalRequestId, reason })
    .from(scheduledEvaluations)
    .where(where)
    .orderBy(desc(scheduledAt))
    .limit(literal(maxFailures));
});

/** Whether the latest scheduled evaluations have all failed since the prompt was last paused for that, up to the number that may fail in a row. */
function haveAllFailed(db: Db, { orgId, id }: ScheduledPrompt): boolean {
  const latest = latestEvaluations(db).all({ orgId, id });
  // Neither an evaluation that failed itself nor a pause has runs.
  const isFailure = ({ evalRequestId, reason }: (typeof latest)[number]) =>
    evalRequestId === null ? reason !== pausedReason : hasFailed(db, orgId, evalRequestId);
  return latest.length === maxFailures && latest.every(isFailure);
}

const endsOfRuns = statement((db) =>
  db
    .select({ status: runs.status, cause: runs.failureCause })
    .from(runs)
    .where(and(eq(runs.orgId, sql.placeholder("orgId")), eq(runs.evalRequestId, sql.placeholder("evalRequestId")))),
);

/** Whether all runs of an evaluation failed without a cancelled one among them. */
function hasFailed(db: Db, orgId: string, evalRequestId: string): boolean {
  const ends = endsOfRuns(db).all({ orgId, evalRequestId });
  return ends.length > 0 && ends.every(({ status, cause }) => status === "failed" && cause !== "cancelled");
}
