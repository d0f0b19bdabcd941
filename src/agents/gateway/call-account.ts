import { type AgentEvent, type AgentFailure, toAgentFailure } from "../agent.ts";
import { hasPrice, type ModelAccess } from "./prices.ts";
import { openReserves, type Reserves, type SharedBudget } from "./reserves.ts";

/** Model limits of a run. `costUsd` null: no spending limit. */
export type ModelLimits = { calls: number; tokens: number; costUsd: number | null };

/** A run's use of its model. */
export type ModelRun = {
  model: ModelAccess;
  limits: ModelLimits;
  /** A call of unknown cost ends the run, because the run's spending limit can't be enforced for it. */
  mustHavePrice?: boolean;
  /** Money that it shares with other runs. */
  shared?: SharedBudget[];
  onEvent: (event: AgentEvent) => void;
  /** Called once, when the run cannot continue with its model. */
  onFailure: (failure: AgentFailure) => void;
};

/** Usage of a run, with estimates for calls that did not fully report theirs. `unpriced`: number of calls whose cost is unknown. */
export type ModelSpending = { calls: number; tokens: number; costUsd: number; unpriced: number };

/** The cost and failures of a run's model calls. */
export type CallAccount = {
  run: ModelRun;
  spent: ModelSpending;
  /** What its calls in progress may use. */
  reserves: Reserves;
  /** Resolves when all earlier calls have been admitted or refused. */
  admission: Promise<void>;
  /** Tokens of its longest call. */
  longestCall: number;
  /** The highest output limit that the model accepts, in tokens, as far as known. */
  maxOutput: number;
  /** Limits of which the agent is warned: limits of its model, and limits that `warn` adds. */
  nearLimits: Set<string>;
  /** Limits of the model that an event has reported as nearly reached. */
  reportedNearLimits: Set<string>;
  /** Limits of the model that an event has reported as reached. */
  reportedReachedLimits: Set<string>;
  /** Provider failures in a row, and how many of them end the run. */
  failures: number;
  maxFailures: number;
  /** The last of those failures; null: the last call succeeded. */
  lastFailure: AgentFailure | null;
  /** Why the run has ended. */
  failure: AgentFailure | null;
  isPriceReported: boolean;
  now: () => number;
};

/** The names and units of limits in events. */
export const limitNames = {
  calls: { limit: "model_calls", unit: "calls" },
  tokens: { limit: "model_tokens", unit: "tokens" },
  costUsd: { limit: "model_cost", unit: "USD" },
};
export const limitKinds = Object.keys(limitNames) as (keyof ModelLimits)[];
const nearShare = 0.8;

/** Opens the account of a run. */
export function openAccount(run: ModelRun, now: () => number, maxFailures: number): CallAccount {
  const account: CallAccount = {
    run,
    now,
    maxFailures,
    spent: { calls: 0, tokens: 0, costUsd: 0, unpriced: 0 },
    reserves: openReserves(),
    admission: Promise.resolve(),
    longestCall: 0,
    maxOutput: Number.POSITIVE_INFINITY,
    nearLimits: new Set(),
    reportedNearLimits: new Set(),
    reportedReachedLimits: new Set(),
    failures: 0,
    lastFailure: null,
    failure: null,
    isPriceReported: false,
  };
  if (!hasPrice(run.model)) reportUnknownPrice(account, run.model.name);
  return account;
}

/** The share of a limit that is used; 0 without a limit. */
export const shareOf = ({ run: { limits }, spent }: CallAccount, kind: keyof ModelLimits): number =>
  limits[kind] === null ? 0 : spent[kind] / limits[kind];

/** Reports each limit once, at 80 %. */
export function reportNearLimits(account: CallAccount): void {
  const { run, nearLimits, reportedNearLimits } = account;
  for (const kind of limitKinds) {
    const { limit, unit } = limitNames[kind];
    if (shareOf(account, kind) < nearShare || reportedNearLimits.has(limit)) continue;
    nearLimits.add(limit);
    reportedNearLimits.add(limit);
    run.onEvent({ type: "limit", limit, unit, value: run.limits[kind] as number, near: true });
  }
}

/** Ends a run that cannot continue with its model. */
export function endRun(account: CallAccount, failure: AgentFailure): void {
  if (account.failure) return;
  account.failure = failure;
  account.run.onFailure(failure);
}

/** Ends a run with a spending limit if its call costs are unknown; returns whether it did. */
export function failWithoutPrice(account: CallAccount, reason: string, remedy: string): boolean {
  if (!account.run.mustHavePrice) return false;
  const text = `${reason}, so the spending limit cannot be enforced; ${remedy}, or remove the limit`;
  endRun(account, toAgentFailure("run_limit", text, { code: "model_price_unknown", subject: account.run.model.id }));
  return true;
}

/** Says once that the price is unknown, or ends the run. */
export function reportUnknownPrice(account: CallAccount, name: string): void {
  if (account.isPriceReported) return;
  account.isPriceReported = true;
  if (failWithoutPrice(account, `the price of ${name} is unknown`, "set it in EVALD_MODEL_PRICES")) return;
  const { limits, onEvent } = account.run;
  const consequence = limits.costUsd === null ? "" : `, so its budget of $${limits.costUsd} cannot be enforced`;
  const text = `The price of ${name} is unknown${consequence}. Tokens are limited to ${limits.tokens}. Set prices in EVALD_MODEL_PRICES.`;
  onEvent({ type: "message", text });
}
