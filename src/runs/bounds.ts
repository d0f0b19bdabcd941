import { type AgentEvent, AgentFailure, type Task } from "../agents/agent.ts";

type Hit = { limit: string; value: number; unit: string };

/** Part of the wall clock that is kept back to end in order, at most 5 s. */
const reserve = (wallClockMs: number) => Math.min(5000, wallClockMs * 0.2);

/**
 * The limits of an agent with a model, kept outside of it. At the first that is reached `signal` is aborted, and what was done until then is a
 * result. Agents that work by rules keep their own.
 */
export function createBounds(kind: "rules" | "model", { wallClockMs, maxToolCalls }: Task["limits"]) {
  const over = new AbortController();
  let calls = 0;
  let hit: Hit | null = null;
  let isEnded = false;
  const reach = (what: Hit) => {
    if (isEnded) return;
    hit ??= what;
    over.abort(new Error(`the limit ${what.limit} was reached`));
  };
  const tooLong = () => reach({ limit: "wall_clock", value: wallClockMs, unit: "ms" });
  const timer = kind === "model" ? setTimeout(tooLong, wallClockMs - reserve(wallClockMs)) : undefined;

  return {
    signal: over.signal,
    get hit(): boolean {
      return hit !== null;
    },
    count(event: AgentEvent): void {
      if (event.type === "end") {
        isEnded = true;
        clearTimeout(timer);
      }
      if (kind !== "model" || event.type !== "tool_call") return;
      if (++calls > maxToolCalls) reach({ limit: "tool_calls", value: maxToolCalls, unit: "calls" });
    },
    stop: () => clearTimeout(timer),
    /** How the session ends where a limit ended it. Throws an AgentFailure where nothing was done before. */
    ending(): AgentEvent[] {
      if (!hit || isEnded) return [];
      const { limit, value, unit } = hit;
      const amount = unit === "ms" ? (value === 1000 ? "1 second" : `${value / 1000} seconds`) : `${value} ${unit}`;
      if (calls === 0)
        throw new AgentFailure("timeout", `the model asked for nothing to be done within the ${amount} of the run`);
      const reason = `Ended by a limit of the run: ${amount} (${limit}).`;
      return [
        { type: "limit", ...hit },
        { type: "end", outcome: "goal_not_met", reason },
      ];
    },
  };
}
