import { and, eq, gte, lt, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { spending, spendingDetails } from "../db/tables/spending.ts";
import { isWithin, periodSpansOf } from "../runs/paid-calls.ts";
import { type Month, spentWithin } from "../runs/spending.ts";

/** The columns by which spending is broken down. */
const categories = {
  promptId: spendingDetails.promptId,
  agent: spendingDetails.agent,
  model: spendingDetails.model,
  purpose: spendingDetails.purpose,
  trigger: spendingDetails.trigger,
  personId: spendingDetails.personId,
  keyId: spendingDetails.keyId,
};

export type Amount = { usd: number; estimatedUsd: number };

export type Detail = ReturnType<typeof readDetails>[number];

/** What a month cost, broken down by purpose. It is read from the whole days in UTC and the quarters of an hour at both ends. */
export function readDetails({ db }: Context, org: OrgId, month: Month) {
  return periodSpansOf(month).flatMap((span) =>
    db
      .select({
        ...categories,
        usd: sql<number>`sum(${spendingDetails.usd})`,
        estimatedUsd: sql<number>`sum(${spendingDetails.estimatedUsd})`,
      })
      .from(spendingDetails)
      .where(isWithin(org, span))
      .groupBy(...Object.values(categories))
      .all(),
  );
}

/** The spending of a month that belongs to no prompt: calls of models that proposed prompts. */
export function readRest(ctx: Context, org: OrgId, month: Month, details: Detail[]): Amount {
  const { usd, estimatedUsd } = spentWithin(ctx, org, month);
  const sumOf = (field: keyof Amount) => details.reduce((sum, detail) => sum + detail[field], 0);
  return { usd: usd - sumOf("usd"), estimatedUsd: estimatedUsd - sumOf("estimatedUsd") };
}

/** What a month cost per quarter of an hour, oldest first. */
export const readQuarterHours = ({ db }: Context, org: OrgId, { from, until }: Month) =>
  db
    .select({ from: spending.from, usd: spending.usd, estimatedUsd: spending.estimatedUsd })
    .from(spending)
    .where(and(eq(spending.orgId, org), gte(spending.from, from), lt(spending.from, until)))
    .orderBy(spending.from)
    .all();
