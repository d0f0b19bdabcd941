import { and, count, desc, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { scheduledEvaluations } from "../db/tables/schedules.ts";
import type { Page, Paged } from "../http/paging.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { toIso } from "../schema.ts";
import type { ScheduledEvaluation } from "./schema.ts";

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
    items: rows.map(({ scheduledAt, outcome, evalRequestId, reason, createdAt }) => ({
      scheduledAt: toIso(scheduledAt),
      outcome,
      evalRequestId,
      reason,
      createdAt: toIso(createdAt),
    })),
    total: ctx.db.select({ n: count() }).from(scheduledEvaluations).where(where).get()?.n ?? 0,
  };
}
