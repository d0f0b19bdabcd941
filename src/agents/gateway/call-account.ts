import { providerVariables } from "../../config/model-settings.ts";
import { readRetryAfter } from "../../net/retry-after.ts";
import { type AgentEvent, AgentFailure } from "../agent.ts";
import type { CallOutcome } from "./forward.ts";
import { hasPrice, type ModelAccess, priceOf } from "./prices.ts";

/** Model limits of a run. `costUsd` null: no spending limit. */
export type ModelLimits = { calls: number; tokens: number; costUsd: number | null };

/** A run's use of its model. */
export type ModelRun = {
  model: ModelAccess;
  limits: ModelLimits;
  /** A call of unknown cost ends the run, because its spending limit could not be enforced. */
  mustHavePrice?: boolean;
  onEvent: (event: AgentEvent) => void;
  /** Called once, when the run cannot continue with its model. */
  onFailure: (failure: AgentFailure) => void;
};

/** Usage of a run. `costUsd` is the known cost; calls without a price are counted in `unpriced`. */
export type ModelSpending = { calls: number; tokens: number; costUsd: number; unpriced: number };

/** The cost and failures of a run's model calls. */
export type CallAccount = {
  run: ModelRun;
  spent: ModelSpending;
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

/** The remaining budget in USD; Infinity without a limit. */
export const remainingUsd = ({ run, spent }: CallAccount): number =>
  Math.max(0, (run.limits.costUsd ?? Number.POSITIVE_INFINITY) - spent.costUsd);

/** Counts a new call; returns an error message if it is over budget. */
export function countCall(account: CallAccount): string | null {
  const { run, spent, reportedReachedLimits } = account;
  const exceededLimit = limitKinds.find((kind) => shareOf(account, kind) >= 1);
  if (exceededLimit === undefined) {
    spent.calls++;
    reportNearLimits(account);
    return null;
  }
  const value = run.limits[exceededLimit] as number;
  const { limit, unit } = limitNames[exceededLimit];
  if (!reportedReachedLimits.has(limit)) run.onEvent({ type: "limit", limit, unit, value });
  reportedReachedLimits.add(limit);
  return `the run has used its model budget of ${exceededLimit === "costUsd" ? `$${value}` : `${value} ${exceededLimit}`}`;
}

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
export function settleCall(account: CallAccount, outcome: CallOutcome): void {
  if (outcome.kind === "refused") settleRefusal(account, outcome);
  else settleAnswer(account, outcome);
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
): void {
  const { run, spent } = account;
  const { model, onEvent } = run;
  const { usage, isComplete, error } = summary;
  const name = summary.model ?? model.name;
  const costUsd = usage && isComplete ? priceOf(usage, summary.model, model) : null;
  const { input: inputTokens = 0, output: outputTokens = 0, cached: cachedTokens, reasoning } = usage ?? {};
  spent.tokens += inputTokens + outputTokens;
  if (costUsd === null) spent.unpriced++;
  else spent.costUsd += costUsd;
  reportNearLimits(account);
  const tokens = { inputTokens, outputTokens, cachedTokens, reasoningTokens: reasoning };
  onEvent({ type: "usage", model: name, ...tokens, costUsd });
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
