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
 * The monthly budgets that the calls of a prompt's runs share with others: of agents here and on workers, and of judges. Costs count from the
 * end of a call, before its event is stored. That of the organization also counts if it is set later. `promptId` null: only that one.
 */
export function sharedBudgetsOf(ctx: Context, org: string, promptId: string | null): SharedBudget[] {
  const sharedById = budgetsById(ctx);
  const share = (id: string, limit: string, find: () => MonthBudget | undefined) => {
    const shared = sharedById.get(id) ?? createSharedBudget(ctx, org, limit, find);
    sharedById.set(id, shared);
    return shared;
  };
  return [
    share(org, "month_cost", () => findOrgBudget(ctx, org) ?? undefined),
    ...(promptId === null ? [] : otherBudgetsOfPrompt(ctx, org, promptId)).map(({ id, of }) =>
      share(id, `${of}_month_cost`, () => listOtherBudgets(ctx, org).find((each) => each.id === id)),
    ),
  ];
}

function createSharedBudget(
  ctx: Context,
  org: string,
  limit: string,
  find: () => MonthBudget | undefined,
): SharedBudget {
  /** The month of the last call, and its spending with what has not been stored yet; null: unknown. */
  let counted: { from: number; usd: number } | null = null;
  return {
    limit,
    read() {
      const budget = find();
      if (!budget) {
        counted = null;
        return null;
      }
      const month = currentMonthOf(ctx, org);
      const spentUsd = spentUsdOf(ctx, org, budget, month);
      if (month.from !== counted?.from) counted = { from: month.from, usd: spentUsd };
      counted.usd = Math.max(counted.usd, spentUsd);
      return { owner: ownerOf(budget), maxUsd: budget.maxUsd, spentUsd: counted.usd };
    },
    count(usd) {
      if (counted) counted.usd += usd;
    },
    reserves: openReserves(),
  };
}
