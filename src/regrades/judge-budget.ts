import { eq, sql } from "drizzle-orm";
import { priceOf } from "../agents/gateway/prices.ts";
import type { Context, OrgId } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import { regrades } from "../db/tables/reports.ts";
import { JobFailure } from "../jobs/handler.ts";
import type { Lease } from "../jobs/queue.ts";
import { getModel } from "../models/models.ts";
import type { RunAnnouncements } from "../runs/announcements.ts";
import { budgetObjection, getSpending, pay } from "../runs/spending.ts";
import type { RegradeRow } from "./regrade-row.ts";

type Parts = {
  commit: Commit;
  announceSpending: RunAnnouncements["announceSpending"];
};

/** Upper bounds of a judge's input and output. */
const dearest = { input: 130_000, output: 16_000, cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, reasoning: 0 };

export type JudgeBudget = ReturnType<typeof createJudgeBudget>;

/** What the judge of a regrade costs, and what it may still spend. */
export function createJudgeBudget(ctx: Context, { commit, announceSpending }: Parts) {
  const { now } = ctx;
  /** Spent by attempts of this process, in USD. */
  const spent = new Map<string, number>();
  const keyOf = ({ id, attempt }: Lease) => `${id} ${attempt}`;

  /** Counts costs immediately, whether or not the answer is usable. Resolves when they are stored. */
  function count(lease: Lease, { id, orgId }: RegradeRow, costUsd: number | null): Promise<void> {
    spent.set(keyOf(lease), (spent.get(keyOf(lease)) ?? 0) + (costUsd ?? 0));
    const set =
      costUsd === null
        ? { unpriced: sql`${regrades.unpriced} + 1` }
        : { spentUsd: sql`${regrades.spentUsd} + ${costUsd}` };
    return commit((tx) => {
      tx.update(regrades).set(set).where(eq(regrades.id, id)).run();
      pay(tx, orgId, now(), costUsd);
      announceSpending(tx, orgId);
    });
  }

  /**
   * The remaining budget of the judge, by the request and the organization's month. A call of unknown cost counts as
   * the most expensive. Throws a JobFailure if nothing is left.
   */
  function leftUsd({ orgId, maxUsd, spentUsd, unpriced, judge }: RegradeRow): number {
    const org = orgId as OrgId;
    const month = getSpending(ctx, org);
    const free = month.maxUsdAMonth === null ? null : month.maxUsdAMonth - month.spentUsd - month.reservedUsd;
    if (free !== null && free <= 0)
      throw new JobFailure(
        {
          cause: "budget",
          detail: budgetObjection(ctx, org) ?? "The rest of the organization's monthly budget is reserved for runs.",
        },
        "never",
      );
    const worst = unpriced === 0 ? 0 : priceOf(dearest, null, getModel(ctx, org, judge ?? ""));
    const left = (maxUsd ?? 0) - spentUsd - unpriced * (worst ?? Number.POSITIVE_INFINITY);
    if (left > 0) return Math.min(left, free ?? left);
    const unknown = unpriced === 0 ? "" : `, plus ${unpriced} calls of unknown cost`;
    throw new JobFailure(
      {
        cause: "budget",
        detail: `the judge has cost $${spentUsd.toFixed(4)}${unknown} of at most $${maxUsd}; to continue, request the regrade again with a higher maxUsd`,
      },
      "never",
    );
  }

  return {
    count,
    leftUsd,
    /** Spent by an attempt in this process, in USD; undefined if nothing. */
    spentBy: (lease: Lease): number | undefined => spent.get(keyOf(lease)),
  };
}
