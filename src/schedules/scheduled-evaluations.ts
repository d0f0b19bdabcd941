import { and, count, desc, eq, isNotNull } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { prompts } from "../db/tables/prompts.ts";
import { scheduledEvaluations } from "../db/tables/schedules.ts";
import type { Page, Paged } from "../http/paging.ts";
import { titleText } from "../prompts/lists.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { titleOf } from "../reports/labels.ts";
import { toIso } from "../schema.ts";
import type { ScheduledEvaluation, ScheduleException } from "./schema.ts";

type ScheduledEvaluationRow = typeof scheduledEvaluations.$inferSelect;

const toScheduledEvaluation = (row: ScheduledEvaluationRow): ScheduledEvaluation => ({
  scheduledAt: toIso(row.scheduledAt),
  outcome: row.outcome,
  evalRequestId: row.evalRequestId,
  reason: row.reason,
  createdAt: toIso(row.createdAt),
});

/** The scheduled evaluations of a prompt with their outcomes, newest first. Throws not_found. */
export function listScheduledEvaluations(
  ctx: Context,
  org: OrgId,
  promptId: string,
  { limit, offset }: Page,
): Paged<ScheduledEvaluation> {
  const { id } = getPromptRow(ctx, org, promptId);
  const where = and(eq(scheduledEvaluations.orgId, org), eq(scheduledEvaluations.promptId, id));
  const rows = ctx.db
    .select()
    .from(scheduledEvaluations)
    .where(where)
    .orderBy(desc(scheduledEvaluations.scheduledAt))
    .limit(limit)
    .offset(offset)
    .all();
  return {
    items: rows.map(toScheduledEvaluation),
    total: ctx.db.select({ n: count() }).from(scheduledEvaluations).where(where).get()?.n ?? 0,
  };
}

/** The scheduled evaluations of all prompts that need attention, newest first: they were missed, skipped or failed, wait, or ran late. */
export function listScheduleExceptions(ctx: Context, org: OrgId, { limit, offset }: Page): Paged<ScheduleException> {
  // Only evaluations that ran on time have no reason.
  const where = and(eq(scheduledEvaluations.orgId, org), isNotNull(scheduledEvaluations.reason));
  const rows = ctx.db
    .select({ evaluation: scheduledEvaluations, id: prompts.id, title: prompts.title, text: titleText })
    .from(scheduledEvaluations)
    .innerJoin(prompts, eq(prompts.id, scheduledEvaluations.promptId))
    .where(where)
    .orderBy(desc(scheduledEvaluations.scheduledAt), desc(scheduledEvaluations.promptId))
    .limit(limit)
    .offset(offset)
    .all();
  return {
    items: rows.map(({ evaluation, id, ...prompt }) => ({
      prompt: { id, title: titleOf(prompt) },
      ...toScheduledEvaluation(evaluation),
    })),
    total: ctx.db.select({ n: count() }).from(scheduledEvaluations).where(where).get()?.n ?? 0,
  };
}
