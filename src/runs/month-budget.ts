import { openReserves, type SharedBudget } from "../agents/gateway/reserves.ts";
import { type Context, perContext } from "../context.ts";
import {
  currentMonthOf,
  findOrgBudget,
  listOtherBudgets,
  type MonthBudget,
  otherBudgetsOfPrompt,
  ownerOf,
  spentUsdOf,
} from "./budgets.ts";

const budgetsById = perContext(() => new Map<string, SharedBudget>());

/**
 * The monthly budgets that all model calls of a prompt's runs share, whether by agents here, by agents on workers or by judges. The budget of the
 * organization comes first, and may be set later. Without a `promptId`, it is the only one. A cost counts once its call has ended, even before it is
 * stored.
 */
export function sharedBudgetsOf(ctx: Context, org: string, promptId: string | null): SharedBudget[] {
  const sharedById = budgetsById(ctx);
  const budgetOf = (id: string, limitName: string, find: () => MonthBudget | undefined) => {
    const shared = sharedById.get(id) ?? createSharedBudget(ctx, org, limitName, find);
    sharedById.set(id, shared);
    return shared;
  };
  return [
    budgetOf(org, "month_cost", () => findOrgBudget(ctx, org) ?? undefined),
    ...(promptId === null ? [] : otherBudgetsOfPrompt(ctx, org, promptId)).map(({ id, of }) =>
      budgetOf(id, `${of}_month_cost`, () => listOtherBudgets(ctx, org).find((each) => each.id === id)),
    ),
  ];
}

function createSharedBudget(
  ctx: Context,
  org: string,
  limitName: string,
  find: () => MonthBudget | undefined,
): SharedBudget {
  /** The month of the last call and its spending, including spending that has not been stored yet; null: unknown. */
  let spending: { from: number; usd: number } | null = null;
  return {
    limit: limitName,
    read() {
      const budget = find();
      if (!budget) {
        spending = null;
        return null;
      }
      const month = currentMonthOf(ctx, org);
      const storedUsd = spentUsdOf(ctx, org, budget, month);
      const countedUsd = spending?.from === month.from ? spending.usd : 0;
      // Costs are counted first and stored soon afterwards, so the higher sum includes the lower one.
      spending = { from: month.from, usd: Math.max(countedUsd, storedUsd) };
      return { owner: ownerOf(budget), maxUsd: budget.maxUsd, spentUsd: spending.usd };
    },
    count(usd) {
      if (spending) spending.usd += usd;
    },
    // What calls in progress may still use of the budget.
    reserves: openReserves(),
  };
}
