import { and, eq, or, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { fixes, frictionPoints } from "../db/tables/friction.ts";
import { gates } from "../db/tables/gates.ts";
import { notifications } from "../db/tables/notifications.ts";
import { prompts } from "../db/tables/prompts.ts";
import { reports } from "../db/tables/reports.ts";
import { evalRequests, runs } from "../db/tables/runs.ts";
import { scheduledEvaluations } from "../db/tables/schedules.ts";
import { mentions } from "../notifications/deleted.ts";
import type { PromptRow } from "../prompts/prompt-check.ts";

/**
 * Adds a prompt that holds one deleted run, so that the run is hidden in the same way as a deleted prompt. The added prompt is never visible. Returns
 * its ID.
 */
export function addHidingPrompt(ctx: Context, tx: Tx, { orgId }: PromptRow): string {
  const createdAt = ctx.now();
  const id = ctx.newId(createdAt);
  tx.insert(prompts)
    .values({ id, orgId, text: "", status: "archived", reviewBeforePublishing: false, createdAt })
    .run();
  return id;
}

/** Moves a run with its report to another prompt. If no other run of its evaluation stays, the evaluation moves too, with what refers to it. */
export function moveRun(tx: Tx, run: typeof runs.$inferSelect, promptId: string): void {
  const { orgId, evalRequestId, id } = run;
  tx.update(runs).set({ promptId }).where(eq(runs.id, id)).run();
  tx.update(reports).set({ promptId }).where(eq(reports.runId, id)).run();
  const reportOfRun = sql`(select id from reports where run_id = ${id})`;
  tx.update(frictionPoints).set({ promptId }).where(sql`${frictionPoints.reportId} = ${reportOfRun}`).run();
  // The run itself has moved by now.
  const others = sql`select 1 from runs where org_id = ${orgId} and eval_request_id = ${evalRequestId} and prompt_id = ${run.promptId} limit 1`;
  const isShared = tx.get(others) != null;
  const slug = sql`(select slug from reports where run_id = ${id})`;
  const isAboutRun = or(mentions(id), mentions(slug), isShared ? undefined : mentions(evalRequestId));
  tx.update(notifications)
    .set({ promptId })
    .where(and(eq(notifications.orgId, orgId), eq(notifications.promptId, run.promptId), isAboutRun))
    .run();
  if (isShared) return;
  const isOfOrg = eq(evalRequests.orgId, orgId);
  tx.update(evalRequests)
    .set({ promptId })
    .where(and(isOfOrg, eq(evalRequests.id, evalRequestId)))
    .run();
  const ofGate = or(eq(gates.headRequestId, evalRequestId), eq(gates.baseRequestId, evalRequestId));
  tx.update(gates)
    .set({ promptId })
    .where(and(eq(gates.orgId, orgId), ofGate))
    .run();
  const ofFix = or(eq(fixes.beforeId, evalRequestId), eq(fixes.afterId, evalRequestId));
  tx.update(fixes)
    .set({ promptId })
    .where(and(eq(fixes.orgId, orgId), ofFix))
    .run();
  tx.update(scheduledEvaluations)
    .set({ promptId })
    .where(and(eq(scheduledEvaluations.orgId, orgId), eq(scheduledEvaluations.evalRequestId, evalRequestId)))
    .run();
}
