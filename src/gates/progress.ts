import { and, eq, sql } from "drizzle-orm";
import type { Commit } from "../db/commit.ts";
import { isPassing } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { gates } from "../db/tables.ts";
import type { Deps } from "../deps.ts";
import { createPoll } from "../poll.ts";
import type { Requests } from "../runs/requests.ts";
import { looks } from "../stats/power.ts";
import { decide } from "./decision.ts";
import { nextStep } from "./steps.ts";
import { basesOf, extendGate, type GateRow, type GateRuns, headsOf } from "./targets.ts";

/** Interval for checks of gates whose runs have finished. */
const pollMs = 500;

type Parts = {
  gateRuns: GateRuns;
  requests: Pick<Requests, "addRun" | "onQueued">;
  commit: Commit;
  onError?: (error: unknown) => void;
};

/** Advances gates: requests more runs, or decides. */
export function createGateProgress({ db, now, log }: Deps, { gateRuns, requests, commit, onError }: Parts) {
  const { comparisonOf, lostOf, progressOf, spentOf } = gateRuns;

  /** Advances a gate if all of its runs have finished. */
  function step(t: Tx, gate: GateRow): "waiting" | "extended" | GateRow["status"] {
    const { ended, of } = progressOf(gate);
    if (ended < of) return "waiting";
    const [heads, bases] = [headsOf(gate), basesOf(gate)];
    const done = of / (heads.length + bases.length);
    const comparison = comparisonOf(gate, done);
    const spentUsd = spentOf(gate);
    const next = nextStep({ ...gate, done, spentUsd, verdict: comparison?.verdict ?? null });
    const lost = { head: lostOf(gate, heads), base: lostOf(gate, bases) };
    const head = gateRuns.headOf(gate);
    const { minScore, scope } = gate;
    const facts = { head, done: done * heads.length, comparison, lost, minScore, scope };
    const decision = decide({ ...facts, agent: gateRuns.askedOf(gate).agent, scopes: gateRuns.scopesOf(gate) });
    const isHopeless = decision.isLost && done >= Math.min(looks[0].runs, gate.runs);
    if (typeof next === "number" && !isHopeless) {
      extendGate(t, requests, gate, done, next);
      return "extended";
    }
    const stop = typeof next === "number" || next.stop === "" ? "" : `; ${next.stop}`;
    settle(t, gate, { status: decision.status, reason: decision.reason + stop, comparison, spentUsd });
    return decision.status;
  }

  function settle(t: Tx, { id }: GateRow, end: Pick<GateRow, "status" | "reason" | "comparison" | "spentUsd">): void {
    t.update(gates)
      .set({ ...end, completedAt: now() })
      .where(and(eq(gates.id, id), eq(gates.status, "running")))
      .run();
  }

  /** Advances every gate whose runs have finished. An internal error ends only the gate that caused it. */
  async function tick(): Promise<void> {
    for (const gate of db
      .select()
      .from(gates)
      .where(eq(gates.status, sql.raw("'running'")))
      .all()) {
      const status = await commit((t) => step(t, gate)).catch((error) => {
        if (isPassing(error)) throw error;
        log.error({ err: error, gate: gate.id }, "gate failed");
        const reason = "internal error; see the server log";
        const end = { status: "error", reason, comparison: null, spentUsd: spentOf(gate) } as const;
        return commit((t) => settle(t, gate, end)).then(() => "error");
      });
      if (status === "extended") requests.onQueued();
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
