import { and, eq, inArray, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { timeZoneOf } from "../db/rows.ts";
import { orgs } from "../db/tables/orgs.ts";
import { prompts } from "../db/tables/prompts.ts";
import { runs } from "../db/tables/runs.ts";
import { budgets, spendingDetails } from "../db/tables/spending.ts";
import { conflict } from "../errors.ts";
import { capitalize } from "../grading/text.ts";
import type { OrgLimits } from "../jobs/claim-order.ts";
import { hasTag } from "../prompts/lists.ts";
import { isWithin, periodSpansOf } from "./paid-calls.ts";
import { budgetOfRun, lowerLimit, type Month, monthAt, reservedBy, spentWithin } from "./spending.ts";

/** Amount reserved for judging a session, in USD. */
const judgeUsd = 0.25;

/** What the runs of a prompt may spend per month: the budget of the organization, of the prompt, or of all prompts with a tag. */
export type MonthBudget = { id: string; maxUsd: number } & (
  | { of: "organization"; name: string }
  | { of: "prompt"; promptId: string; name: string }
  | { of: "tag"; tag: string; name: string }
);

/** The current month of a budget. `freeUsd`: the amount that is neither spent nor reserved. */
type BudgetState = { spentUsd: number; reservedUsd: number; reservedRuns: number; freeUsd: number };

const orgBudget = statement((db) =>
  db
    .select({ id: orgs.id, name: orgs.name, maxUsd: orgs.maxUsdAMonth })
    .from(orgs)
    .where(eq(orgs.id, sql.placeholder("org"))),
);

const otherBudgets = statement((db) =>
  db
    .select({
      id: budgets.id,
      promptId: budgets.promptId,
      tag: budgets.tag,
      title: prompts.title,
      maxUsd: budgets.maxUsdAMonth,
    })
    .from(budgets)
    .leftJoin(prompts, and(eq(prompts.orgId, budgets.orgId), eq(prompts.id, budgets.promptId)))
    .where(eq(budgets.orgId, sql.placeholder("org")))
    .orderBy(budgets.id),
);

/** The budget of an organization; null: it has none. */
export function findOrgBudget(ctx: Context, org: string): MonthBudget | null {
  const row = orgBudget(ctx.db).get({ org });
  return row?.maxUsd == null ? null : { id: row.id, of: "organization", name: row.name, maxUsd: row.maxUsd };
}

/** The budgets of prompts and tags of an organization, oldest first. */
export const listOtherBudgets = (ctx: Context, org: string): MonthBudget[] =>
  otherBudgets(ctx.db)
    .all({ org })
    .map(({ id, promptId, tag, title, maxUsd }) =>
      promptId === null
        ? { id, of: "tag", tag: tag ?? "", name: tag ?? "", maxUsd }
        : { id, of: "prompt", promptId, name: title ?? promptId, maxUsd },
    );

/** The budgets that the runs of a prompt must keep. `promptId` null: only the budget of the organization applies. */
export function budgetsOfPrompt(ctx: Context, org: string, promptId: string | null): MonthBudget[] {
  const ofOrg = findOrgBudget(ctx, org);
  const others = promptId === null ? [] : otherBudgetsOfPrompt(ctx, org, promptId);
  return ofOrg ? [ofOrg, ...others] : others;
}

/** The budgets of a prompt, and of its tags, that its runs must keep. */
export const otherBudgetsOfPrompt = (ctx: Context, org: string, promptId: string): MonthBudget[] =>
  listOtherBudgets(ctx, org).filter(
    (budget) =>
      (budget.of === "prompt" && budget.promptId === promptId) ||
      (budget.of === "tag" && hasPromptTag(ctx, org, promptId, budget.tag)),
  );

const hasPromptTag = ({ db }: Context, org: string, promptId: string, tag: string): boolean =>
  db
    .select({ id: prompts.id })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), eq(prompts.id, promptId), hasTag(tag)))
    .get() !== undefined;

/** The current month of an organization. */
export const currentMonthOf = (ctx: Context, org: string): Month => monthAt(timeZoneOf(ctx.db, org), ctx.now());

/** What has been spent and reserved of a budget in its month so far. */
export function stateOf(ctx: Context, org: string, budget: MonthBudget, month = currentMonthOf(ctx, org)): BudgetState {
  const promptIds = idsOf(ctx, org, budget);
  const spentUsd = spentUsdOf(ctx, org, budget, month);
  const ofPrompts = promptIds === null ? undefined : inArray(runs.promptId, promptIds);
  const { usd: reservedUsd, runs: reservedRuns } = reservedBy(ctx, org, ofPrompts);
  return { spentUsd, reservedUsd, reservedRuns, freeUsd: budget.maxUsd - spentUsd - reservedUsd };
}

/** What has been spent of a budget in a month, in USD. */
export function spentUsdOf(ctx: Context, org: string, budget: MonthBudget, month: Month): number {
  const promptIds = idsOf(ctx, org, budget);
  return promptIds === null ? spentWithin(ctx, org, month).usd : spentOnPrompts(ctx, org, promptIds, month);
}

/** The prompts of a budget; null: all. */
function idsOf({ db }: Context, org: string, budget: MonthBudget): string[] | null {
  if (budget.of === "organization") return null;
  if (budget.of === "prompt") return [budget.promptId];
  const taggedPrompts = db
    .select({ id: prompts.id })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), hasTag(budget.tag)));
  return taggedPrompts.all().map(({ id }) => id);
}

/** What runs of prompts cost in a month. Each prompt is read separately, because its rows are a range of the primary key. */
function spentOnPrompts({ db }: Context, org: string, promptIds: string[], month: Month): number {
  const spans = periodSpansOf(month);
  let usd = 0;
  for (const promptId of promptIds)
    for (const span of spans)
      usd +=
        db
          .select({ usd: sql<number>`coalesce(sum(${spendingDetails.usd}), 0)` })
          .from(spendingDetails)
          .where(and(eq(spendingDetails.promptId, promptId), isWithin(org, span)))
          .get()?.usd ?? 0;
  return usd;
}

/** The error message if a budget of a prompt, or of the organization, is spent; null: all budgets have something left. */
export function budgetObjection(ctx: Context, org: string, promptId: string | null): string | null {
  const spentBudget = budgetsOfPrompt(ctx, org, promptId)
    .map((budget) => ({ budget, ...stateOf(ctx, org, budget) }))
    .find(({ budget, spentUsd }) => spentUsd >= budget.maxUsd);
  if (!spentBudget) return null;
  const { budget, spentUsd } = spentBudget;
  const until = new Date(currentMonthOf(ctx, org).until).toLocaleDateString("en-US", {
    timeZone: timeZoneOf(ctx.db, org),
    day: "numeric",
    month: "long",
  });
  const raiseCommand =
    budget.of === "organization"
      ? `evald org set ${JSON.stringify(budget.name)} --max-usd-a-month`
      : `evald spending budget --${budget.of} ${JSON.stringify(budget.name)} --max-usd`;
  return `${capitalize(ownerOf(budget))} has spent $${spentUsd.toFixed(2)} of its monthly budget of $${budget.maxUsd}. Raise the budget with ${raiseCommand}, or wait until ${until}.`;
}

/** The owner of a budget, in words. */
export const ownerOf = (budget: MonthBudget): string =>
  budget.of === "organization" ? "the organization" : `the ${budget.of} ${JSON.stringify(budget.name)}`;

/**
 * Throws conflict if a budget of the prompt is spent, because the run would only fail. `promptId` null: only the budget of the organization counts.
 */
export function checkBudget(ctx: Context, org: string, promptId: string | null): void {
  const problem = budgetObjection(ctx, org, promptId);
  if (problem !== null) throw conflict(problem);
}

/** The limits of an organization. They are lower while active runs reserve the rest of its monthly budget. */
export function limitsWithinBudget(ctx: Context, org: string, limits: OrgLimits): OrgLimits {
  const budget = findOrgBudget(ctx, org);
  if (budget === null) return limits;
  const { freeUsd, reservedRuns, spentUsd } = stateOf(ctx, org, budget);
  // Its runs fail at once, so there is no need to wait.
  if (spentUsd >= budget.maxUsd) return limits;
  const maxUsdPerRun = lowerLimit(ctx.config.modelLimits.costUsd, maxUsdARunOf(ctx, org));
  const additionalRuns = maxUsdPerRun === null ? 0 : Math.max(0, Math.floor(freeUsd / (maxUsdPerRun + judgeUsd)));
  // If no run is active, one run may spend what is left.
  const atOnce = Math.max(1, reservedRuns + additionalRuns);
  return { ...limits, atOnce: limits.atOnce === null ? atOnce : Math.min(limits.atOnce, atOnce) };
}

const maxUsdARunOf = ({ db }: Context, org: string): number | null =>
  db.select({ run: orgs.maxUsdARun }).from(orgs).where(eq(orgs.id, org)).get()?.run ?? null;

/** Reserves the maximum cost of a run within all its budgets, in the transaction that starts it. */
export function reserveBudget(ctx: Context, tx: Tx, run: typeof runs.$inferSelect): void {
  if (run.model === null) return;
  const ofPrompt = budgetsOfPrompt(ctx, run.orgId, run.promptId);
  if (ofPrompt.length === 0) return;
  const freeUsd = Math.min(...ofPrompt.map((budget) => stateOf(ctx, run.orgId, budget).freeUsd));
  // null: the run has reserved nothing yet.
  const { agentUsd } = budgetOfRun(ctx, run.orgId, run.task.limits, null);
  const runMaxUsd = agentUsd === null ? freeUsd : Math.min(freeUsd, agentUsd + judgeUsd);
  const reservedUsd = Math.max(0, runMaxUsd);
  tx.update(runs).set({ reservedUsd }).where(eq(runs.id, run.id)).run();
}
