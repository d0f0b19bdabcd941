import { and, desc, eq } from "drizzle-orm";
import { listAgentChoices } from "../agents/choice.ts";
import { priceOf } from "../agents/gateway/prices.ts";
import { decideLimits } from "../config/limits.ts";
import { parseModelId } from "../config/model-settings.ts";
import type { Context, OrgId } from "../context.ts";
import type { PromptAgent } from "../db/tables/prompts.ts";
import { reports } from "../db/tables/reports.ts";
import { type RunTask, runs } from "../db/tables/runs.ts";
import { AppError } from "../errors.ts";
import { capitalize } from "../grading/text.ts";
import { getModel } from "../models/models.ts";
import { agentsForRun, type PromptRow } from "../prompts/prompt-check.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { median } from "../stats/estimates.ts";
import type { AgentEstimate, Estimate } from "./estimate-schema.ts";
import { budgetOfRun } from "./spending.ts";

/** Number of recent runs that an estimate uses. */
const maxRuns = 20;
/** How many runs are read for it. Some of them may have used another model. */
const maxRunsRead = 100;

/**
 * Estimates duration and cost of a run from earlier runs with the same agent and model, else from its limits. `choice`: the agent and model to use in
 * place of the prompt's. Throws not_found, and bad_request for a choice that cannot be used.
 */
export function getEstimate(ctx: Context, org: OrgId, promptId: string, choice: RunTask["chosen"] = {}): Estimate {
  return estimateRun(ctx, org, getPromptRow(ctx, org, promptId), choice);
}

/** The same for a prompt that need not be stored. */
export function estimateRun(ctx: Context, org: OrgId, prompt: PromptRow, choice: RunTask["chosen"] = {}): Estimate {
  const [first, ...others] = agentsForRun(ctx, org, prompt, choice);
  return {
    runs: prompt.runsPerEval ?? 1,
    ...estimateAgent(ctx, org, prompt, first),
    others: others.map((agent) => estimateAgent(ctx, org, prompt, agent)),
  };
}

function estimateAgent(ctx: Context, org: OrgId, prompt: PromptRow, agent: PromptAgent): AgentEstimate {
  const { firstRequestTokens = null } = listAgentChoices(ctx.agents).find(({ id }) => id === agent.agent) ?? {};
  const basics = { agent: agent.agent, model: agent.model, firstRequestTokens };
  const earlierRuns = listEarlierRuns(ctx, org, prompt.id, agent);
  const estimate =
    earlierRuns.length > 0
      ? { ...basics, ...estimateFromRuns(earlierRuns) }
      : estimateFromLimits(ctx, org, prompt, basics);
  // The vendor and the person have agreed on the cost of a login.
  return agent.options?.login ? { ...estimate, costUsd: null } : estimate;
}

function listEarlierRuns({ db }: Context, org: OrgId, promptId: string, { agent, model }: PromptAgent) {
  return db
    .select({
      model: runs.model,
      startedAt: runs.startedAt,
      completedAt: runs.completedAt,
      metrics: reports.metrics,
      judge: reports.judge,
    })
    .from(runs)
    .innerJoin(reports, eq(reports.runId, runs.id))
    .where(and(eq(runs.orgId, org), eq(runs.promptId, promptId), eq(runs.agent, agent)))
    .orderBy(desc(runs.id))
    .limit(maxRunsRead)
    .all()
    .filter((row) => isRequestedModel(row.model, model))
    .slice(0, maxRuns);
}

function estimateFromRuns(earlierRuns: ReturnType<typeof listEarlierRuns>) {
  const seconds = earlierRuns.map(({ startedAt, completedAt }) => ((completedAt ?? 0) - (startedAt ?? 0)) / 1000);
  const costs = earlierRuns.flatMap(({ metrics, judge }) =>
    metrics.costUsd === null || judge?.costUsd === null ? [] : metrics.costUsd + (judge?.costUsd ?? 0),
  );
  return {
    basis: "earlier runs" as const,
    of: earlierRuns.length,
    seconds: rangeOf(seconds),
    costUsd: costs.length === earlierRuns.length ? rangeOf(costs) : null,
  };
}

function estimateFromLimits(
  ctx: Context,
  org: OrgId,
  prompt: PromptRow,
  basics: { agent: string; model: string | null; firstRequestTokens: number | null },
): AgentEstimate {
  const { model, firstRequestTokens } = basics;
  const limits = decideLimits(prompt.limits, ctx.config);
  const { agentUsd } = budgetOfRun(ctx, org, prompt.limits, null);
  const high = model === null ? 0 : maxUsd(ctx, org, model, limits.model.tokens, agentUsd);
  const low =
    model === null || firstRequestTokens === null
      ? null
      : priceOfTokens(ctx, org, model, { input: firstRequestTokens });
  return {
    ...basics,
    basis: "limits",
    of: 0,
    seconds: { median: null, low: null, high: limits.wallClockMs / 1000 },
    costUsd:
      high === null ? null : { median: null, low: low === null ? null : round(Math.min(low, high)), high: round(high) },
  };
}

/** The maximum cost of a run by its limit of tokens, its model's price and its budget; null if the price is unknown. */
function maxUsd(ctx: Context, org: OrgId, model: string, tokens: number, budgetUsd: number | null) {
  const asInput = priceOfTokens(ctx, org, model, { input: tokens });
  const asOutput = priceOfTokens(ctx, org, model, { output: tokens });
  if (asInput === null || asOutput === null) return null;
  return Math.min(Math.max(asInput, asOutput), budgetUsd ?? Number.POSITIVE_INFINITY);
}

/** The price of tokens that are read (`input`) or written (`output`), in USD; null: unknown. */
function priceOfTokens(ctx: Context, org: OrgId, model: string, { input = 0, output = 0 }): number | null {
  try {
    const otherTokens = { cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, reasoning: 0 };
    return priceOf({ ...otherTokens, input, output }, null, getModel(ctx, org, model));
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}

/** Whether the model that answered is the requested one. Providers may append a date to its name. */
function isRequestedModel(answered: string | null, requested: string | null): boolean {
  if (answered === null || requested === null) return answered === requested;
  const name = parseModelId(requested)?.name ?? requested;
  return (
    answered === requested ||
    answered === name ||
    (answered.startsWith(`${name}-`) && /^\d/.test(answered.slice(name.length + 1)))
  );
}

const round = (value: number) => Math.round(value * 1e6) / 1e6;
const rangeOf = (values: number[]) => ({
  median: round(median(values) ?? 0),
  low: round(Math.min(...values)),
  high: round(Math.max(...values)),
});

/** An estimate in one line, for a person. */
export function describeEstimate({ others, ...first }: Estimate): string {
  if (others.length === 0) return describeAgent(first);
  return [first, ...others].map((each) => `${agentName(each)}: ${describeAgent(each)}`).join(" ");
}

const agentName = ({ agent, model }: AgentEstimate): string => (model === null ? agent : `${agent} with ${model}`);

/** "At most 30 min. Free." or "About 1 s and $0.14 (at most 3 s and $0.21 in the last 20 runs)." */
function describeAgent({ model, of, seconds, costUsd }: AgentEstimate): string {
  const usd = (value: number) => `$${value.toFixed(value < 0.1 ? 4 : 2)}`;
  const time = (value: number) => (value < 120 ? `${Math.round(value)} s` : `${Math.round(value / 60)} min`);
  const isFree = model === null || costUsd?.high === 0;
  const price = isFree ? null : costUsd;
  const timeAndPrice = (seconds: number, usdOrNull: number | null) =>
    usdOrNull === null ? time(seconds) : `${time(seconds)} and ${usd(usdOrNull)}`;
  const whyNoPrice = isFree ? " Free." : " Cost unknown.";
  const end = price === null ? whyNoPrice : "";
  const highest = `at most ${timeAndPrice(seconds.high, price?.high ?? null)}`;
  if (seconds.median === null) {
    const lowest = price?.low == null ? "" : `, at least ${usd(price.low)}`;
    return `${capitalize(highest)}${lowest}.${end}`;
  }
  const usual = timeAndPrice(seconds.median, price?.median ?? null);
  return `About ${usual} (${highest} in the last ${of === 1 ? "run" : `${of} runs`}).${end}`;
}
