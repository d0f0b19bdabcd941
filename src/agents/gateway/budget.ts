import type { AgentEvent } from "../agent.ts";

/** How much a run may use of its model. `costUsd` null: as much as the other two let it. */
export type ModelLimits = { calls: number; tokens: number; costUsd: number | null };

/** What a run has used. `costUsd` is what is known: calls without a price are counted in `unpriced`. */
export type Spent = { calls: number; tokens: number; costUsd: number; unpriced: number };

type Kind = keyof ModelLimits;
type Hooks = { onEvent: (event: AgentEvent) => void; onNearLimit?: (limit: Kind, name: string, share: number) => void };

const names = {
  calls: { limit: "model_calls", unit: "calls" },
  tokens: { limit: "model_tokens", unit: "tokens" },
  costUsd: { limit: "model_cost", unit: "USD" },
};
const nearShare = 0.8;

/** Counts what a run uses of its model, says once when a limit is near (80 %) and once when it is reached. */
export function createBudget(limits: ModelLimits, { onEvent, onNearLimit = () => {} }: Hooks) {
  const spent: Spent = { calls: 0, tokens: 0, costUsd: 0, unpriced: 0 };
  const near = new Set<Kind>();
  const reached = new Set<Kind>();
  const kinds: Kind[] = ["calls", "tokens", "costUsd"];
  const shareOf = (kind: Kind) => (limits[kind] === null ? 0 : spent[kind] / limits[kind]);

  function look(): void {
    for (const kind of kinds) {
      if (shareOf(kind) < nearShare || near.has(kind)) continue;
      near.add(kind);
      onEvent({ type: "limit", ...names[kind], value: limits[kind] as number, near: true });
      onNearLimit(kind, names[kind].limit, shareOf(kind));
    }
  }

  return {
    spent: (): Spent => ({ ...spent }),

    /** What is left of the money; no end of it where it has no limit. */
    leftUsd: () => Math.max(0, (limits.costUsd ?? Number.POSITIVE_INFINITY) - spent.costUsd),

    /** Counts a call that begins; answers with why it may not, in words, if it may not. */
    begin(): string | null {
      const over = kinds.find((kind) => shareOf(kind) >= 1);
      if (over) {
        const limit = limits[over] as number;
        if (!reached.has(over)) onEvent({ type: "limit", ...names[over], value: limit });
        reached.add(over);
        return `the run has used its budget of ${over === "costUsd" ? `$${limit}` : `${limit} ${over}`} for the model`;
      }
      spent.calls++;
      look();
      return null;
    },

    /** Counts what a call used; a cost of null is one that nobody knows. */
    spend(tokens: number, costUsd: number | null): void {
      spent.tokens += tokens;
      if (costUsd === null) spent.unpriced++;
      else spent.costUsd += costUsd;
      look();
    },
  };
}
