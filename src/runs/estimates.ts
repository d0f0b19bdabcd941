import { and, desc, eq } from "drizzle-orm";
import { decideLimits } from "../config/limits.ts";
import { parseModelId } from "../config/model-settings.ts";
import type { Context, OrgId } from "../context.ts";
import { reports } from "../db/tables/reports.ts";
import { type RunTask, runs } from "../db/tables/runs.ts";
import { AppError } from "../errors.ts";
import { getModel } from "../models/models.ts";
import type { PromptRow } from "../prompts/prompt-check.ts";
import type { Prompts } from "../prompts/prompts.ts";
import { median } from "../stats/estimates.ts";
import type { AgentEstimate, Estimate } from "./estimate-schema.ts";
import { budgetOfRun } from "./spending.ts";

/** Number of recent runs that an estimate uses. */
const mostRuns = 20;

type Parts = { prompts: Prompts };

export type Estimates = ReturnType<typeof createEstimates>;

/** Estimates duration and cost of a run from earlier runs with the same agent and model, else from its limits. */
export function createEstimates(ctx: Context, { prompts }: Parts) {
  const { db, config } = ctx;

  function listEarlier(org: OrgId, promptId: string, agent: string, model: string | null) {
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
      .limit(5 * mostRuns)
      .all()
      .filter((row) => isModel(row.model, model))
      .slice(0, mostRuns);
  }

  /** The price of tokens that are read (`input`) or written (`output`), in USD; null: unknown. */
  async function priceOfTokens(org: OrgId, model: string, { input = 0, output = 0 }): Promise<number | null> {
    try {
      const { priceOf } = await import("../agents/gateway/prices.ts");
      const none = { cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, reasoning: 0 };
      return priceOf({ ...none, input, output }, null, getModel(ctx, org, model));
    } catch (error) {
      if (error instanceof AppError) return null;
      throw error;
    }
  }

  /** The maximum cost of a run by its limits and its model's price; null if the price is unknown or nothing limits it. */
  async function mostUsd(org: OrgId, model: string, limits: ReturnType<typeof decideLimits>, capUsd: number | null) {
    const { tokens } = limits.model;
    const asInput = await priceOfTokens(org, model, { input: tokens });
    const asOutput = await priceOfTokens(org, model, { output: tokens });
    if (asInput === null || asOutput === null) return null;
    return Math.min(Math.max(asInput, asOutput), capUsd ?? Number.POSITIVE_INFINITY);
  }

  const sizeOf = (agent: string) => prompts.listAgents().find(({ id }) => id === agent)?.firstRequestTokens ?? null;

  async function estimateOf(
    org: OrgId,
    prompt: PromptRow,
    { agent, model }: { agent: string; model: string | null },
  ): Promise<AgentEstimate> {
    const all = { agent, model, firstRequestTokens: sizeOf(agent) };
    const earlier = listEarlier(org, prompt.id, agent, model);
    if (earlier.length > 0) {
      const seconds = earlier.map(({ startedAt, completedAt }) => ((completedAt ?? 0) - (startedAt ?? 0)) / 1000);
      const costs = earlier.flatMap(({ metrics, judge }) =>
        metrics.costUsd === null || judge?.costUsd === null ? [] : metrics.costUsd + (judge?.costUsd ?? 0),
      );
      return {
        ...all,
        basis: "earlier runs",
        of: earlier.length,
        seconds: rangeOf(seconds),
        costUsd: costs.length === earlier.length ? rangeOf(costs) : null,
      };
    }
    const limits = decideLimits(prompt.limits, config);
    const { agentUsd } = budgetOfRun(ctx, { orgId: org, task: { limits: prompt.limits }, reservedUsd: null });
    const high = model === null ? 0 : await mostUsd(org, model, limits, agentUsd);
    const low =
      model === null || all.firstRequestTokens === null
        ? null
        : await priceOfTokens(org, model, { input: all.firstRequestTokens });
    return {
      ...all,
      basis: "limits",
      of: 0,
      seconds: { median: null, low: null, high: limits.wallClockMs / 1000 },
      costUsd:
        high === null
          ? null
          : { median: null, low: low === null ? null : round(Math.min(low, high)), high: round(high) },
    };
  }

  return {
    /** `chosen`: in place of the prompt's agent and model. Throws not_found, and bad_request for a choice that cannot be used. */
    async getEstimate(org: OrgId, promptId: string, chosen: RunTask["chosen"] = {}): Promise<Estimate> {
      const prompt = prompts.getPromptRow(org, promptId);
      const [first, ...others] = prompts.agentsFor(org, prompt, chosen);
      return {
        runs: prompt.runsPerEval ?? 1,
        ...(await estimateOf(org, prompt, first)),
        others: await Promise.all(others.map((each) => estimateOf(org, prompt, each))),
      };
    },
  };
}

/** Whether the model that answered is the requested one; providers may append a date. */
function isModel(answered: string | null, asked: string | null): boolean {
  if (answered === null || asked === null) return answered === asked;
  const name = parseModelId(asked)?.name ?? asked;
  return (
    answered === asked ||
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
  return [first, ...others].map((each) => `${nameOf(each)}: ${describeAgent(each)}`).join("; ");
}

const nameOf = ({ agent, model }: AgentEstimate): string => (model === null ? agent : `${agent} with ${model}`);

function describeAgent({ basis, of, seconds, costUsd }: AgentEstimate): string {
  const usd = (value: number) => `$${value.toFixed(value < 0.1 ? 4 : 2)}`;
  const minutes = (value: number) => (value < 120 ? `${Math.round(value)} s` : `${Math.round(value / 60)} min`);

  const spread = (low: string, high: string) => (low === high ? "" : ` (${low} to ${high})`);
  const format = (range: Estimate["seconds"], unit: (value: number) => string) =>
    range.median === null
      ? `${range.low === null ? "" : `at least ${unit(range.low)} and `}at most ${unit(range.high)}`
      : `about ${unit(range.median)}${spread(unit(range.low ?? 0), unit(range.high))}`;
  const cost =
    costUsd === null
      ? ", at an unknown cost"
      : costUsd.high === 0
        ? ", at no cost"
        : ` and costs ${format(costUsd, usd)}`;
  const why = basis === "limits" ? "based on its limits" : `based on ${of} earlier ${of === 1 ? "run" : "runs"}`;
  return `a run takes ${format(seconds, minutes)}${cost}, ${why}`;
}
