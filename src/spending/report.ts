import { and, desc, eq, inArray, min, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { createdWithin, timeZoneOf } from "../db/rows.ts";
import { prompts } from "../db/tables/prompts.ts";
import { runs } from "../db/tables/runs.ts";
import { spending } from "../db/tables/spending.ts";
import { titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import { quarterMs } from "../runs/paid-calls.ts";
import { getSpending, type Month, monthAt, spentWithin } from "../runs/spending.ts";
import { toIso } from "../schema.ts";
import { round } from "../stats/repeats.ts";
import { getBreakdown } from "./breakdown.ts";
import { listBudgets } from "./budgets.ts";
import { getForecast } from "./forecast.ts";
import type { SpendingReport } from "./schema.ts";

const maxFailed = 10;

/** When the first model call of an organization was counted, epoch ms; null: none was. */
export const findFirstSpending = (ctx: Context, org: OrgId): number | null =>
  ctx.db
    .select({ at: min(spending.from) })
    .from(spending)
    .where(eq(spending.orgId, org))
    .get()?.at ?? null;

/** What an organization spent in a month, and what for. `monthText`: such as 2026-11; default: the current month. */
export function getSpendingReport(ctx: Context, org: OrgId, monthText?: string): SpendingReport {
  const timeZone = timeZoneOf(ctx.db, org);
  const current = monthAt(timeZone, ctx.now());
  // Noon of the 15th is in the same month in every time zone.
  const month = monthText === undefined ? current : monthAt(timeZone, Date.parse(`${monthText}-15T12:00:00Z`));
  const before = monthAt(timeZone, month.from - 1);
  const isCurrent = month.from === current.from;
  const spendingNow = getSpending(ctx, org);
  const sameTime = Math.min(before.until, before.from + (ctx.now() - month.from));
  const comparedUntil = isCurrent ? ceilQuarter(sameTime) : before.until;
  return {
    ...spendingNow,
    ...(!isCurrent && getPastSpending(ctx, org, month)),
    previous: {
      from: toIso(before.from),
      spentUsd: round(spentWithin(ctx, org, before).usd, 6),
      sameTimeUsd: round(spentWithin(ctx, org, { from: before.from, until: comparedUntil }).usd, 6),
    },
    breakdown: getBreakdown(ctx, org, month, before, timeZone),
    failedRuns: getFailedRuns(ctx, org, month),
    forecast: isCurrent
      ? getForecast(ctx, org, { until: month.until, timeZone, spentUsd: spendingNow.spentUsd })
      : null,
    budgets: listBudgets(ctx, org),
  };
}

/** The fields of a past month that differ from the current month. */
function getPastSpending(ctx: Context, org: OrgId, month: Month) {
  const { usd, estimatedUsd, unpriced } = spentWithin(ctx, org, month);
  return {
    from: toIso(month.from),
    until: toIso(month.until),
    spentUsd: round(usd, 6),
    estimatedUsd: round(estimatedUsd, 6),
    expectedUsd: null,
    reservedUsd: 0,
    unpricedCalls: unpriced,
  };
}

/** The end of the quarter of an hour that contains a time, because costs are stored per quarter. */
const ceilQuarter = (at: number) => Math.ceil(at / quarterMs) * quarterMs;

/** The money spent on failed runs of a month. */
function getFailedRuns({ db }: Context, org: OrgId, { from, until }: Month): SpendingReport["failedRuns"] {
  const where = and(
    eq(runs.orgId, org),
    createdWithin(runs.id, [from, until]),
    // The same condition as in the partial index.
    sql`${runs.status} = 'failed' and ${runs.spentUsd} > 0`,
  );
  const total = db
    .select({ runs: sql<number>`count(*)`, usd: sql<number>`coalesce(sum(${runs.spentUsd}), 0)` })
    .from(runs)
    .where(where)
    .get() ?? { runs: 0, usd: 0 };
  const ids = db
    .select({ id: runs.id })
    .from(runs)
    .where(where)
    .orderBy(desc(runs.spentUsd), desc(runs.id))
    .limit(maxFailed)
    .all()
    .map(({ id }) => id);
  const rows = db
    .select({ run: runs, title: prompts.title, text: titleText })
    .from(runs)
    .innerJoin(prompts, eq(prompts.id, runs.promptId))
    .where(and(eq(runs.orgId, org), inArray(runs.id, ids)))
    .all();
  return {
    runs: total.runs,
    spentUsd: round(total.usd, 6),
    mostExpensive: rows
      .sort((a, b) => ids.indexOf(a.run.id) - ids.indexOf(b.run.id))
      .map(({ run: { id, promptId, agent, failureCause, spentUsd, createdAt }, ...prompt }) => ({
        runId: id,
        prompt: { id: promptId, title: titleOf(prompt) },
        agent,
        cause: failureCause ?? "",
        spentUsd: round(spentUsd ?? 0, 6),
        createdAt: toIso(createdAt),
      })),
  };
}
