import { and, count, eq, isNotNull } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { nextTime, nextTimes } from "../cron.ts";
import { type Db, transaction } from "../db/open.ts";
import { hasPausedSchedules, timeZoneOf } from "../db/rows.ts";
import { orgs } from "../db/tables/orgs.ts";
import { prompts } from "../db/tables/prompts.ts";
import { getPromptRow, scheduleOf } from "../prompts/prompts.ts";
import { toIso } from "../schema.ts";
import type { Schedule, ScheduleState } from "./schema.ts";

/** How many next times a schedule shows. */
const maxTimes = 20;

/** The schedule of a prompt with its next times. Throws not_found. */
export function getSchedule(ctx: Context, org: OrgId, promptId: string): Schedule {
  const row = getPromptRow(ctx, org, promptId);
  const schedule = scheduleOf(ctx, row);
  const { id, frequency, runsPerEval, catchUp, catchUpHours, overlap, status } = row;
  const isPaused = frequency !== null && schedule === null;
  const pauser = status === "active" ? "organization" : "prompt";
  return {
    promptId: id,
    frequency,
    runsPerEval: runsPerEval ?? 1,
    catchUp,
    catchUpHours,
    overlap,
    timeZone: timeZoneOf(ctx.db, org),
    pausedBy: isPaused ? pauser : null,
    nextTimes: schedule ? nextTimes(schedule, ctx.now(), maxTimes).map((at) => toIso(at)) : [],
  };
}

const whereScheduled = (org: OrgId) =>
  and(eq(prompts.orgId, org), eq(prompts.status, "active"), isNotNull(prompts.frequency));

/** Whether the schedules of an organization are paused, and how many it has. */
export function getScheduleState({ db }: Context, org: OrgId): ScheduleState {
  const pausedAt = db.select({ at: orgs.schedulesPausedAt }).from(orgs).where(eq(orgs.id, org)).get()?.at ?? null;
  return {
    pausedAt: toIso(pausedAt),
    schedules: db.select({ n: count() }).from(prompts).where(whereScheduled(org)).get()?.n ?? 0,
  };
}

/** Pauses all schedules of an organization. Nothing is due until they are resumed. Pausing them again changes nothing. */
export function pauseSchedules(ctx: Context, org: OrgId): ScheduleState {
  transaction(ctx.db, (tx) => {
    if (hasPausedSchedules(ctx.db, org)) return;
    tx.update(orgs).set({ schedulesPausedAt: ctx.now() }).where(eq(orgs.id, org)).run();
    recordAudit(ctx, org, "schedules.paused");
    tx.update(prompts)
      .set({ nextEvaluationAt: null })
      .where(and(eq(prompts.orgId, org), isNotNull(prompts.nextEvaluationAt)))
      .run();
  });
  ctx.signals.scheduleChanged.emit();
  return getScheduleState(ctx, org);
}

/** Resumes the schedules of an organization from now on. Evaluations that would have been due in the meantime are not made up for. */
export function resumeSchedules(ctx: Context, org: OrgId): ScheduleState {
  transaction(ctx.db, (tx) => {
    if (!hasPausedSchedules(ctx.db, org)) return;
    tx.update(orgs).set({ schedulesPausedAt: null }).where(eq(orgs.id, org)).run();
    recordAudit(ctx, org, "schedules.resumed");
    for (const row of listScheduled(ctx.db, org)) {
      const schedule = scheduleOf(ctx, row);
      const nextEvaluationAt = schedule && nextTime(schedule, ctx.now());
      tx.update(prompts).set({ nextEvaluationAt }).where(eq(prompts.id, row.id)).run();
    }
  });
  ctx.signals.scheduleChanged.emit();
  return getScheduleState(ctx, org);
}

const listScheduled = (db: Db, org: OrgId) =>
  db
    .select({ id: prompts.id, orgId: prompts.orgId, status: prompts.status, frequency: prompts.frequency })
    .from(prompts)
    .where(whereScheduled(org))
    .all();
