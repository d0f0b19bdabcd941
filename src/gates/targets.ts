import { and, asc, count, desc, eq, inArray, isNotNull, ne, sql } from "drizzle-orm";
import { toFailureReason } from "../agents/failure.ts";
import { type Comparison, compareEvals } from "../comparisons/compare.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import type { GateTarget, gates } from "../db/tables/gates.ts";
import { attempts, jobs } from "../db/tables/jobs.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import type { Scope } from "../grading/grade.ts";
import { comparedScope } from "../reports/differences.ts";
import type { ComparedRun } from "../reports/run-rows.ts";
import { addRuns } from "../runs/requests.ts";
import { type EvalResult, resultOf } from "../stats/repeats.ts";
import type { Gate } from "./schema.ts";
import { levelAt } from "./steps.ts";

export type GateRow = typeof gates.$inferSelect;

/** Maximum length of a failure detail. */
const maxReasonChars = 500;

/** The prompts of a gate, in the given order. */
export function targetsOf({
  promptId,
  headRequestId,
  baseRequestId,
  baseRunIds,
  model,
  others,
}: GateRow): GateTarget[] {
  return [{ promptId, headRequestId, baseRequestId, baseRunIds, model }, ...(others ?? [])];
}

/** The evaluations of the head. */
export const headsOf = (gate: GateRow): string[] => targetsOf(gate).map(({ headRequestId }) => headRequestId);

/** The evaluations of the base; none if the head is compared with a baseline. */
export const basesOf = (gate: GateRow): string[] => targetsOf(gate).flatMap(({ baseRequestId }) => baseRequestId ?? []);

/** An agent of the gate's prompts. `model`: as requested. */
export type GateAgentGroup = { agentIndex: number; agent: string; model: string | null };

/** Selects the runs of these evaluations of a gate. `group`: only the runs of one agent. */
const inEvals = ({ orgId }: GateRow, evalRequestIds: string[], group?: GateAgentGroup) =>
  and(
    eq(runs.orgId, orgId),
    inArray(runs.evalRequestId, evalRequestIds),
    group && eq(runs.agentIndex, group.agentIndex),
  );
const onBothSides = (gate: GateRow) => inEvals(gate, [...headsOf(gate), ...basesOf(gate)]);

/** The request behind the head's runs. */
export function requestOfGate({ db }: Context, gate: GateRow) {
  const { urlMap, templateArgs } = runs;
  const run = db
    .select({ urlMap, templateArgs })
    .from(runs)
    .where(inEvals(gate, headsOf(gate)))
    .get();
  if (!run) throw new Error(`The gate ${gate.id} has no run.`);
  return run;
}

/** The agents of the gate's prompts, in their order. Each agent is compared only with itself. */
export function listGateAgents({ db }: Context, gate: GateRow): GateAgentGroup[] {
  const rows = db
    .select({ agentIndex: runs.agentIndex, agent: runs.agent, task: runs.task })
    .from(runs)
    .where(inEvals(gate, [gate.headRequestId]))
    .orderBy(asc(runs.agentIndex), asc(runs.id))
    .all();
  const firstRuns = [...Map.groupBy(rows, ({ agentIndex }) => agentIndex).values()].flatMap(([first]) => first ?? []);
  // The model must be the requested one, and a finished run names the model that answered. With several agents, the task of each run names the
  // requested model.
  return firstRuns.map(({ agentIndex, agent, task }) => ({
    agentIndex,
    agent,
    model: firstRuns.length > 1 ? (task.chosen?.model ?? null) : gate.model,
  }));
}

/** The number of runs of both sides, and how many of them have ended. */
export function countGateRuns({ db }: Context, gate: GateRow): Gate["progress"] {
  const counts = db
    .select({ of: count(), ended: count(runs.completedAt) })
    .from(runs)
    .where(onBothSides(gate))
    .get();
  return { ended: counts?.ended ?? 0, of: counts?.of ?? 0 };
}

/** The cost of all attempts of all runs so far, in USD; null if any is unknown. */
export function costOfGate({ db }: Context, gate: GateRow): number | null {
  const subjects = db.select({ id: runs.id }).from(runs).where(onBothSides(gate));
  const jobsOfRuns = db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.kind, "run"), inArray(jobs.subject, subjects)));
  const cost = db
    .select({ n: count(), priced: count(attempts.costUsd), usd: sql<number>`coalesce(sum(${attempts.costUsd}), 0)` })
    .from(attempts)
    .where(and(inArray(attempts.jobId, jobsOfRuns), isNotNull(attempts.completedAt)))
    .get();
  return cost && cost.n === cost.priced ? cost.usd : null;
}

/** The number of a side's runs that ended without a report, and their most common cause; null: none did. */
export function lossesOf(
  { db }: Context,
  gate: GateRow,
  evalRequestIds: string[],
  group: GateAgentGroup,
): { n: number; reason: string | null } {
  const losses = db
    .select({ failureCause: runs.failureCause, failureDetail: runs.failureDetail, n: count() })
    .from(runs)
    .where(and(inEvals(gate, evalRequestIds, group), isNotNull(runs.failureCause)))
    .groupBy(runs.failureCause, runs.failureDetail)
    .orderBy(desc(count()), asc(runs.failureCause), asc(runs.failureDetail))
    .all();
  return {
    n: losses.reduce((sum, { n }) => sum + n, 0),
    reason: losses[0] ? (toFailureReason(losses[0])?.slice(0, maxReasonChars) ?? null) : null,
  };
}

/** The combined results of the head's runs with one agent. */
export function resultOfHead({ db }: Context, gate: GateRow, group: GateAgentGroup): EvalResult {
  const rows = db
    .select({
      failureCause: runs.failureCause,
      completedAt: runs.completedAt,
      report: {
        outcome: reports.outcome,
        score: reports.score,
        seconds: sql<number | null>`json_extract(${reports.metrics}, '$.timeSeconds')`,
        costUsd: sql<number | null>`json_extract(${reports.metrics}, '$.costUsd')`,
      },
    })
    .from(runs)
    .leftJoin(reports, and(eq(reports.runId, runs.id), ne(reports.status, "archived")))
    .where(inEvals(gate, headsOf(gate), group))
    .all();
  // A completed run has no report here if its report was archived. Such a run doesn't count.
  const endedRuns = rows.filter(({ completedAt, failureCause, report }) => completedAt && (failureCause || report));
  return resultOf(
    endedRuns.map(({ failureCause, report }) => ({
      failureCause,
      report: report?.outcome == null ? null : report,
    })),
    rows.filter(({ completedAt }) => completedAt === null).length,
  );
}

/** The scopes of the head's scores with one agent. */
export function listHeadScopes({ db }: Context, gate: GateRow, group: GateAgentGroup): Scope[] {
  const rows = db
    .selectDistinct({
      scope: reports.scope,
      judge: sql<string | null>`json_extract(${reports.methodology}, '$.judge')`,
    })
    .from(runs)
    .innerJoin(reports, and(eq(reports.runId, runs.id), ne(reports.status, "archived"), isNotNull(reports.score)))
    .where(inEvals(gate, headsOf(gate), group))
    .all();
  return [...new Set(rows.map(comparedScope))];
}

/**
 * Compares `done` runs per side of one of `agents` agents; null if there is no base. Several agents share the level, because one regression is enough
 * to fail.
 */
export function compareGate(
  ctx: Context,
  gate: GateRow,
  done: number,
  group: GateAgentGroup,
  agents: number,
): Comparison | null {
  const runIds = targetsOf(gate).flatMap(({ baseRunIds }) => baseRunIds ?? []);
  const base = { evalRequestIds: basesOf(gate), runIds };
  if (base.evalRequestIds.length + runIds.length === 0) return null;
  const level = levelAt(done, gate.adaptive) / agents;
  const { agentIndex, agent, model } = group;
  // The runs of a baseline come from evaluations in which the agents may have had other positions.
  const isOfAgent = (run: ComparedRun) =>
    runIds.includes(run.runId) ? run.agent === agent && run.model === model : run.agentIndex === agentIndex;
  const keeps = (run: ComparedRun) => agents === 1 || isOfAgent(run);
  return compareEvals(ctx, gate.orgId as OrgId, base, headsOf(gate), { level, keeps });
}

/** The agent that decides a gate: the first agent that failed, else the first inconclusive one, else the first of all. */
export function decidingIndex(agents: { status: GateRow["status"] }[]): number {
  const indexes = (["failed", "error"] as const).map((status) => agents.findIndex((agent) => agent.status === status));
  return indexes.find((index) => index >= 0) ?? 0;
}

/** Adds runs to each prompt up to this many per side, alternating between base and head. */
export function extendGate(ctx: Context, tx: Tx, gate: GateRow, from: number, to: number): void {
  for (let i = from; i < to; i++)
    for (const { baseRequestId, headRequestId, model } of targetsOf(gate))
      for (const id of [baseRequestId, headRequestId])
        if (id !== null) addRuns(ctx, tx, gate.orgId as OrgId, id, model);
}
