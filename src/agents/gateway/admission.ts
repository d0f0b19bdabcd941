import { type CallAccount, limitKinds, limitNames, reportNearLimits, shareOf } from "./call-account.ts";
import type { CallOutcome } from "./forward.ts";
import { maxPriceOf } from "./prices.ts";
import { grantOutput, hold, moneyLeft, type Need, type Reserve, type SharedBudget, tokensLeft } from "./reserves.ts";
import { settleCall } from "./settlement.ts";

/** The output tokens that a call may use for all of its answers together; infinite if no limit is near. `settle` counts what it has used. */
export type Admission = { output: number; settle: (outcome: CallOutcome, likelyInput: number) => void };

/** Why a call is not admitted: the error message of a limit that is reached. */
type Refusal = { message: string };

/**
 * Counts a new call, and reserves the most that it may use: in its own run, and in the money that the run shares. Waits in the order of the calls
 * while calls in progress hold what it needs. `aborted`: the signal aborted, or the run has ended.
 */
export function admitCall(
  account: CallAccount,
  need: Need,
  signal: AbortSignal,
): Promise<Admission | Refusal | "aborted"> {
  const aborted = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => aborted.resolve(), { once: true });
  const admission = account.admission.then(async () => {
    for (;;) {
      if (signal.aborted || account.failure) return "aborted";
      const result = tryToAdmit(account, need);
      if (result !== "wait") return result;
      const reserves = [account.reserves, ...(account.run.shared ?? []).map((budget) => budget.reserves)];
      await Promise.race([...reserves.map(({ freed }) => freed.promise), aborted.promise]);
    }
  });
  const ended = () => {};
  account.admission = admission.then(ended, ended);
  return admission;
}

type BudgetState = { budget: SharedBudget; state: ReturnType<SharedBudget["read"]> };

function tryToAdmit(account: CallAccount, need: Need): Admission | Refusal | "wait" {
  const { run, spent, reserves } = account;
  const { limits, shared = [], model } = run;
  const states = shared.map((budget) => ({ budget, state: budget.read() }));
  const message = findReachedLimit(account, states);
  if (message !== null) return { message };
  const remainders = [
    tokensLeft(limits.tokens, spent.tokens, reserves, need),
    limits.costUsd === null ? null : moneyLeft(limits.costUsd, spent.costUsd, reserves, need, model),
    ...states.map(
      ({ budget, state }) => state && moneyLeft(state.maxUsd, state.spentUsd, budget.reserves, need, model),
    ),
  ];
  const output = grantOutput(
    need,
    remainders.filter((each) => each != null),
  );
  if (output === null) return "wait";
  spent.calls++;
  reportNearLimits(account);
  const maxOutput = Math.min(output, need.output);
  const reserve: Reserve = {
    tokens: need.input + maxOutput,
    usd: maxPriceOf(need.input, maxOutput, model) ?? 0,
  };
  const releases = [reserves, ...shared.map((budget) => budget.reserves)].map((each) => hold(each, reserve));
  return {
    output,
    settle(outcome, likelyInput) {
      // This comes first, so that waiting calls see what this call has used.
      try {
        settleCall(account, outcome, likelyInput);
      } finally {
        for (const release of releases) release();
      }
    },
  };
}

/** The error message if a limit is reached; null if not. */
function findReachedLimit(account: CallAccount, states: BudgetState[]): string | null {
  const { run } = account;
  const kind = limitKinds.find((each) => shareOf(account, each) >= 1);
  if (kind !== undefined) {
    const value = run.limits[kind] as number;
    reportReachedLimit(account, { ...limitNames[kind], value });
    return `the run has used its model budget of ${kind === "costUsd" ? `$${value}` : `${value} ${kind}`}`;
  }
  for (const { budget, state } of states) {
    if (!state || state.spentUsd < state.maxUsd) continue;
    const { owner, maxUsd } = state;
    reportReachedLimit(account, { limit: budget.limit, unit: "USD", value: maxUsd });
    return `${owner} has spent its budget of $${maxUsd}`;
  }
  return null;
}

function reportReachedLimit(
  { run, reportedReachedLimits }: CallAccount,
  limit: { limit: string; unit: string; value: number },
): void {
  if (!reportedReachedLimits.has(limit.limit)) run.onEvent({ type: "limit", ...limit });
  reportedReachedLimits.add(limit.limit);
}
