import { providerVariables } from "../../config/model-settings.ts";
import { readRetryAfter } from "../../net/retry-after.ts";
import { type AgentEvent, AgentFailure } from "../agent.ts";
import type { CallOutcome } from "./forward.ts";
import { hasPrice, type ModelAccess, maxPriceOf, priceOf } from "./prices.ts";
import {
  grantOutput,
  hold,
  moneyLeft,
  type Need,
  openReserves,
  type Reserve,
  type Reserves,
  type SharedBudget,
  tokensLeft,
} from "./reserves.ts";
import { likelyOutputTokens } from "./token-estimate.ts";
import type { ResponseSummary, Usage } from "./wire.ts";

/** Model limits of a run. `costUsd` null: no spending limit. */
export type ModelLimits = { calls: number; tokens: number; costUsd: number | null };

/** A run's use of its model. */
export type ModelRun = {
  model: ModelAccess;
  limits: ModelLimits;
  /** A call of unknown cost ends the run, because its spending limit could not be enforced. */
  mustHavePrice?: boolean;
  /** Money that it shares with other runs. */
  shared?: SharedBudget;
  onEvent: (event: AgentEvent) => void;
  /** Called once, when the run cannot continue with its model. */
  onFailure: (failure: AgentFailure) => void;
};

/** Usage of a run, with estimates for calls whose usage was not fully reported. Calls of unknown cost are counted in `unpriced`. */
export type ModelSpending = { calls: number; tokens: number; costUsd: number; unpriced: number };

/** The cost and failures of a run's model calls. */
export type CallAccount = {
  run: ModelRun;
  spent: ModelSpending;
  /** What its calls in progress may use. */
  reserves: Reserves;
  /** Resolves when the calls before have got what they need, or were refused. */
  admission: Promise<void>;
  /** Tokens of its longest call. */
  longestCall: number;
  /** The highest output limit that the model accepts, in tokens, as far as known. */
  maxOutput: number;
  /** Limits that the agent is warned of: of its model, and others that `warn` adds. */
  nearLimits: Set<string>;
  /** Limits of the model that an event has reported as nearly reached. */
  reportedNearLimits: Set<string>;
  /** Limits of the model that an event has reported as reached. */
  reportedReachedLimits: Set<string>;
  /** Provider failures in a row, and how many of them end the run. */
  failures: number;
  maxFailures: number;
  /** Why the run has ended. */
  failure: AgentFailure | null;
  isPriceReported: boolean;
  now: () => number;
};

const limitNames = {
  calls: { limit: "model_calls", unit: "calls" },
  tokens: { limit: "model_tokens", unit: "tokens" },
  costUsd: { limit: "model_cost", unit: "USD" },
};
const limitKinds = Object.keys(limitNames) as (keyof ModelLimits)[];
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
    failure: null,
    isPriceReported: false,
  };
  if (!hasPrice(run.model)) reportUnknownPrice(account, run.model.name);
  return account;
}

/** What a call may use: output tokens of all answers together; infinite if no limit is near. `settle` counts what it has used. */
export type Admission = { output: number; settle: (outcome: CallOutcome, likelyInput: number) => void };

/**
 * Counts a new call and reserves what it may use at most, in its own run and in the money that it shares. Waits while calls in progress
 * hold what it needs, in the order of the calls. Returns an error message if a limit is reached; null if `signal` aborts.
 */
export function admitCall(account: CallAccount, need: Need, signal: AbortSignal): Promise<Admission | string | null> {
  const aborted = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => aborted.resolve(), { once: true });
  const admission = account.admission.then(async () => {
    for (;;) {
      if (signal.aborted || account.failure) return null;
      const result = tryToAdmit(account, need);
      if (result !== null) return result;
      const { shared } = account.run;
      await Promise.race(
        [account.reserves.freed.promise, shared?.reserves.freed.promise, aborted.promise].filter(Boolean),
      );
    }
  });
  const ended = () => {};
  account.admission = admission.then(ended, ended);
  return admission;
}

/** null: it must wait. */
function tryToAdmit(account: CallAccount, need: Need): Admission | string | null {
  const { run, spent, reserves } = account;
  const { limits, shared, model } = run;
  const sharedState = shared?.read() ?? null;
  const objection = findReachedLimit(account, sharedState);
  if (objection !== null) return objection;
  const remainders = [
    tokensLeft(limits.tokens, spent.tokens, reserves, need),
    limits.costUsd === null ? null : moneyLeft(limits.costUsd, spent.costUsd, reserves, need, model),
    sharedState && shared && moneyLeft(sharedState.maxUsd, sharedState.spentUsd, shared.reserves, need, model),
  ];
  const output = grantOutput(
    need,
    remainders.filter((each) => each != null),
  );
  if (output === null) return null;
  spent.calls++;
  reportNearLimits(account);
  const maxOutput = Math.min(output, need.output);
  const reserve: Reserve = {
    tokens: need.input + maxOutput,
    usd: maxPriceOf(need.input, maxOutput, model) ?? 0,
  };
  const releases = [hold(reserves, reserve), ...(shared ? [hold(shared.reserves, reserve)] : [])];
  return {
    output,
    settle(outcome, likelyInput) {
      // First, so that calls that wait find what this one has used.
      try {
        settleCall(account, outcome, likelyInput);
      } finally {
        for (const release of releases) release();
      }
    },
  };
}

/** The error message if a limit is reached; null if not. */
function findReachedLimit(account: CallAccount, sharedState: ReturnType<SharedBudget["read"]>): string | null {
  const { run } = account;
  const kind = limitKinds.find((each) => shareOf(account, each) >= 1);
  if (kind !== undefined) {
    const value = run.limits[kind] as number;
    reportReachedLimit(account, { ...limitNames[kind], value });
    return `the run has used its model budget of ${kind === "costUsd" ? `$${value}` : `${value} ${kind}`}`;
  }
  if (!run.shared || !sharedState || sharedState.spentUsd < sharedState.maxUsd) return null;
  const { maxUsd } = sharedState;
  reportReachedLimit(account, { limit: run.shared.limit, unit: "USD", value: maxUsd });
  return `the organization has spent its budget of $${maxUsd}`;
}

function reportReachedLimit({ run, reportedReachedLimits }: CallAccount, limit: Omit<LimitEvent, "type">): void {
  if (!reportedReachedLimits.has(limit.limit)) run.onEvent({ type: "limit", ...limit });
  reportedReachedLimits.add(limit.limit);
}

type LimitEvent = { type: "limit"; limit: string; unit: string; value: number };

const shareOf = ({ run: { limits }, spent }: CallAccount, kind: keyof ModelLimits): number =>
  limits[kind] === null ? 0 : spent[kind] / limits[kind];

/** Reports each limit once, at 80 %. */
function reportNearLimits(account: CallAccount): void {
  const { run, nearLimits, reportedNearLimits } = account;
  for (const kind of limitKinds) {
    const { limit, unit } = limitNames[kind];
    if (shareOf(account, kind) < nearShare || reportedNearLimits.has(limit)) continue;
    nearLimits.add(limit);
    reportedNearLimits.add(limit);
    run.onEvent({ type: "limit", limit, unit, value: run.limits[kind] as number, near: true });
  }
}

/** Records a finished call, and ends the run if it cannot continue. */
function settleCall(account: CallAccount, outcome: CallOutcome, likelyInput: number): void {
  if (outcome.kind === "refused") settleRefusal(account, outcome);
  else settleAnswer(account, outcome, likelyInput);
}

function settleRefusal(
  account: CallAccount,
  { status, detail, retryAfter }: Extract<CallOutcome, { kind: "refused" }>,
): void {
  const { model } = account.run;
  if (status === null) countFailure(account, `did not respond: ${detail}`, null);
  else if (status === 402) {
    const reason = `${model.provider} requires payment (402): ${detail}; top up the account, or use another key`;
    endRun(account, new AgentFailure("credentials", reason));
  } else if (status === 404) {
    const reason = `${model.provider} returned 404: ${detail}; check that ${model.baseUrl} serves the model ${model.name} and includes the API version in its path, if the provider uses one`;
    endRun(account, new AgentFailure("infrastructure", reason));
  } else if (rejectsKey(model, status, detail)) {
    const remedy = `set a valid key in ${providerVariables[model.provider].key}, or for the organization with evald model set-key ${model.provider}`;
    const reason = `${model.provider} rejected the API key (${status}): ${detail}; ${remedy}`;
    endRun(account, new AgentFailure("credentials", reason));
  } else if (status < 400 || status === 429 || status >= 500)
    countFailure(account, `returned ${status}: ${detail}`, retryAfter);
}

function settleAnswer(
  account: CallAccount,
  { summary, cutReason, clientLeft }: Exclude<CallOutcome, { kind: "refused" }>,
  likelyInput: number,
): void {
  const { run, spent } = account;
  const { model, onEvent } = run;
  const { usage, isComplete, error } = summary;
  const name = summary.model ?? model.name;
  const costUsd = usage && isComplete ? priceOf(usage, summary.model, model) : null;
  const isFromModel = summary.model !== null || cutReason !== null;
  const likelyUsage = (usage && isComplete) || !isFromModel ? null : estimateUsage(summary, likelyInput);
  const estimate = likelyUsage && {
    inputTokens: likelyUsage.input,
    outputTokens: likelyUsage.output,
    costUsd: priceOf(likelyUsage, summary.model, model),
  };
  const { input: inputTokens = 0, output: outputTokens = 0, cached: cachedTokens, reasoning } = usage ?? {};
  const usedTokens = estimate ? estimate.inputTokens + estimate.outputTokens : inputTokens + outputTokens;
  const usedUsd = costUsd ?? estimate?.costUsd ?? 0;
  account.longestCall = Math.max(account.longestCall, usedTokens);
  spent.tokens += usedTokens;
  spent.costUsd += usedUsd;
  run.shared?.count(usedUsd);
  if (costUsd === null) spent.unpriced++;
  reportNearLimits(account);
  onEvent({
    type: "usage",
    model: name,
    inputTokens,
    outputTokens,
    cachedTokens,
    ...(usage?.cacheWritten && { cacheWrittenTokens: usage.cacheWritten }),
    ...(usage?.cacheWrittenForHour && { cacheWrittenForHourTokens: usage.cacheWrittenForHour }),
    reasoningTokens: reasoning,
    costUsd,
    ...(estimate && { estimate }),
  });
  if (!usage || !isComplete) {
    const text = `The response of ${name} did not report its token usage, so the cost of this call is unknown.`;
    onEvent({ type: "message", text });
  } else if (costUsd === null) reportUnknownPrice(account, name);
  if (!usage && isComplete)
    failWithoutPrice(account, `${name} does not report token usage`, "use a server that reports it");
  const incompleteReason =
    !usage && summary.model === null
      ? `the response is not from a model API; check the base URL ${model.baseUrl}`
      : "the response ended early";
  const problem = error ?? cutReason ?? (isComplete ? null : incompleteReason);
  if (problem === null) account.failures = 0;
  else if (error !== null || !clientLeft)
    countFailure(account, `sent an incomplete response: ${problem.slice(0, 300)}`, null);
}

/** What a call has probably used whose response did not say so, or was cut before it did. Never less than it has reported. */
function estimateUsage({ usage, chars }: ResponseSummary, likelyInput: number): Usage {
  const none = { cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, reasoning: 0, output: 0 };
  const reported = usage ?? { ...none, input: likelyInput };
  return { ...reported, output: Math.max(reported.output, likelyOutputTokens(chars)) };
}

function endRun(account: CallAccount, failure: AgentFailure): void {
  if (account.failure) return;
  account.failure = failure;
  account.run.onFailure(failure);
}

function countFailure(account: CallAccount, detail: string, retryAfter: string | null): void {
  const { model, onEvent } = account.run;
  const message = `${model.provider} ${detail}`;
  account.failures++;
  onEvent({ type: "error", where: "model", message, url: null, retryable: true });
  if (account.failures < account.maxFailures) return;
  const retryAfterMs = readRetryAfter(retryAfter, account.now());
  const text = account.failures > 1 ? `${message} (${account.failures} failures in a row)` : message;
  const options = { retryable: true, ...(retryAfterMs !== null && { retryAfterMs }) };
  endRun(account, new AgentFailure("infrastructure", text, options));
}

/** Ends a run with a spending limit if its call costs are unknown; returns whether it did. */
function failWithoutPrice(account: CallAccount, reason: string, remedy: string): boolean {
  if (!account.run.mustHavePrice) return false;
  const text = `${reason}, so the spending limit cannot be enforced; ${remedy}, or remove the limit`;
  endRun(account, new AgentFailure("budget", text));
  return true;
}

function reportUnknownPrice(account: CallAccount, name: string): void {
  if (account.isPriceReported) return;
  account.isPriceReported = true;
  if (failWithoutPrice(account, `the price of ${name} is unknown`, "set it in EVALD_MODEL_PRICES")) return;
  const { limits, onEvent } = account.run;
  const consequence = limits.costUsd === null ? "" : `, so its budget of $${limits.costUsd} cannot be enforced`;
  const text = `The price of ${name} is unknown${consequence}. Tokens are limited to ${limits.tokens}. Set prices in EVALD_MODEL_PRICES.`;
  onEvent({ type: "message", text });
}

/** Google returns 400 where others return 401. */
const rejectsKey = ({ provider }: ModelAccess, status: number, detail: string): boolean =>
  status === 401 || status === 403 || (provider === "google" && status === 400 && /api key/i.test(detail));
