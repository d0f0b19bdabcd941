import { and, asc, count, desc, eq, inArray, isNotNull, ne, sql } from "drizzle-orm";
import { toFailureReason } from "../agents/failure.ts";
import type { Comparison } from "../comparisons/compare.ts";
import { compareEvals } from "../comparisons/compare.ts";
import { alpha } from "../comparisons/evidence.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import type { GateTarget, gates } from "../db/tables/gates.ts";
import { attempts, jobs } from "../db/tables/jobs.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import type { Scope } from "../grading/grade.ts";
import type { ComparedRun } from "../reports/compared-runs.ts";
import { comparedScope } from "../reports/differences.ts";
import type { Requests } from "../runs/requests.ts";
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

export type GateRuns = ReturnType<typeof createGateRuns>;

/** The runs of gates: their progress, cost and results. */
export function createGateRuns(ctx: Context) {
  const { db } = ctx;
  /** `group`: only runs of one agent. */
  const ofEvals = ({ orgId }: GateRow, ids: string[], group?: GateAgentGroup) =>
    and(eq(runs.orgId, orgId), inArray(runs.evalRequestId, ids), group && eq(runs.agentIndex, group.agentIndex));
  const ofBoth = (gate: GateRow) => ofEvals(gate, [...headsOf(gate), ...basesOf(gate)]);

  /** The request behind the head's runs. */
  function askedOf(gate: GateRow): Pick<typeof runs.$inferSelect, "urlMap" | "templateArgs"> {
    const { urlMap, templateArgs } = runs;
    const found = db
      .select({ urlMap, templateArgs })
      .from(runs)
      .where(ofEvals(gate, headsOf(gate)))
      .get();
    if (!found) throw new Error(`the gate ${gate.id} has no run`);
    return found;
  }

  return {
    askedOf,

    /** The agents of the gate's prompts, in their order. Each is compared with itself only. */
    groupsOf(gate: GateRow): GateAgentGroup[] {
      const rows = db
        .select({ agentIndex: runs.agentIndex, agent: runs.agent, task: runs.task })
        .from(runs)
        .where(ofEvals(gate, [gate.headRequestId]))
        .orderBy(asc(runs.agentIndex), asc(runs.id))
        .all();
      const firsts = [...Map.groupBy(rows, ({ agentIndex }) => agentIndex).values()].flatMap(([first]) => first ?? []);
      // A finished run names the model that answered.
      return firsts.map(({ agentIndex, agent, task }) => ({
        agentIndex,
        agent,
        model: firsts.length > 1 ? (task.chosen?.model ?? null) : gate.model,
      }));
    },

    progressOf(gate: GateRow): Gate["progress"] {
      const found = db
        .select({ of: count(), ended: count(runs.completedAt) })
        .from(runs)
        .where(ofBoth(gate))
        .get();
      return { ended: found?.ended ?? 0, of: found?.of ?? 0 };
    },

    /** The cost of all attempts of all runs so far, in USD; null if any is unknown. */
    spentOf(gate: GateRow): number | null {
      const subjects = db.select({ id: runs.id }).from(runs).where(ofBoth(gate));
      const ofRuns = db
        .select({ id: jobs.id })
        .from(jobs)
        .where(and(eq(jobs.kind, "run"), inArray(jobs.subject, subjects)));
      const found = db
        .select({ n: count(), known: count(attempts.costUsd), usd: sql<number>`coalesce(sum(${attempts.costUsd}), 0)` })
        .from(attempts)
        .where(and(inArray(attempts.jobId, ofRuns), isNotNull(attempts.completedAt)))
        .get();
      return found && found.n === found.known ? found.usd : null;
    },

    /** The number of a side's runs that ended without a report, and their most common cause; null: none did. */
    lostOf(gate: GateRow, ids: string[], group: GateAgentGroup): { n: number; reason: string | null } {
      const lost = db
        .select({ failureCause: runs.failureCause, failureDetail: runs.failureDetail, n: count() })
        .from(runs)
        .where(and(ofEvals(gate, ids, group), isNotNull(runs.failureCause)))
        .groupBy(runs.failureCause, runs.failureDetail)
        .orderBy(desc(count()), asc(runs.failureCause), asc(runs.failureDetail))
        .all();
      return {
        n: lost.reduce((sum, { n }) => sum + n, 0),
        reason: lost[0] ? (toFailureReason(lost[0])?.slice(0, maxReasonChars) ?? null) : null,
      };
    },

    /** The combined results of the head's runs with one agent. */
    headOf(gate: GateRow, group: GateAgentGroup): EvalResult {
      const found = db
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
        .where(ofEvals(gate, headsOf(gate), group))
        .all();
      const ended = found.filter(({ completedAt, failureCause, report }) => completedAt && (failureCause || report));
      return resultOf(
        ended.map(({ failureCause, report }) => ({
          failureCause,
          report: report?.outcome == null ? null : report,
        })),
        found.filter(({ completedAt }) => completedAt === null).length,
      );
    },

    /** The scopes of the head's scores with one agent. */
    scopesOf(gate: GateRow, group: GateAgentGroup): Scope[] {
      const found = db
        .selectDistinct({
          scope: reports.scope,
          judge: sql<string | null>`json_extract(${reports.methodology}, '$.judge')`,
        })
        .from(runs)
        .innerJoin(reports, and(eq(reports.runId, runs.id), ne(reports.status, "archived"), isNotNull(reports.score)))
        .where(ofEvals(gate, headsOf(gate), group))
        .all();
      return [...new Set(found.map(comparedScope))];
    },

    /**
     * Compares this many runs per side of head and base, made with one of `of` agents; null if there is no base. Several agents
     * share the level, because one regression is enough to fail.
     */
    comparisonOf(gate: GateRow, done: number, group: GateAgentGroup, of: number): Comparison | null {
      const runIds = targetsOf(gate).flatMap(({ baseRunIds }) => baseRunIds ?? []);
      const base = { evalRequestIds: basesOf(gate), runIds };
      if (base.evalRequestIds.length + runIds.length === 0) return null;
      const level = levelAt(done, gate.adaptive) ?? alpha;
      const { agentIndex, agent, model } = group;
      const matches = (run: ComparedRun) =>
        of === 1 ||
        (runIds.includes(run.runId) ? run.agent === agent && run.model === model : run.agentIndex === agentIndex);
      return compareEvals(ctx, gate.orgId as OrgId, base, headsOf(gate), { level: level / of, matches });
    },
  };
}

/** The agent that decides a gate: the first that failed, or else the first that is inconclusive. */
export function decidingIndex(agents: { status: GateRow["status"] }[]): number {
  const indexes = (["failed", "error"] as const).map((wanted) => agents.findIndex(({ status }) => status === wanted));
  return indexes.find((index) => index >= 0) ?? 0;
}

/** Adds runs to each prompt up to this many per side, alternating between base and head. */
export function extendGate(
  tx: Tx,
  { addRun }: Pick<Requests, "addRun">,
  gate: GateRow,
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++)
    for (const { baseRequestId, headRequestId, model } of targetsOf(gate))
      for (const id of [baseRequestId, headRequestId]) if (id !== null) addRun(tx, gate.orgId as OrgId, id, model);
}
