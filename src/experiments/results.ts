import { and, asc, count, eq, sql } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import { alpha } from "../comparisons/evidence.ts";
import type { Context } from "../context.ts";
import { experimentRuns, type experiments, type Treatment } from "../db/tables/experiments.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { costOfRuns } from "../runs/spending.ts";
import { aaRate, type NullBlock } from "../stats/aa-rate.ts";
import { goalResultOf, isInfraFailure, round, roundP } from "../stats/repeats.ts";
import { analyzeExperiment, type ExperimentAnalysis } from "./analysis.ts";
import { findEqualArm } from "./design.ts";
import type { Experiment, ExperimentRun } from "./schema.ts";

export type ExperimentRow = typeof experiments.$inferSelect;

/** Whether a row belongs to an experiment. */
export const ofExperiment = ({ id, orgId }: Pick<ExperimentRow, "id" | "orgId">) =>
  and(eq(experimentRuns.orgId, orgId), eq(experimentRuns.experimentId, id));

/** The number of requested runs so far, and how many of them have ended. */
export function progressOf(
  { db }: Context,
  row: Pick<ExperimentRow, "id" | "orgId" | "status">,
): Experiment["progress"] {
  const requested = db.select({ n: count() }).from(experimentRuns).where(ofExperiment(row)).get()?.n ?? 0;
  // Looking at each run takes long. All runs of a completed experiment have ended.
  if (row.status === "completed") return { ended: requested, of: requested };
  const ended = db
    .select({ n: count(runs.completedAt) })
    .from(experimentRuns)
    .innerJoin(runs, eq(runs.id, experimentRuns.runId))
    .where(ofExperiment(row))
    .get();
  return { ended: ended?.n ?? 0, of: requested };
}

/** What all its runs cost, with estimates, in USD. */
export const costOf = ({ db }: Context, row: ExperimentRow): number =>
  costOfRuns(db, db.select({ id: experimentRuns.runId }).from(experimentRuns).where(ofExperiment(row)));

/** The runs of an experiment that have ended, in the order in which they were requested. */
export function listEndedRuns({ db }: Context, row: ExperimentRow): ExperimentRun[] {
  const { block, arm, treatment } = experimentRuns;
  const { id: runId, promptId, agent, failureCause } = runs;
  const { slug, outcome, score, metrics } = reports;
  const seconds = sql<number | null>`json_extract(${metrics}, '$.timeSeconds')`;
  const costUsd = sql<number | null>`json_extract(${metrics}, '$.costUsd')`;
  const ofReport = { slug, outcome, score, seconds, costUsd };
  return db
    .select({ runId, promptId, block, arm, treatment, agent, failureCause, ...ofReport })
    .from(experimentRuns)
    .innerJoin(runs, eq(runs.id, experimentRuns.runId))
    .leftJoin(reports, and(eq(reports.runId, runs.id), sql`${reports.status} <> 'archived'`))
    .where(and(ofExperiment(row), sql`${runs.completedAt} is not null`))
    .orderBy(asc(runs.id))
    .all()
    .map(({ treatment, failureCause, outcome, ...run }) => {
      const { promptId, score, seconds, costUsd } = run;
      const report = outcome === null ? null : { outcome, score, seconds, costUsd };
      const goal = goalResultOf({ failureCause, report });
      const hasFailed = isInfraFailure({ failureCause }) || (report === null && goal === null);
      // `met` names another arm whose treatment it used.
      const contamination = typeof treatment?.met === "string" ? "contaminated" : null;
      return {
        ...run,
        success: goal === null || goal === "unclear" ? null : goal === "met",
        excluded: hasFailed ? "failed" : contamination,
        offered: treatment?.offered ?? null,
        used: treatment?.used ?? null,
        shouldTrigger: labelOf(row, promptId),
        triggered: hasTriggered(row, treatment),
      };
    });
}

/** Whether a prompt should make an agent use the skill or MCP server of an experiment; null: it has no label. */
export function labelOf({ triggering }: ExperimentRow, promptId: string): boolean | null {
  if (triggering?.should.includes(promptId)) return true;
  return triggering?.shouldNot.includes(promptId) ? false : null;
}

/** Whether a run used the labeled skill or MCP server; null: unknown, or prompts have no labels. */
function hasTriggered({ triggering }: ExperimentRow, treatment: Treatment | null): boolean | null {
  if (!triggering || !treatment?.triggered) return null;
  const { skills, mcpServers } = treatment.triggered;
  const names = [...skills, ...mcpServers];
  return triggering.of === null ? names.length > 0 : names.includes(triggering.of);
}

/** The result of the runs that have ended. Numbers are rounded once, here, so that they are the same wherever they are shown. */
export function analyzeRuns(ctx: Context, row: ExperimentRow): ExperimentAnalysis {
  const ended = listEndedRuns(ctx, row);
  const [base = "", ...others] = row.arms.map(({ name }) => name);
  const isDeterministic = areRuleBased(ended);
  // If no run varies, the analysis itself treats equal repeats as one.
  const runs = isDeterministic ? ended : withOneSuccess(ended);
  return rounded(analyzeExperiment({ base, arms: [base, ...others], seed: row.seed, isDeterministic }, runs));
}

/** Whether there are runs, and all of them by agents that always do the same. */
export const areRuleBased = (ended: ExperimentRun[]): boolean =>
  ended.length > 0 && ended.every(({ agent }) => isRuleBased(agent));

/** The runs with the success of a rule-based agent kept only in its first repeat of a prompt in an arm, because the other repeats are equal. */
function withOneSuccess(ended: ExperimentRun[]): ExperimentRun[] {
  const judgedCells = new Set<string>();
  return ended.map((run) => {
    if (!isRuleBased(run.agent) || run.excluded !== null || run.success === null) return run;
    const cell = `${run.promptId} ${run.arm}`;
    if (judgedCells.has(cell)) return { ...run, success: null };
    judgedCells.add(cell);
    return run;
  });
}

/** Runs per side of a gate, by default. */
export const gateRuns = 5;

/** How often a gate finds a change between two equal arms; null: the experiment has no equal arms. */
export function falseAlarmsOf(ctx: Context, row: ExperimentRow): Experiment["falseAlarms"] {
  if (findEqualArm(row.arms) < 0) return null;
  const design = { runs: gateRuns, level: alpha };
  const { gates, alarms, rate, excessP, smallestChange } = aaRate(nullBlocksOf(ctx, row), design);
  return rounded({ runsPerSide: gateRuns, gates, alarms, rate, excessP, smallestChange });
}

/** For each block, the scores of both arms, if the arms are equal. */
export function nullBlocksOf(ctx: Context, row: ExperimentRow): NullBlock[] {
  const [base, other] = row.arms.map(({ name }) => name);
  const scored = listEndedRuns(ctx, row).filter(({ excluded, score }) => excluded === null && score !== null);
  const scoresOf = (runs: typeof scored, arm: string | undefined) =>
    runs.filter((run) => run.arm === arm).flatMap(({ score }) => score ?? []);
  return [...Map.groupBy(scored, ({ promptId, block }) => `${promptId} ${block}`).values()]
    .map((runs) => ({ a: scoresOf(runs, base), b: scoresOf(runs, other) }))
    .filter(({ a, b }) => a.length > 0 && b.length > 0);
}

/** Rounds all numbers of a value to 4 decimals; probabilities keep at least one digit. */
function rounded<T>(value: T, key = ""): T {
  if (typeof value === "number") return (/^(p|adjustedP|excessP)$/.test(key) ? roundP(value) : round(value, 4)) as T;
  if (Array.isArray(value)) return value.map((each) => rounded(each)) as T;
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, rounded(each, name)])) as T;
}
