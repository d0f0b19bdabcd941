import { and, desc, eq, isNotNull, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { countTimes } from "../cron.ts";
import { bound, literal, statement } from "../db/prepared.ts";
import { prompts } from "../db/tables/prompts.ts";
import { runs } from "../db/tables/runs.ts";
import { AppError } from "../errors.ts";
import { agentsForRun } from "../prompts/prompt-check.ts";
import { mean } from "../stats/estimates.ts";
import { round } from "../stats/repeats.ts";
import type { Forecast } from "./schema.ts";

/** Number of recent runs of a prompt and agent that a forecast uses. */
const maxRuns = 20;

const lastCosts = statement((db) =>
  db
    .select({ usd: sql<number>`${runs.spentUsd}` })
    .from(runs)
    .where(
      and(
        eq(runs.orgId, bound("org")),
        eq(runs.promptId, bound("promptId")),
        eq(runs.agent, bound("agent")),
        sql`${runs.completedAt} is not null and ${runs.startedAt} is not null and ${runs.spentUsd} is not null`,
      ),
    )
    .orderBy(desc(runs.id))
    .limit(literal(maxRuns)),
);

/** What scheduled runs will cost until the end of the month. It is estimated from the cost of earlier runs of their prompt and agent. */
export function getForecast(
  ctx: Context,
  org: OrgId,
  { until, timeZone, spentUsd }: { until: number; timeZone: string; spentUsd: number },
): Forecast {
  const scheduled = ctx.db
    .select()
    .from(prompts)
    .where(and(eq(prompts.orgId, org), eq(prompts.status, "active"), isNotNull(prompts.nextEvaluationAt)))
    .all();
  const sum = { low: 0, expected: 0, high: 0, evaluations: 0, runs: 0, unknownRuns: 0 };
  /** Cron expressions mean the same for every prompt, so the times of each expression are counted once. */
  const countsByTimes = new Map<string, number>();
  for (const prompt of scheduled) {
    const { id, frequency, nextEvaluationAt } = prompt;
    if (frequency === null || nextEvaluationAt === null || nextEvaluationAt >= until) continue;
    const times = `${frequency} ${nextEvaluationAt}`;
    const evaluations =
      countsByTimes.get(times) ?? 1 + countTimes({ frequency, id, timeZone }, nextEvaluationAt, until);
    countsByTimes.set(times, evaluations);
    sum.evaluations += evaluations;
    const runsOfAgent = evaluations * (prompt.runsPerEval ?? 1);
    for (const { agent, model } of findAgents(ctx, org, prompt)) {
      const costs = lastCosts(ctx.db)
        .all({ org, promptId: id, agent })
        .map(({ usd }) => usd);
      // Without a model, a run costs nothing.
      if (costs.length === 0 && model === null) costs.push(0);
      sum.runs += runsOfAgent;
      if (costs.length === 0) {
        sum.unknownRuns += runsOfAgent;
        continue;
      }
      sum.low += runsOfAgent * Math.min(...costs);
      sum.expected += runsOfAgent * mean(costs);
      sum.high += runsOfAgent * Math.max(...costs);
    }
  }
  const { low, expected, high, ...counts } = sum;
  const rangeFrom = (usd: number) => ({
    low: round(usd + low, 4),
    expected: round(usd + expected, 4),
    high: round(usd + high, 4),
  });
  return { scheduledUsd: rangeFrom(0), monthUsd: rangeFrom(spentUsd), ...counts };
}

/** The agents of a prompt. If they can't be used at the moment, the list is empty, because its evaluations will fail. */
function findAgents(ctx: Context, org: OrgId, prompt: Parameters<typeof agentsForRun>[2]) {
  try {
    return agentsForRun(ctx, org, prompt, {});
  } catch (error) {
    if (error instanceof AppError) return [];
    throw error;
  }
}
