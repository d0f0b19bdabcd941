import { and, eq, sql } from "drizzle-orm";
import type { Comparison } from "../comparisons/compare.ts";
import type { Verdict } from "../comparisons/evidence.ts";
import type { Context } from "../context.ts";
import { isPassing } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { gates } from "../db/tables/gates.ts";
import { cut } from "../notifications/events.ts";
import { emitEvent } from "../notifications/outbox.ts";
import { createPoll } from "../poll.ts";
import { toPromptEvent } from "../reports/announcements.ts";
import { toIso } from "../schema.ts";
import { looks } from "../stats/power.ts";
import { decide } from "./decision.ts";
import { isClear, nextStep } from "./steps.ts";
import {
  basesOf,
  comparisonOf,
  decidingIndex,
  extendGate,
  type GateAgentGroup,
  type GateRow,
  groupsOf,
  headOf,
  headsOf,
  lostOf,
  progressOf,
  scopesOf,
  spentOf,
} from "./targets.ts";

/** Characters of the reason in an event. */
const maxReason = 2_000;
/** Interval for checks of gates whose runs have finished. */
const pollMs = 500;

type Decided = ReturnType<typeof decide> & { group: GateAgentGroup; comparison: Comparison | null };

/** The verdict that says whether more runs are needed: a regression ends the gate, otherwise every agent needs a clear verdict. */
function openVerdict(decided: Decided[]): Verdict | null {
  const verdicts = decided.map(({ comparison }) => comparison?.verdict ?? null);
  if (verdicts.includes("regressed")) return "regressed";
  return verdicts.find((verdict) => !isClear(verdict)) ?? verdicts[0] ?? null;
}

/** Advances every gate whose runs have finished. An internal error ends only the gate that caused it. */
export async function advanceGates(ctx: Context): Promise<void> {
  for (const gate of ctx.db
    .select()
    .from(gates)
    .where(eq(gates.status, sql.raw("'running'")))
    .all()) {
    const status = await ctx
      .commit((tx) => step(ctx, tx, gate))
      .catch((error) => {
        if (isPassing(error)) throw error;
        ctx.log.error({ err: error, gate: gate.id }, "gate failed");
        const reason = "internal error; see the server log";
        const end = { status: "error", reason, cause: reason, comparison: null, agents: null } as const;
        return ctx.commit((tx) => settle(ctx, tx, gate, { ...end, spentUsd: spentOf(ctx, gate) })).then(() => "error");
      });
    if (status === "extended") ctx.signals.jobQueued.emit();
    if (status !== "waiting")
      ctx.log.info({ gate: gate.id, status }, status === "extended" ? "gate extended" : "gate decided");
  }
}

/** Advances a gate if all of its runs have finished. */
function step(ctx: Context, tx: Tx, gate: GateRow): "waiting" | "extended" | GateRow["status"] {
  const { ended, of } = progressOf(ctx, gate);
  if (ended < of) return "waiting";
  const [heads, bases] = [headsOf(gate), basesOf(gate)];
  const groups = groupsOf(ctx, gate);
  const done = of / (groups.length * (heads.length + bases.length));
  const spentUsd = spentOf(ctx, gate);
  const { minScore, scope } = gate;
  const decided = groups.map((group) => {
    const comparison = comparisonOf(ctx, gate, done, group, groups.length);
    const lost = { head: lostOf(ctx, gate, heads, group), base: lostOf(ctx, gate, bases, group) };
    const head = headOf(ctx, gate, group);
    const facts = { head, done: done * heads.length, comparison, lost, minScore, scope };
    return { group, comparison, ...decide({ ...facts, agent: group.agent, scopes: scopesOf(ctx, gate, group) }) };
  });
  const next = nextStep({ ...gate, done, spentUsd, verdict: openVerdict(decided) });
  const isHopeless = decided.some(({ isLost }) => isLost) && done >= Math.min(looks[0].runs, gate.runs);
  if (typeof next === "number" && !isHopeless) {
    extendGate(ctx, tx, gate, done, next);
    return "extended";
  }
  const stop = typeof next === "number" || next.stop === "" ? [] : [next.stop];
  const { status, comparison, ...one } = decided[decidingIndex(decided)] as Decided;
  const agents = decided.map(({ group: { agent, model }, ...each }) => ({
    ...{ agent, model, status: each.status, reason: each.reason, comparison: each.comparison },
  }));
  const several = groups.length === 1 ? null : agents;
  const all = several?.map((each) => `${each.agent}: ${each.reason}`);
  const reason = [all ?? one.reason, stop].flat().join("; ");
  const cause = [all ?? one.cause ?? [], stop].flat();
  settle(ctx, tx, gate, { status, reason, cause: cause.join("; ") || null, comparison, agents: several, spentUsd });
  return status;
}

function settle(
  ctx: Context,
  tx: Tx,
  { id, orgId, promptId, others, minScore, createdAt }: GateRow,
  end: Pick<GateRow, "cause" | "comparison" | "agents" | "spentUsd"> & {
    status: Exclude<GateRow["status"], "running">;
    reason: string;
  },
): void {
  tx.update(gates)
    .set({ ...end, completedAt: ctx.now() })
    .where(and(eq(gates.id, id), eq(gates.status, "running")))
    .run();
  const { status, reason, spentUsd } = end;
  emitEvent(ctx, tx, orgId, "gate.decided", () => ({
    gate: {
      ...{ id, url: `${ctx.baseUrl()}/gates/${id}`, status, minScore, spentUsd },
      ...{ reason: cut(reason, maxReason), requestedAt: toIso(createdAt) },
    },
    prompts: [promptId, ...(others ?? []).map((other) => other.promptId)].map((each) => toPromptEvent(tx, each)),
  }));
}

/** Checks the running gates until it is stopped. */
export const createGateLoop = (ctx: Context) =>
  createPoll({
    check: () => advanceGates(ctx).then(() => pollMs),
    onError(error) {
      ctx.disk.onError(error);
      ctx.log.error({ err: error }, "could not check gates");
    },
    retryMs: pollMs,
  });
