import { openReserves, type SharedBudget } from "../agents/gateway/reserves.ts";
import { type Context, perContext } from "../context.ts";
import { getMonth } from "./spending.ts";

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
  let counted = { from: 0, usd: 0 };
  /** The current month, with what has not been stored yet. */
  const current = () => {
    const { from, spentUsd, maxUsd } = getMonth(ctx, org);
    if (from !== counted.from) counted = { from, usd: spentUsd };
    return { maxUsd, spentUsd: Math.max(counted.usd, spentUsd) };
  };
  return {
    limit: "month_cost",
    maxUsd: () => current().maxUsd,
    spentUsd: () => current().spentUsd,
    count(usd) {
      current();
      counted.usd += usd;
    },
    reserves: openReserves(),
  };
}
