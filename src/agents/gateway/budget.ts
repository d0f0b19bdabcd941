import type { AgentEvent } from "../agent.ts";

/** Model limits of a run. `costUsd` null: no spending limit. */
export type ModelLimits = { calls: number; tokens: number; costUsd: number | null };

/** Usage of a run. `costUsd` is the known cost; calls without a price are counted in `unpriced`. */
export type Spent = { calls: number; tokens: number; costUsd: number; unpriced: number };

type Kind = keyof ModelLimits;
type Hooks = { onEvent: (event: AgentEvent) => void; onNearLimit?: (limit: Kind, name: string, share: number) => void };

const names = {
  calls: { limit: "model_calls", unit: "calls" },
  tokens: { limit: "model_tokens", unit: "tokens" },
  costUsd: { limit: "model_cost", unit: "USD" },
};
const nearShare = 0.8;

/** Counts the model usage of a run, and reports each limit once at 80 % and once when reached. */
export function createBudget(limits: ModelLimits, { onEvent, onNearLimit = () => {} }: Hooks) {
  const spent: Spent = { calls: 0, tokens: 0, costUsd: 0, unpriced: 0 };
  const near = new Set<Kind>();
  const reached = new Set<Kind>();
  const kinds: Kind[] = ["calls", "tokens", "costUsd"];
  const shareOf = (kind: Kind) => (limits[kind] === null ? 0 : spent[kind] / limits[kind]);

  function reportNearLimits(): void {
    for (const kind of kinds) {
      if (shareOf(kind) < nearShare || near.has(kind)) continue;
      near.add(kind);
      onEvent({ type: "limit", ...names[kind], value: limits[kind] as number, near: true });
      onNearLimit(kind, names[kind].limit, shareOf(kind));
    }
  }

  return {
    spent: (): Spent => ({ ...spent }),

    /** The remaining budget in USD; Infinity without a limit. */
    leftUsd: () => Math.max(0, (limits.costUsd ?? Number.POSITIVE_INFINITY) - spent.costUsd),

    /** Counts a new call; returns an error message if it is over budget. */
    begin(): string | null {
      const over = kinds.find((kind) => shareOf(kind) >= 1);
      if (over) {
        const limit = limits[over] as number;
        if (!reached.has(over)) onEvent({ type: "limit", ...names[over], value: limit });
        reached.add(over);
        return `the run has used its model budget of ${over === "costUsd" ? `$${limit}` : `${limit} ${over}`}`;
      }
      spent.calls++;
      reportNearLimits();
      return null;
    },

    /** Counts the usage of a call; `costUsd` null: unknown. */
    spend(tokens: number, costUsd: number | null): void {
      spent.tokens += tokens;
      if (costUsd === null) spent.unpriced++;
      else spent.costUsd += costUsd;
      reportNearLimits();
    },
  };
}
