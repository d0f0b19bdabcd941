import { openReserves, type SharedBudget } from "../agents/gateway/reserves.ts";
import { type Context, perContext } from "../context.ts";
import { findMonth } from "./spending.ts";

const budgetsByOrg = perContext(() => new Map<string, SharedBudget>());

/**
 * The monthly budget of an organization, which all its calls share: of agents here and on workers, and of judges. Costs count from the end
 * of a call, before its event is stored.
 */
export function monthBudgetOf(ctx: Context, org: string): SharedBudget {
  const budgets = budgetsByOrg(ctx);
  const budget = budgets.get(org) ?? createMonthBudget(ctx, org);
  budgets.set(org, budget);
  return budget;
}

function createMonthBudget(ctx: Context, org: string): SharedBudget {
  /** The month of the last call, and its spending with what has not been stored yet; null: unknown. */
  let counted: { from: number; usd: number } | null = null;
  return {
    limit: "month_cost",
    read() {
      const month = findMonth(ctx, org);
      if (month === null) {
        counted = null;
        return null;
      }
      const { from, maxUsd, spentUsd } = month;
      if (from !== counted?.from) counted = { from, usd: spentUsd };
      counted.usd = Math.max(counted.usd, spentUsd);
      return { maxUsd, spentUsd: counted.usd };
    },
    count(usd) {
      if (counted) counted.usd += usd;
    },
    reserves: openReserves(),
  };
}
