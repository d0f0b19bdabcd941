import { and, eq, gte, inArray, isNotNull, lt, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { decideLimits, type Limits } from "../config/limits.ts";
import type { Context, OrgId } from "../context.ts";
import { nextTime } from "../cron.ts";
import { statement } from "../db/prepared.ts";
import { orgs } from "../db/tables/orgs.ts";
import { type RunTask, runs, sessionEvents } from "../db/tables/runs.ts";
import { spending } from "../db/tables/spending.ts";
import { notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import { round } from "../stats/repeats.ts";
import { dayMs } from "./paid-calls.ts";
import type { Spending } from "./schema.ts";

/** Longer than any month. */
const monthOrMoreMs = 32 * dayMs;

/** The amount that a call counts, in USD: its cost, or an estimate if the cost is unknown; null: there is no estimate either. */
export const countedUsd = sql<
  number | null
>`coalesce(json_extract(${sessionEvents.data}, '$.costUsd'), json_extract(${sessionEvents.data}, '$.estimate.costUsd'))`;

const orgLimits = statement((db) =>
  db
    .select({ month: orgs.maxUsdAMonth, run: orgs.maxUsdARun })
    .from(orgs)
    .where(eq(orgs.id, sql.placeholder("org"))),
);

/**
 * The budget of a started run in USD, for the agent alone and for the agent with its judge; null: no limit. `reservedUsd`: what the run has reserved
 * of its monthly budgets; null: it has none. `isCapped`: whether a limit other than the server's applies. Then its model must have a price.
 */
export function budgetOfRun(ctx: Context, orgId: string, limits: Limits | null, reservedUsd: number | null) {
  const ofOrg = orgLimits(ctx.db).get({ org: orgId });
  const agentMaxUsd = lowerLimit(decideLimits(limits, ctx.config).model.costUsd, ofOrg?.run ?? null);
  return {
    agentUsd: lowerLimit(agentMaxUsd, reservedUsd),
    totalUsd: reservedUsd,
    isCapped: [ofOrg?.run, ofOrg?.month, limits?.costUsd, reservedUsd].some((usd) => usd != null),
  };
}

/** What some runs cost together, with estimates, in USD. `runIds`: a query that selects their IDs. */
export const costOfRuns = (db: Context["db"], runIds: SQLWrapper): number =>
  db
    .select({ usd: sql<number>`coalesce(sum(${runs.spentUsd}), 0)` })
    .from(runs)
    .where(inArray(runs.id, runIds))
    .get()?.usd ?? 0;

/** The money limit that a run reaches first, and who set it. */
export function findCostLimit(
  ctx: Context,
  { orgId, task, reservedUsd }: { orgId: string; task: RunTask; reservedUsd: number | null },
): { code: CostLimitCode; usd: number | null } {
  const limits: { code: CostLimitCode; usd: number | null }[] = [
    { code: "prompt_cost_limit", usd: task.limits?.costUsd ?? null },
    { code: "organization_cost_limit", usd: orgLimits(ctx.db).get({ org: orgId })?.run ?? null },
    { code: "server_cost_limit", usd: ctx.config.modelLimits.costUsd },
    { code: "month_budget_spent", usd: reservedUsd },
  ];
  const lowest = Math.min(...limits.flatMap(({ usd }) => usd ?? []));
  return limits.find(({ usd }) => usd === lowest) ?? { code: "server_cost_limit", usd: null };
}

type CostLimitCode = "prompt_cost_limit" | "organization_cost_limit" | "server_cost_limit" | "month_budget_spent";

/** Model spending and budget of an organization in the current month of its time zone. */
export function getSpending(ctx: Context, org: OrgId): Spending {
  const row = getOrg(ctx, org);
  const month = monthAt(row.timeZone, ctx.now());
  const { usd, estimatedUsd, unpriced } = spentWithin(ctx, org, month);
  const passedMs = ctx.now() - month.from;
  return {
    from: toIso(month.from),
    until: toIso(month.until),
    spentUsd: round(usd, 6),
    estimatedUsd: round(estimatedUsd, 6),
    expectedUsd: passedMs < dayMs ? null : round((usd * (month.until - month.from)) / passedMs, 2),
    reservedUsd: round(reservedBy(ctx, org).usd, 6),
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

/** A calendar month: its start and end, epoch ms. */
export type Month = { from: number; until: number };

/** The calendar month of a moment in a time zone. */
export function monthAt(timeZone: string, at: number): Month {
  const monthlySchedule = { id: "", frequency: "0 0 1 * *", timeZone };
  // This is the last start of a month that is not after the moment.
  let from = at - monthOrMoreMs;
  for (let next = nextTime(monthlySchedule, from); next !== null && next <= at; next = nextTime(monthlySchedule, next))
    from = next;
  return { from, until: nextTime(monthlySchedule, at) ?? at };
}

/** What an organization spent in a period that begins and ends at a multiple of 15 minutes. `unpriced`: the number of calls of unknown cost. */
export function spentWithin(ctx: Context, org: string, { from, until }: Month) {
  const row = ctx.db
    .select({
      usd: sql<number>`coalesce(sum(${spending.usd}), 0)`,
      estimatedUsd: sql<number>`coalesce(sum(${spending.estimatedUsd}), 0)`,
      unpriced: sql<number>`coalesce(sum(${spending.unpricedCalls}), 0)`,
    })
    .from(spending)
    .where(and(eq(spending.orgId, org), gte(spending.from, from), lt(spending.from, until)))
    .get();
  return row ?? { usd: 0, estimatedUsd: 0, unpriced: 0 };
}

/** What active runs have reserved but not spent. For ended runs, `reservedUsd` is null. `ofRuns`: only what these runs have reserved. */
export function reservedBy(ctx: Context, org: string, ofRuns?: SQL): { usd: number; runs: number } {
  const row = ctx.db
    .select({
      runs: sql<number>`count(*)`,
      usd: sql<number>`coalesce(sum(max(0, ${runs.reservedUsd} - (select coalesce(sum(${countedUsd}), 0) from ${sessionEvents}
          where ${sessionEvents.runId} = ${runs.id} and ${sessionEvents.attempt} = ${runs.attempt} and ${sessionEvents.type} = 'usage'))), 0)`,
    })
    .from(runs)
    .where(and(eq(runs.orgId, org), isNotNull(runs.reservedUsd), ofRuns))
    .get();
  return row ?? { usd: 0, runs: 0 };
}

/** The lower of two limits. null: there is no limit. */
export const lowerLimit = (one: number | null, other: number | null) =>
  one === null || other === null ? (one ?? other) : Math.min(one, other);
