import { and, eq, sql } from "drizzle-orm";
import type { Comparison } from "../comparisons/compare.ts";
import type { Verdict } from "../comparisons/evidence.ts";
import type { Context } from "../context.ts";
import { isTemporary } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { endedAt } from "../db/rows.ts";
import { gates } from "../db/tables/gates.ts";
import { cut } from "../notifications/events.ts";
import { emitEvent } from "../notifications/outbox.ts";
import { createPoll } from "../poll.ts";
import { toPromptEvent } from "../reports/announcements.ts";
import { toIso } from "../schema.ts";
import { gateSteps } from "../stats/power.ts";
import { decide } from "./decision.ts";
import { isClear, nextStep } from "./steps.ts";
import {
  basesOf,
  compareGate,
  costOfGate,
  countGateRuns,
  decidingIndex,
  extendGate,
  type GateAgentGroup,
  type GateRow,
  headsOf,
  listGateAgents,
  listHeadScopes,
  lossesOf,
  resultOfHead,
} from "./targets.ts";

/** Characters of the reason in an event. */
const maxReason = 2_000;
/** Interval for checks of gates whose runs have finished. */
const pollMs = 500;

/** Checks again and again whether gates can advance. */
export function createGateLoop(ctx: Context) {
  return createPoll({
    check: () => advanceGates(ctx).then(() => pollMs),
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not check gates");
    },
    retryMs: pollMs,
  });
}

/** Advances every gate whose runs have finished: requests more runs, or decides. An internal error ends only the gate that caused it. */
export async function advanceGates(ctx: Context): Promise<void> {
  const running = ctx.db
    .select()
    .from(gates)
    .where(eq(gates.status, sql.raw("'running'")))
    .all();
  for (const gate of running) {
    const status = await ctx.commit((tx) => advanceGate(ctx, tx, gate)).catch((error) => failGate(ctx, gate, error));
    if (status === "waiting") continue;
    ctx.log.info({ gate: gate.id, status }, status === "extended" ? "gate extended" : "gate decided");
    if (status === "extended") ctx.signals.jobQueued.emit();
  }
}

/** Advances a gate if all of its runs have finished. */
function advanceGate(ctx: Context, tx: Tx, gate: GateRow): "waiting" | "extended" | GateRow["status"] {
  const { ended, of } = countGateRuns(ctx, gate);
  if (ended < of) return "waiting";
  const groups = listGateAgents(ctx, gate);
  // Every prompt has the same number of runs per side and agent.
  const done = of / (groups.length * (headsOf(gate).length + basesOf(gate).length));
  const spentUsd = costOfGate(ctx, gate);
  const decisions = groups.map((group) => decideForAgent(ctx, gate, done, group, groups.length));
  const next = nextStep({ ...gate, done, spentUsd, verdict: verdictForNextStep(decisions) });
  // During the first step, one or two failed runs can leave too few usable runs. The next runs may be usable.
  const isFirstStepDone = done >= Math.min(gateSteps[0].runs, gate.runs);
  const isHopeless = isFirstStepDone && decisions.some(({ hasTooFewUsableRuns }) => hasTooFewUsableRuns);
  if (typeof next === "number" && !isHopeless) {
    extendGate(ctx, tx, gate, done, next);
    return "extended";
  }
  const stopReason = typeof next === "number" ? null : next.stop;
  const end = { ...combine(decisions, stopReason), spentUsd };
  endGate(ctx, tx, gate, end);
  return end.status;
}

type Decision = ReturnType<typeof decide> & { group: GateAgentGroup; comparison: Comparison | null };

/** The decision of a gate with `done` runs per side, for one of `agents` agents. */
function decideForAgent(ctx: Context, gate: GateRow, done: number, group: GateAgentGroup, agents: number): Decision {
  const { minScore, scope } = gate;
  const [heads, bases] = [headsOf(gate), basesOf(gate)];
  const comparison = compareGate(ctx, gate, done, group, agents);
  const decision = decide({
    agent: group.agent,
    head: resultOfHead(ctx, gate, group),
    scopes: listHeadScopes(ctx, gate, group),
    done: done * heads.length,
    comparison,
    lost: { head: lossesOf(ctx, gate, heads, group), base: lossesOf(ctx, gate, bases, group) },
    minScore,
    scope,
  });
  return { group, comparison, ...decision };
}

/** The verdict that decides whether more runs are needed. A regression ends the gate. Otherwise every agent needs a clear verdict. */
function verdictForNextStep(decisions: Decision[]): Verdict | null {
  const verdicts = decisions.map(({ comparison }) => comparison?.verdict ?? null);
  if (verdicts.includes("regressed")) return "regressed";
  return verdicts.find((verdict) => !isClear(verdict)) ?? verdicts[0] ?? null;
}

type GateEnd = Pick<GateRow, "cause" | "comparison" | "agents" | "spentUsd"> & {
  status: Exclude<GateRow["status"], "running">;
  reason: string;
};

/** The decision of a gate, made from the decisions for its agents. `stopReason`: why no more runs are made; null: the decisions say why. */
function combine(decisions: Decision[], stopReason: string | null): Omit<GateEnd, "spentUsd"> {
  const { status, comparison, ...deciding } = decisions[decidingIndex(decisions)] as Decision;
  const agents = decisions.map(({ group: { agent, model }, status, reason, comparison }) => ({
    agent,
    model,
    status,
    reason,
    comparison,
  }));
  const stop = stopReason === null ? [] : [stopReason];
  if (agents.length === 1) {
    const reason = [deciding.reason, ...stop].join("; ");
    const cause = [deciding.cause, ...stop].filter((each) => each !== null).join("; ") || null;
    return { status, reason, cause, comparison, agents: null };
  }
  const reason = [...agents.map((each) => `${each.agent}: ${each.reason}`), ...stop].join("; ");
  return { status, reason, cause: reason, comparison, agents };
}

function endGate(ctx: Context, tx: Tx, gate: GateRow, end: GateEnd): void {
  const { id, orgId, promptId, others, minScore, createdAt } = gate;
  tx.update(gates)
    .set({ ...end, completedAt: endedAt(ctx.now(), gates.createdAt) })
    .where(and(eq(gates.id, id), eq(gates.status, "running")))
    .run();
  const { status, reason, spentUsd } = end;
  emitEvent(ctx, tx, orgId, "gate.decided", () => ({
    gate: {
      id,
      url: `${ctx.baseUrl()}/gates/${id}`,
      status,
      minScore,
      spentUsd,
      reason: cut(reason, maxReason),
      requestedAt: toIso(createdAt),
    },
    prompts: [promptId, ...(others ?? []).map((other) => other.promptId)].map((each) => toPromptEvent(tx, each)),
  }));
}

/** Ends a gate with an internal error. Throws temporary errors. */
async function failGate(ctx: Context, gate: GateRow, error: unknown): Promise<"error"> {
  if (isTemporary(error)) throw error;
  ctx.log.error({ err: error, gate: gate.id }, "gate failed");
  const reason = "internal error; see the server log";
  const end = { status: "error", reason, cause: reason, comparison: null, agents: null } as const;
  await ctx.commit((tx) => endGate(ctx, tx, gate, { ...end, spentUsd: costOfGate(ctx, gate) }));
  return "error";
}
