import { and, eq, isNull } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { budgets } from "../db/tables/spending.ts";
import { badRequest } from "../errors.ts";
import { listTags } from "../prompts/lists.ts";
import { getPromptRow, nameOfPrompt } from "../prompts/prompts.ts";
import { currentMonthOf, listOtherBudgets, stateOf } from "../runs/budgets.ts";
import { round } from "../stats/repeats.ts";
import type { Budget, BudgetInput } from "./schema.ts";

const maxBudgets = 100;

/** The budgets of prompts and tags, oldest first. Each has the amount spent of it this month. */
export function listBudgets(ctx: Context, org: OrgId): Budget[] {
  const month = currentMonthOf(ctx, org);
  return listOtherBudgets(ctx, org).map((budget) => {
    const { spentUsd, reservedUsd } = stateOf(ctx, org, budget, month);
    return {
      id: budget.id,
      promptId: budget.of === "prompt" ? budget.promptId : null,
      tag: budget.of === "tag" ? budget.tag : null,
      name: budget.name,
      maxUsdAMonth: budget.maxUsd,
      spentUsd: round(spentUsd, 6),
      reservedUsd: round(reservedUsd, 6),
    };
  });
}

/**
 * Sets the budget of a prompt or a tag; null removes it. It applies to runs that start from now on. Returns all budgets. Throws not_found for an
 * unknown prompt. Throws bad_request unless exactly one of `promptId` and `tag` is given, for a tag that no prompt has, and for too many budgets.
 */
export function setBudget(ctx: Context, org: OrgId, { promptId, tag, maxUsdAMonth }: BudgetInput): Budget[] {
  if ((promptId === undefined) === (tag === undefined)) throw badRequest("Pass exactly one of promptId and tag.");
  const prompt = promptId === undefined ? null : getPromptRow(ctx, org, promptId);
  const subject = { promptId: prompt?.id ?? null, tag: tag ?? null };
  const whereBudget = and(
    eq(budgets.orgId, org),
    subject.promptId === null ? isNull(budgets.promptId) : eq(budgets.promptId, subject.promptId),
    subject.tag === null ? isNull(budgets.tag) : eq(budgets.tag, subject.tag),
  );
  if (maxUsdAMonth !== null && tag !== undefined && !listTags(ctx, org).includes(tag))
    throw badRequest(`Invalid tag: no prompt has the tag ${JSON.stringify(tag)}.`);
  transaction(ctx.db, (tx) => {
    const before = tx.select({ maxUsdAMonth: budgets.maxUsdAMonth }).from(budgets).where(whereBudget).get();
    if (maxUsdAMonth === null) tx.delete(budgets).where(whereBudget).run();
    else if (before) tx.update(budgets).set({ maxUsdAMonth }).where(whereBudget).run();
    else {
      if (listOtherBudgets(ctx, org).length >= maxBudgets)
        throw badRequest(`An organization has at most ${maxBudgets} budgets of prompts and tags.`);
      const row = { id: ctx.newId(ctx.now()), orgId: org, ...subject, maxUsdAMonth };
      tx.insert(budgets).values(row).run();
    }
    const target = { id: prompt?.id, name: prompt ? nameOfPrompt(prompt) : tag };
    recordAudit(ctx, org, "budget.changed", target, changesOf(before ?? {}, { maxUsdAMonth }));
  });
  return listBudgets(ctx, org);
}
