import { and, eq, gt, isNotNull, lte, min, ne, sql } from "drizzle-orm";
import type { Schedule } from "../cron.ts";
import type { Db } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { insertStatement } from "../db/rows.ts";
import { orgs } from "../db/tables/orgs.ts";
import { prompts } from "../db/tables/prompts.ts";
import { scheduledEvaluations } from "../db/tables/schedules.ts";

/** Number of prompts to read at once. */
export const batchSize = 200;

const id = sql.placeholder("id");
const at = sql.placeholder("at");
/** The same condition as in the partial index. */
const isWaiting = sql`${scheduledEvaluations.outcome} = 'waiting'`;

/** Prompts with an evaluation that is due `at`. */
export const duePrompts = statement((db) =>
  db.select({ id: prompts.id }).from(prompts).where(lte(prompts.nextEvaluationAt, at)),
);

/** When the next evaluation of any prompt is due. */
export const firstDueTime = statement((db) =>
  db
    .select({ at: min(prompts.nextEvaluationAt) })
    .from(prompts)
    .where(isNotNull(prompts.nextEvaluationAt)),
);

/** Sets when the next evaluation of a prompt is due; null: never. In `set`, a placeholder must be part of an SQL text. */
export const setNextEvaluation = statement((db) =>
  db
    .update(prompts)
    .set({ nextEvaluationAt: sql`${at}` })
    .where(eq(prompts.id, id)),
);

/** Stores a scheduled evaluation with its outcome. */
export const insertScheduledEvaluation = insertStatement(scheduledEvaluations);

/** The outcome of the evaluation that was scheduled `at`, if it has one. */
export const settledEvaluationAt = statement((db) =>
  db
    .select({ outcome: scheduledEvaluations.outcome })
    .from(scheduledEvaluations)
    .where(and(eq(scheduledEvaluations.promptId, id), eq(scheduledEvaluations.scheduledAt, at))),
);

/** The evaluation of a prompt that waits for the end of the previous one. */
export const waitingEvaluationOf = statement((db) =>
  db
    .select({ scheduledAt: scheduledEvaluations.scheduledAt })
    .from(scheduledEvaluations)
    .where(and(eq(scheduledEvaluations.promptId, id), isWaiting)),
);

/** Prompts with an evaluation that waits for the end of the previous one. */
export const waitingPrompts = statement((db) =>
  db.select({ id: scheduledEvaluations.promptId }).from(scheduledEvaluations).where(isWaiting),
);

/** Gives the waiting evaluation of a prompt its outcome. */
export const settleWaiting = statement((db) =>
  db
    .update(scheduledEvaluations)
    .set({
      outcome: sql`${sql.placeholder("outcome")}`,
      evalRequestId: sql`${sql.placeholder("evalRequestId")}`,
      reason: sql`${sql.placeholder("reason")}`,
      createdAt: sql`${sql.placeholder("createdAt")}`,
    })
    .where(and(eq(scheduledEvaluations.promptId, id), isWaiting)),
);

/** Deletes the evaluations after a time, except those that ran. After the clock was set back, these evaluations are in the future. */
export const deleteLaterEvaluations = statement((db) =>
  db
    .delete(scheduledEvaluations)
    .where(
      and(
        eq(scheduledEvaluations.promptId, id),
        gt(scheduledEvaluations.scheduledAt, at),
        ne(scheduledEvaluations.outcome, "ran"),
      ),
    ),
);

const selectPrompts = (db: Db) =>
  db
    .select({
      id: prompts.id,
      orgId: prompts.orgId,
      status: prompts.status,
      frequency: prompts.frequency,
      runsPerEval: prompts.runsPerEval,
      catchUp: prompts.catchUp,
      catchUpHours: prompts.catchUpHours,
      overlap: prompts.overlap,
      // An evaluation fills its template with these values.
      templateDefaults: prompts.templateDefaults,
      // Evaluations that were due before this time are not missed.
      createdAt: prompts.createdAt,
      nextEvaluationAt: prompts.nextEvaluationAt,
      timeZone: orgs.timeZone,
      schedulesPausedAt: orgs.schedulesPausedAt,
    })
    .from(prompts)
    .innerJoin(orgs, eq(orgs.id, prompts.orgId));

/** A prompt with the data of its schedule. */
export type ScheduledPrompt = ReturnType<ReturnType<typeof selectPrompts>["all"]>[number];

/** A prompt with the data of its schedule. */
export const scheduledPromptById = statement((db) => selectPrompts(db).where(eq(prompts.id, id)));

/** Up to `batchSize` prompts with a schedule after an ID. */
export const scheduledPromptsAfter = statement((db) =>
  selectPrompts(db)
    .where(and(gt(prompts.id, id), isNotNull(prompts.frequency)))
    .orderBy(prompts.id)
    .limit(batchSize),
);

/** The schedule of an active prompt. null: the prompt has none or isn't active, or the schedules of its organization are paused. */
export const scheduleOf = ({ id, status, frequency, timeZone, schedulesPausedAt }: ScheduledPrompt): Schedule | null =>
  status === "active" && frequency !== null && schedulesPausedAt === null ? { id, frequency, timeZone } : null;
