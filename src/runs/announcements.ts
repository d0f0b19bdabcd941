import { and, asc, eq, sql } from "drizzle-orm";
import type { Failure } from "../agents/failure.ts";
import { describeFailure } from "../agents/remedies.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { reports } from "../db/tables/reports.ts";
import { evalRequests, runs } from "../db/tables/runs.ts";
import { scheduledEvaluations } from "../db/tables/schedules.ts";
import { cut } from "../notifications/events.ts";
import { emitEvent, wantsEvent } from "../notifications/outbox.ts";
import { toPromptEvent, toReportEvent, toRunEvent } from "../reports/announcements.ts";
import { toIso } from "../schema.ts";
import { getSpending } from "./spending.ts";

const maxDetail = 1_000;
/** If a run failed because of its budget, the monthly budget counts as spent even if this much is left, in USD. */
const unusableUsd = 0.25;

/**
 * Notifies destinations of a run that ended and of everything that follows from it, in the transaction that ends the run. `failure`: null if the run
 * has a report or was superseded.
 */
export function announceEnd(ctx: Context, tx: Tx, runId: string, failure: Failure | null): void {
  const run = tx.select().from(runs).where(eq(runs.id, runId)).get();
  if (!run) return;
  if (failure)
    emitEvent(ctx, tx, run.orgId, "run.failed", () => ({
      run: toRunEvent(ctx.baseUrl(), run),
      prompt: toPromptEvent(tx, run.promptId),
      failure: describeFailure(ctx.baseUrl(), run.promptId, { ...failure, detail: cut(failure.detail, maxDetail) }),
    }));
  // Another evaluation of the prompt may wait for the end of this one.
  if (waitingEvaluation(ctx.db).get({ id: run.promptId })) ctx.signals.scheduleChanged.emit();
  announceEvaluation(ctx, tx, run);
  announceBudget(ctx, tx, run.orgId, failure?.cause === "budget");
}

const waitingEvaluation = statement((db) =>
  db
    .select({ scheduledAt: scheduledEvaluations.scheduledAt })
    .from(scheduledEvaluations)
    .where(
      and(eq(scheduledEvaluations.promptId, sql.placeholder("id")), sql`${scheduledEvaluations.outcome} = 'waiting'`),
    ),
);

/** Notifies destinations if the budget is spent, in the transaction that counts a model call outside of runs. */
export const announceSpending = (ctx: Context, tx: Tx, orgId: string): void => announceBudget(ctx, tx, orgId, false);

/** Notifies of an evaluation if this was its last run. */
function announceEvaluation(ctx: Context, tx: Tx, { orgId, promptId, evalRequestId }: typeof runs.$inferSelect): void {
  if (!wantsEvent(ctx, orgId, "evaluation.completed") && !wantsEvent(ctx, orgId, "score.changed")) return;
  const evaluationRuns = tx
    .select({ run: runs, report: reports })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .where(eq(runs.evalRequestId, evalRequestId))
    .orderBy(asc(runs.id))
    .all();
  if (evaluationRuns.some(({ run }) => run.completedAt === null)) return;
  const request = tx.select().from(evalRequests).where(eq(evalRequests.id, evalRequestId)).get();
  if (!request) return;
  const countRuns = (status: (typeof evaluationRuns)[number]["run"]["status"]) =>
    evaluationRuns.filter(({ run }) => run.status === status).length;
  const countByStatus = {
    completed: countRuns("completed"),
    failed: countRuns("failed"),
    superseded: countRuns("superseded"),
  };
  // An evaluation ended as well as the best of its runs.
  const status = (["completed", "failed"] as const).find((each) => countByStatus[each] > 0) ?? "superseded";
  emitEvent(ctx, tx, orgId, "evaluation.completed", () => ({
    evaluation: {
      id: evalRequestId,
      url: `${ctx.baseUrl()}/evaluations/${evalRequestId}`,
      trigger: request.trigger,
      status,
      requestedAt: toIso(request.createdAt),
      runs: countByStatus,
    },
    prompt: toPromptEvent(tx, promptId),
    reports: evaluationRuns.flatMap(({ report }) => (report ? [toReportEvent(ctx.baseUrl(), report)] : [])),
  }));
  // Only `score.changed` follows from this signal, so the return above may skip it.
  ctx.signals.evaluationEnded.emit({ tx, org: orgId as OrgId, promptId });
}

/** Notifies of a budget once per month and amount. */
function announceBudget(ctx: Context, tx: Tx, orgId: string, isBudgetFailure: boolean): void {
  if (!wantsEvent(ctx, orgId, "budget.reached")) return;
  const { spentUsd, maxUsdAMonth, from, until } = getSpending(ctx, orgId as OrgId);
  if (maxUsdAMonth === null || spentUsd < maxUsdAMonth - (isBudgetFailure ? unusableUsd : 0)) return;
  const makeData = () => ({ spentUsd, maxUsdAMonth, from, until });
  emitEvent(ctx, tx, orgId, "budget.reached", makeData, `budget ${from} ${maxUsdAMonth}`);
}
