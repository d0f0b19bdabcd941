import { and, eq, gte, isNotNull, sql } from "drizzle-orm";
import { decideLimits, type Limits } from "../config/limits.ts";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import type { Tx } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { orgs } from "../db/tables/orgs.ts";
import { runs, sessionEvents, spending } from "../db/tables/runs.ts";
import { conflict, notFound } from "../errors.ts";
import type { OrgLimits } from "../jobs/claim-order.ts";
import { toIso } from "../schema.ts";
import type { Spending } from "./schema.ts";

const longestMonthMs = 32 * 24 * 3600_000;
/** Amount reserved for judging a session, in USD. */
const judgeUsd = 0.25;

/** What a call counts for in USD: its cost, or an estimate if that is unknown; null: there is none either. */
export const countedUsd = sql<
  number | null
>`coalesce(json_extract(${sessionEvents.data}, '$.costUsd'), json_extract(${sessionEvents.data}, '$.estimate.costUsd'))`;

const budgetLimits = statement((db) =>
  db
    .select({ month: orgs.maxUsdAMonth, run: orgs.maxUsdARun })
    .from(orgs)
    .where(eq(orgs.id, sql.placeholder("org"))),
);

/** The error message if the monthly budget is spent; null if some is left. */
export function budgetObjection(ctx: Context, org: string): string | null {
  const { row, month, usd } = monthlySpending(ctx, org);
  if (row.maxUsdAMonth === null || usd < row.maxUsdAMonth) return null;
  const until = new Date(month.until).toLocaleDateString("en-US", {
    timeZone: row.timeZone,
    day: "numeric",
    month: "long",
  });
  return `The organization has spent $${usd.toFixed(2)} of its monthly budget of $${row.maxUsdAMonth}. Raise the budget with evald org set ${JSON.stringify(row.name)} --max-usd-a-month, or wait until ${until}.`;
}

/** Throws conflict if the monthly budget is spent, because the run would only fail. */
export function checkBudget(ctx: Context, org: OrgId): void {
  if (budgetLimits(ctx.db).get({ org })?.month == null) return;
  const problem = budgetObjection(ctx, org);
  if (problem !== null) throw conflict(problem);
}

/** The limits of an organization, reduced while active runs reserve the rest of the monthly budget. */
export function limitsWithinBudget(ctx: Context, org: string, limits: OrgLimits): OrgLimits {
  if (budgetLimits(ctx.db).get({ org })?.month == null) return limits;
  const { row, freeUsd, reserved, usd } = monthlySpending(ctx, org);
  if (row.maxUsdAMonth === null || freeUsd === null || usd >= row.maxUsdAMonth) return limits;
  const maxUsdPerRun = lowerLimit(ctx.config.modelLimits.costUsd, row.maxUsdARun);
  const additionalRuns = maxUsdPerRun === null ? 0 : Math.max(0, Math.floor(freeUsd / (maxUsdPerRun + judgeUsd)));
  const atOnce = reserved + Math.max(additionalRuns, reserved === 0 ? 1 : 0);
  return { ...limits, atOnce: limits.atOnce === null ? atOnce : Math.min(limits.atOnce, atOnce) };
}

/** Reserves the maximum cost of a run in the transaction that starts it. */
export function reserveBudget(ctx: Context, tx: Tx, run: typeof runs.$inferSelect): void {
  if (run.model === null || budgetLimits(ctx.db).get({ org: run.orgId })?.month == null) return;
  const { row, freeUsd } = monthlySpending(ctx, run.orgId);
  if (freeUsd === null) return;
  const agentMaxUsd = lowerLimit(decideLimits(run.task.limits, ctx.config).model.costUsd, row.maxUsdARun);
  const usd = Math.max(0, Math.min(freeUsd, agentMaxUsd === null ? freeUsd : agentMaxUsd + judgeUsd));
  tx.update(runs).set({ reservedUsd: usd }).where(eq(runs.id, run.id)).run();
}

/** Budget of a started run in USD: for the agent, and for the agent with its judge; null: no limit. */
export function budgetOfRun(ctx: Context, orgId: string, limits: Limits | null, reservedUsd: number | null) {
  const limit = budgetLimits(ctx.db).get({ org: orgId });
  const agentMaxUsd = lowerLimit(decideLimits(limits, ctx.config).model.costUsd, limit?.run ?? null);
  return {
    agentUsd: lowerLimit(agentMaxUsd, reservedUsd),
    totalUsd: reservedUsd,
    isCapped: (limit?.run ?? limit?.month ?? limits?.costUsd ?? null) !== null,
  };
}

/** The limit on money that a run reaches first, and whose it is. */
export function findCostLimit(
  ctx: Context,
  { orgId, task, reservedUsd }: Pick<typeof runs.$inferSelect, "orgId" | "task" | "reservedUsd">,
): { code: CostLimitCode; usd: number | null } {
  const limits: { code: CostLimitCode; usd: number | null }[] = [
    { code: "prompt_cost_limit", usd: task.limits?.costUsd ?? null },
    { code: "organization_cost_limit", usd: budgetLimits(ctx.db).get({ org: orgId })?.run ?? null },
    { code: "server_cost_limit", usd: ctx.config.modelLimits.costUsd },
    { code: "month_budget_spent", usd: reservedUsd },
  ];
  const lowest = Math.min(...limits.flatMap(({ usd }) => usd ?? []));
  return limits.find(({ usd }) => usd === lowest) ?? { code: "server_cost_limit", usd: null };
}

type CostLimitCode = "prompt_cost_limit" | "organization_cost_limit" | "server_cost_limit" | "month_budget_spent";

/** Model spending and budget of an organization in the current month of its time zone. */
export function getSpending(ctx: Context, org: OrgId): Spending {
  const { row, month, usd, unpriced, reservedUsd } = monthlySpending(ctx, org);
  return {
    from: toIso(month.from),
    until: toIso(month.until),
    spentUsd: Math.round(usd * 1e6) / 1e6,
    reservedUsd: Math.round(reservedUsd * 1e6) / 1e6,
    unpricedCalls: unpriced,
    maxUsdAMonth: row.maxUsdAMonth,
    maxUsdARun: row.maxUsdARun,
  };
}

function getOrg(ctx: Context, org: string) {
  const row = ctx.db.select().from(orgs).where(eq(orgs.id, org)).get();
  if (!row) throw notFound("The organization was not found.");
  return row;
}

/** Start and end of the calendar month in a time zone, epoch ms. */
function monthOf(ctx: Context, timeZone: string): { from: number; until: number } {
  const monthlySchedule = { id: "", frequency: "0 0 1 * *", timeZone };
  const now = ctx.now();
  let from = now - longestMonthMs;
  for (let next = nextTime(monthlySchedule, from); next !== null && next <= now; next = nextTime(monthlySchedule, next))
    from = next;
  return { from, until: nextTime(monthlySchedule, now) ?? now };
}

function spentSince(ctx: Context, org: string, from: number): { usd: number; unpriced: number } {
  const row = ctx.db
    .select({
      usd: sql<number>`coalesce(sum(${spending.usd}), 0)`,
      unpriced: sql<number>`coalesce(sum(${spending.unpricedCalls}), 0)`,
    })
    .from(spending)
    .where(and(eq(spending.orgId, org), gte(spending.from, from)))
    .get();
  return row ?? { usd: 0, unpriced: 0 };
}

/** Remaining reservations of active runs. */
function listReserved(ctx: Context, org: string): { left: number }[] {
  return ctx.db
    .select({
      left: sql<number>`max(0, ${runs.reservedUsd} - (select coalesce(sum(${countedUsd}), 0) from ${sessionEvents}
          where ${sessionEvents.runId} = ${runs.id} and ${sessionEvents.attempt} = ${runs.attempt} and ${sessionEvents.type} = 'usage'))`,
    })
    .from(runs)
    .where(and(eq(runs.orgId, org), isNotNull(runs.reservedUsd)))
    .all();
}

/** Limit and spending of an organization in its current month, in USD; null without a limit. `from`: when the month began, epoch ms. */
export function findMonth(ctx: Context, org: string): { from: number; maxUsd: number; spentUsd: number } | null {
  if (budgetLimits(ctx.db).get({ org })?.month == null) return null;
  const { timeZone, maxUsdAMonth } = getOrg(ctx, org);
  if (maxUsdAMonth === null) return null;
  const { from } = monthOf(ctx, timeZone);
  return { from, maxUsd: maxUsdAMonth, spentUsd: spentSince(ctx, org, from).usd };
}

function monthlySpending(ctx: Context, org: string) {
  const row = getOrg(ctx, org);
  const month = monthOf(ctx, row.timeZone);
  const { usd, unpriced } = spentSince(ctx, org, month.from);
  const reserved = listReserved(ctx, org);
  const reservedUsd = reserved.reduce((sum, { left }) => sum + left, 0);
  const freeUsd = row.maxUsdAMonth === null ? null : row.maxUsdAMonth - usd - reservedUsd;
  return { row, month, usd, unpriced, reserved: reserved.length, reservedUsd, freeUsd };
}

const lowerLimit = (limit: number | null, capUsd: number | null) =>
  limit === null || capUsd === null ? (limit ?? capUsd) : Math.min(limit, capUsd);

/**
 * Counts the cost of a call whose event is not stored, since it was paid for. `usd` null: unknown; `estimatedUsd`: what it counts for then.
 */
export function recordSpending(tx: Tx, orgId: string, at: number, usd: number | null, estimatedUsd = 0): void {
  const counted = usd ?? estimatedUsd;
  tx.insert(spending)
    .values({ orgId, from: at - (at % 900_000), usd: counted, unpricedCalls: usd === null ? 1 : 0 })
    .onConflictDoUpdate({
      target: [spending.orgId, spending.from],
      set: {
        usd: sql`${spending.usd} + ${counted}`,
        unpricedCalls: sql`${spending.unpricedCalls} + ${usd === null ? 1 : 0}`,
      },
    })
    .run();
}
