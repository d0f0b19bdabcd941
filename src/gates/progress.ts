import { and, eq, sql } from "drizzle-orm";
import type { Comparison } from "../comparisons/compare.ts";
import type { Verdict } from "../comparisons/evidence.ts";
import type { Context } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import { isPassing } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { gates } from "../db/tables/gates.ts";
import { cut } from "../notifications/events.ts";
import type { Outbox } from "../notifications/outbox.ts";
import { createPoll } from "../poll.ts";
import { toPromptEvent } from "../reports/announcements.ts";
import type { Requests } from "../runs/requests.ts";
import { toIso } from "../schema.ts";
import { looks } from "../stats/power.ts";
import { decide } from "./decision.ts";
import { isClear, nextStep } from "./steps.ts";
import {
  basesOf,
  decidingIndex,
  extendGate,
  type GateAgentGroup,
  type GateRow,
  type GateRuns,
  headsOf,
} from "./targets.ts";

/** Characters of the reason in an event. */
const maxReason = 2_000;
/** Interval for checks of gates whose runs have finished. */
const pollMs = 500;

type Parts = {
  gateRuns: GateRuns;
  requests: Pick<Requests, "addRun">;
  commit: Commit;
  emit: Outbox["emit"];
  onError?: (error: unknown) => void;
};

type Decided = ReturnType<typeof decide> & { group: GateAgentGroup; comparison: Comparison | null };

/** The verdict that says whether more runs are needed: a regression ends the gate, otherwise every agent needs a clear verdict. */
function openVerdict(decided: Decided[]): Verdict | null {
  const verdicts = decided.map(({ comparison }) => comparison?.verdict ?? null);
  if (verdicts.includes("regressed")) return "regressed";
  return verdicts.find((verdict) => !isClear(verdict)) ?? verdicts[0] ?? null;
}

/** Advances gates: requests more runs, or decides. */
export function createGateProgress(
  { db, now, log, baseUrl, signals }: Context,
  { gateRuns, requests, commit, emit, onError }: Parts,
) {
  const { comparisonOf, lostOf, progressOf, spentOf } = gateRuns;

  /** Advances a gate if all of its runs have finished. */
  function step(tx: Tx, gate: GateRow): "waiting" | "extended" | GateRow["status"] {
    const { ended, of } = progressOf(gate);
    if (ended < of) return "waiting";
    const [heads, bases] = [headsOf(gate), basesOf(gate)];
    const groups = gateRuns.groupsOf(gate);
    const done = of / (groups.length * (heads.length + bases.length));
    const spentUsd = spentOf(gate);
    const { minScore, scope } = gate;
    const decided = groups.map((group) => {
      const comparison = comparisonOf(gate, done, group, groups.length);
      const lost = { head: lostOf(gate, heads, group), base: lostOf(gate, bases, group) };
      const head = gateRuns.headOf(gate, group);
      const facts = { head, done: done * heads.length, comparison, lost, minScore, scope };
      return { group, comparison, ...decide({ ...facts, agent: group.agent, scopes: gateRuns.scopesOf(gate, group) }) };
    });
    const next = nextStep({ ...gate, done, spentUsd, verdict: openVerdict(decided) });
    const isHopeless = decided.some(({ isLost }) => isLost) && done >= Math.min(looks[0].runs, gate.runs);
    if (typeof next === "number" && !isHopeless) {
      extendGate(tx, requests, gate, done, next);
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
    settle(tx, gate, { status, reason, cause: cause.join("; ") || null, comparison, agents: several, spentUsd });
    return status;
  }

  function settle(
    tx: Tx,
    { id, orgId, promptId, others, minScore, createdAt }: GateRow,
    end: Pick<GateRow, "cause" | "comparison" | "agents" | "spentUsd"> & {
      status: Exclude<GateRow["status"], "running">;
      reason: string;
    },
  ): void {
    tx.update(gates)
      .set({ ...end, completedAt: now() })
      .where(and(eq(gates.id, id), eq(gates.status, "running")))
      .run();
    const { status, reason, spentUsd } = end;
    emit(tx, orgId, "gate.decided", () => ({
      gate: {
        ...{ id, url: `${baseUrl()}/gates/${id}`, status, minScore, spentUsd },
        ...{ reason: cut(reason, maxReason), requestedAt: toIso(createdAt) },
      },
      prompts: [promptId, ...(others ?? []).map((other) => other.promptId)].map((each) => toPromptEvent(tx, each)),
    }));
  }

  /** Advances every gate whose runs have finished. An internal error ends only the gate that caused it. */
  async function tick(): Promise<void> {
    for (const gate of db
      .select()
      .from(gates)
      .where(eq(gates.status, sql.raw("'running'")))
      .all()) {
      const status = await commit((tx) => step(tx, gate)).catch((error) => {
        if (isPassing(error)) throw error;
        log.error({ err: error, gate: gate.id }, "gate failed");
        const reason = "internal error; see the server log";
        const end = { status: "error", reason, cause: reason, comparison: null, agents: null } as const;
        return commit((tx) => settle(tx, gate, { ...end, spentUsd: spentOf(gate) })).then(() => "error");
      });
      if (status === "extended") signals.jobQueued.emit();
      if (status !== "waiting") log.info({ gate: gate.id, status }, "gate");
    }
  }

  const poll = createPoll({
    check: () => tick().then(() => pollMs),
    onError(error) {
      onError?.(error);
      log.error({ err: error }, "could not check gates");
    },
    retryMs: pollMs,
  });

  return { tick, start: poll.start, stop: poll.stop };
}
