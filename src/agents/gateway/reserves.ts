import { affordableOutput, type ModelAccess, maxPriceOf } from "./prices.ts";

/** What calls in progress may still use, at most. `freed` resolves when one of them ends. */
export type Reserves = { calls: number; tokens: number; usd: number; freed: PromiseWithResolvers<void> };

/** The most that a call may use. `usd` is 0 if the model's price is unknown. */
export type Reserve = { tokens: number; usd: number };

/** Money that calls of several runs share, such as the month of an organization. */
export type SharedBudget = {
  /** Its name in `limit` events. */
  limit: string;
  /** Its limit, and the cost of all calls that have ended, in USD; null: there is no limit. `owner`: who has this budget, in words. */
  read(): { owner: string; maxUsd: number; spentUsd: number } | null;
  /** Counts the cost of a call that ended, in USD. */
  count(usd: number): void;
  reserves: Reserves;
};

/** What a call needs: the most input tokens that it can have, and the output tokens that it asks for, in all answers together. */
export type Need = { input: number; output: number };

/** What is left of a limit for further calls, and whether calls in progress hold a part of it. */
type Remainder = { left: number; isHeld: boolean; inputCost: number; affordableOutput(amount: number): number };

/** Output tokens that a call gets in any case if no other call is in progress. Fewer tokens are of no use to an agent. */
const minOutput = 1_000;
/** Output tokens with which a call starts at once, even if it asks for more. */
const sufficientOutput = 8_192;

/** The reserves of a run without calls. */
export const openReserves = (): Reserves => ({ calls: 0, tokens: 0, usd: 0, freed: Promise.withResolvers() });

/** Adds what a call may use. Returns a function that gives it back. */
export function hold(reserves: Reserves, { tokens, usd }: Reserve): () => void {
  reserves.calls++;
  reserves.tokens += tokens;
  reserves.usd += usd;
  return () => {
    reserves.calls--;
    // Adding and subtracting fractions would leave a remainder.
    reserves.tokens = reserves.calls === 0 ? 0 : reserves.tokens - tokens;
    reserves.usd = reserves.calls === 0 ? 0 : reserves.usd - usd;
    reserves.freed.resolve();
    reserves.freed = Promise.withResolvers();
  };
}

/**
 * The output tokens that a call may have within what is left of each limit; null if it must wait until calls in progress have ended. A call alone in
 * progress gets all that is left, and at least `minOutput`. Only such a call can exceed a limit: by its input and `minOutput`.
 */
export function grantOutput(need: Need, remainders: Remainder[]): number | null {
  let output = Number.POSITIVE_INFINITY;
  for (const { left, isHeld, inputCost, affordableOutput } of remainders) {
    if (!isHeld) {
      output = Math.min(output, Math.max(affordableOutput(left), minOutput));
      continue;
    }
    const affordable = affordableOutput(left - inputCost);
    if (affordable < Math.min(need.output, sufficientOutput)) return null;
    output = Math.min(output, affordable);
  }
  return output;
}

/** What is left of a number of tokens. */
export const tokensLeft = (max: number, spent: number, { calls, tokens }: Reserves, { input }: Need): Remainder => ({
  left: max - spent - tokens,
  isHeld: calls > 0,
  inputCost: input,
  affordableOutput: (amount) => amount,
});

/** What is left of an amount of money, in USD; null if the price is unknown. */
export function moneyLeft(
  maxUsd: number,
  spentUsd: number,
  { calls, usd }: Reserves,
  { input }: Need,
  model: ModelAccess,
): Remainder | null {
  const inputCost = maxPriceOf(input, 0, model);
  if (inputCost === null) return null;
  return {
    left: maxUsd - spentUsd - usd,
    isHeld: calls > 0,
    inputCost,
    affordableOutput: (amount) => affordableOutput(amount, model),
  };
}
