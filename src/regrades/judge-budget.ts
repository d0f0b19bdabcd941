import { eq, sql } from "drizzle-orm";
import type { AgentEvent } from "../agents/agent.ts";
import { priceOf } from "../agents/gateway/prices.ts";
import { type Context, type OrgId, perContext } from "../context.ts";
import { regrades } from "../db/tables/reports.ts";
import { JobFailure } from "../jobs/handler.ts";
import { attemptKey, type Lease } from "../jobs/queue.ts";
import { getModel } from "../models/models.ts";
import { announceSpending } from "../runs/announcements.ts";
import { budgetObjection, budgetsOfPrompt, stateOf } from "../runs/budgets.ts";
import { recordSpending } from "../runs/paid-calls.ts";
import { getRegradeRow, type RegradeRow, regradeIdOf } from "./regrade-row.ts";

/** Upper bounds of the input and output of one judge call. */
const maxUsage = { input: 130_000, output: 16_000, cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, reasoning: 0 };

/** What attempts of this process have spent, in USD. */
const spentByAttempt = perContext(() => new Map<string, number>());

/**
 * Records the cost of a judge's call immediately, whether or not the answer is usable. If the cost is unknown, the month counts the estimate.
 * Resolves when it is stored.
 */
export function recordJudgeCost(
  ctx: Context,
  lease: Lease,
  { id, orgId }: RegradeRow,
  runId: string,
  { model, costUsd, estimate }: Extract<AgentEvent, { type: "usage" }>,
): Promise<void> {
  const spentUsdByAttempt = spentByAttempt(ctx);
  spentUsdByAttempt.set(attemptKey(lease), (spentUsdByAttempt.get(attemptKey(lease)) ?? 0) + (costUsd ?? 0));
  const change =
    costUsd === null
      ? { unpriced: sql`${regrades.unpriced} + 1` }
      : { spentUsd: sql`${regrades.spentUsd} + ${costUsd}` };
  return ctx.commit((tx) => {
    tx.update(regrades).set(change).where(eq(regrades.id, id)).run();
    recordSpending(ctx, tx, runId, {
      at: ctx.now(),
      model,
      purpose: "judge",
      isRegrade: true,
      usd: costUsd,
      estimatedUsd: estimate?.costUsd ?? 0,
    });
    announceSpending(ctx, tx, orgId);
  });
}

/**
 * How much the judge may still spend, in USD, by the request and by the monthly budgets of the prompt. A call of unknown cost counts as the most
 * expensive one. Throws a JobFailure if nothing is left.
 */
export function getJudgeBudget(
  ctx: Context,
  { orgId, maxUsd, spentUsd, unpriced, judge }: RegradeRow,
  promptId: string,
): number {
  const org = orgId as OrgId;
  const monthsLeftUsd = budgetsOfPrompt(ctx, org, promptId).map((budget) => stateOf(ctx, org, budget).freeUsd);
  const monthLeftUsd = Math.min(...monthsLeftUsd);
  if (monthLeftUsd <= 0)
    throw toFailure(budgetObjection(ctx, org, promptId) ?? "The rest of a monthly budget is reserved for runs.");
  const maxCallUsd = () => priceOf(maxUsage, null, getModel(ctx, org, judge ?? "")) ?? Number.POSITIVE_INFINITY;
  const remainingUsd = (maxUsd ?? 0) - spentUsd - (unpriced === 0 ? 0 : unpriced * maxCallUsd());
  if (remainingUsd > 0) return Math.min(remainingUsd, monthLeftUsd);
  const unknownCostNote = unpriced === 0 ? "" : `, plus ${unpriced} calls of unknown cost`;
  throw toFailure(
    `the judge has cost $${spentUsd.toFixed(4)}${unknownCostNote} of at most $${maxUsd}; to continue, request the regrade again with a higher maxUsd`,
  );
}

const toFailure = (detail: string) => new JobFailure({ cause: "budget", detail }, "never");

/** The cost of an attempt of a regrade's job so far, in USD; null if unknown. */
export const costOfRegradeAttempt = (ctx: Context, lease: Lease): number | null =>
  spentByAttempt(ctx).get(attemptKey(lease)) ?? (getRegradeRow(ctx.db, regradeIdOf(lease)).judge === null ? 0 : null);
