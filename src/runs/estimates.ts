import { and, desc, eq } from "drizzle-orm";
import { decideLimits } from "../config/limits.ts";
import { parseModelId } from "../config/model-settings.ts";
import { type RunTask, reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { AppError } from "../errors.ts";
import type { Models } from "../models/models.ts";
import type { Prompts } from "../prompts/prompts.ts";
import { median } from "../stats/estimates.ts";
import type { Estimate } from "./schema.ts";
import type { Money } from "./spending.ts";

/** Number of recent runs that an estimate uses. */
const mostRuns = 20;

type Parts = { prompts: Prompts; models: Pick<Models, "getModel">; money: Pick<Money, "grantOf"> };

export type Estimates = ReturnType<typeof createEstimates>;

/** Estimates duration and cost of a run from earlier runs with the same agent and model, else from its limits. */
export function createEstimates({ db, config }: Pick<Deps, "db" | "config">, { prompts, models, money }: Parts) {
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

  /** The maximum cost of a run by its limits and its model's price; null if the price is unknown or nothing limits it. */
  async function mostUsd(org: OrgId, model: string, limits: ReturnType<typeof decideLimits>, capUsd: number | null) {
    try {
      const { priceOf } = await import("../agents/gateway/prices.ts");
      const access = models.getModel(org, model);
      const { tokens } = limits.model;
      const none = { cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, reasoning: 0 };
      const asInput = priceOf({ ...none, input: tokens, output: 0 }, null, access);
      const asOutput = priceOf({ ...none, input: 0, output: tokens }, null, access);
      if (asInput === null || asOutput === null) return null;
      return Math.min(Math.max(asInput, asOutput), capUsd ?? Number.POSITIVE_INFINITY);
    } catch (error) {
      if (error instanceof AppError) return null;
      throw error;
    }
  }

  return {
    /** `chosen`: in place of the prompt's agent and model. Throws not_found, and bad_request for a choice that cannot be used. */
    async getEstimate(org: OrgId, promptId: string, chosen: RunTask["chosen"] = {}): Promise<Estimate> {
      const prompt = prompts.getPromptRow(org, promptId);
      const { agent, model } = prompts.agentFor(org, prompt, chosen);
      const all = { runs: prompt.runsPerEval ?? 1, agent, model };
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
      const { agentUsd } = money.grantOf({ orgId: org, task: { limits: prompt.limits }, reservedUsd: null });
      const high = model === null ? 0 : await mostUsd(org, model, limits, agentUsd);
      return {
        ...all,
        basis: "limits",
        of: 0,
        seconds: { median: null, low: null, high: limits.wallClockMs / 1000 },
        costUsd: high === null ? null : { median: null, low: null, high: round(high) },
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
export function describeEstimate({ basis, of, seconds, costUsd }: Estimate): string {
  const usd = (value: number) => `$${value.toFixed(value < 0.1 ? 4 : 2)}`;
  const minutes = (value: number) => (value < 120 ? `${Math.round(value)} s` : `${Math.round(value / 60)} min`);
  const format = (range: Estimate["seconds"], unit: (value: number) => string) =>
    range.median === null
      ? `at most ${unit(range.high)}`
      : `about ${unit(range.median)} (${unit(range.low ?? 0)} to ${unit(range.high)})`;
  const cost =
    costUsd === null ? "at an unknown cost" : costUsd.high === 0 ? "at no cost" : `for ${format(costUsd, usd)}`;
  const why = basis === "limits" ? "based on its limits" : `based on ${of} earlier ${of === 1 ? "run" : "runs"}`;
  return `a run takes ${format(seconds, minutes)}, ${cost}, ${why}`;
}
