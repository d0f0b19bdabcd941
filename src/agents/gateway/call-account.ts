import { providerVariables } from "../../config/model-settings.ts";
import { readRetryAfter } from "../../net/retry-after.ts";
import { type AgentEvent, AgentFailure } from "../agent.ts";
import { createBudget, type ModelLimits } from "./budget.ts";
import type { Outcome } from "./forward.ts";
import { hasPrice, type ModelAccess, priceOf } from "./prices.ts";

export type AccountOptions = {
  model: ModelAccess;
  limits: ModelLimits;
  /** A call of unknown cost ends the run, because its spending limit could not be enforced. */
  mustHavePrice?: boolean;
  onEvent: (event: AgentEvent) => void;
  /** Called once per limit, at 80 %. */
  onNearLimit?: (limit: keyof ModelLimits, share: number) => void;
  /** Called once, when the run cannot continue with its model. */
  onFailure: (failure: AgentFailure) => void;
};

export type CallAccount = ReturnType<typeof createCallAccount>;

/** Records the cost and failures of a run's model calls, and ends the run if it cannot continue. */
export function createCallAccount(
  { model, limits, mustHavePrice = false, onEvent, onNearLimit = () => {}, onFailure }: AccountOptions,
  { now, maxFailures }: { now: () => number; maxFailures: number },
) {
  const near = new Set<string>();
  const budget = createBudget(limits, {
    onEvent,
    onNearLimit(limit, name, share) {
      near.add(name);
      onNearLimit(limit, share);
    },
  });
  let failures = 0;
  let failure: AgentFailure | null = null;
  let isPriceReported = false;

  function fail(why: AgentFailure): void {
    if (failure) return;
    failure = why;
    onFailure(why);
  }

  function failed(detail: string, retryAfter: string | null): void {
    failures++;
    onEvent({ type: "error", where: "model", message: `${model.provider} ${detail}`, url: null, retryable: true });
    if (failures < maxFailures) return;
    const retryAfterMs = readRetryAfter(retryAfter, now());
    const text = `${model.provider} ${detail}${failures > 1 ? ` (${failures} failures in a row)` : ""}`;
    fail(
      new AgentFailure("infrastructure", text, {
        retryable: true,
        ...(retryAfterMs !== null && { retryAfterMs }),
      }),
    );
  }

  /** Ends a run with a spending limit if its call costs are unknown; returns whether it did. */
  function failIfPriceNeeded(why: string, remedy: string): boolean {
    if (!mustHavePrice) return false;
    const text = `${why}, so the spending limit cannot be enforced; ${remedy}, or remove the limit`;
    fail(new AgentFailure("budget", text));
    return true;
  }

  function reportUnknownPrice(name: string): void {
    if (isPriceReported) return;
    isPriceReported = true;
    if (failIfPriceNeeded(`the price of ${name} is unknown`, "set it in EVALD_MODEL_PRICES")) return;
    const cannot = limits.costUsd === null ? "" : `, so its budget of $${limits.costUsd} cannot be enforced`;
    const text = `The price of ${name} is unknown${cannot}. Tokens are limited to ${limits.tokens}. Set prices in EVALD_MODEL_PRICES.`;
    onEvent({ type: "message", text });
  }

  function refused({ status, detail, retryAfter }: Extract<Outcome, { kind: "refused" }>): void {
    if (status === null) failed(`did not respond: ${detail}`, null);
    else if (status === 402) {
      const why = `${model.provider} requires payment (402): ${detail}; top up the account, or use another key`;
      fail(new AgentFailure("credentials", why));
    } else if (status === 404) {
      const why = `${model.provider} returned 404: ${detail}; check that ${model.baseUrl} serves the model ${model.name} and includes the API version in its path, if the provider uses one`;
      fail(new AgentFailure("infrastructure", why));
    } else if (isRefusedKey(model, status, detail)) {
      const remedy = `set a valid key in ${providerVariables[model.provider].key}, or for the organization with evald model set-key ${model.provider}`;
      fail(new AgentFailure("credentials", `${model.provider} rejected the API key (${status}): ${detail}; ${remedy}`));
    } else if (status < 400 || status === 429 || status >= 500) failed(`returned ${status}: ${detail}`, retryAfter);
  }

  function answered({ reading, cut, left }: Exclude<Outcome, { kind: "refused" }>): void {
    const { usage, whole, error } = reading;
    const name = reading.model ?? model.name;
    const costUsd = usage && whole ? priceOf(usage, reading.model, model) : null;
    const { input: inputTokens = 0, output: outputTokens = 0, cached: cachedTokens, reasoning } = usage ?? {};
    budget.spend(inputTokens + outputTokens, costUsd);
    onEvent({
      type: "usage",
      model: name,
      inputTokens,
      outputTokens,
      cachedTokens,
      reasoningTokens: reasoning,
      costUsd,
    });
    if (!usage || !whole)
      onEvent({
        type: "message",
        text: `The response of ${name} did not report its token usage, so the cost of this call is unknown.`,
      });
    else if (costUsd === null) reportUnknownPrice(name);
    if (!usage && whole) failIfPriceNeeded(`${name} does not report token usage`, "use a server that reports it");
    const unlike = !usage && reading.model === null;
    const unread = unlike
      ? `the response is not from a model API; check the base URL ${model.baseUrl}`
      : "the response ended early";
    const problem = error ?? cut ?? (whole ? null : unread);
    if (problem === null) failures = 0;
    else if (error !== null || !left) failed(`sent an incomplete response: ${problem.slice(0, 300)}`, null);
  }

  if (!hasPrice(model)) reportUnknownPrice(model.name);
  return {
    budget,
    /** Limits that are nearly reached, reported to the caller of the model. */
    near,
    failure: () => failure,
    /** Records a finished call. */
    settle: (outcome: Outcome): void => (outcome.kind === "refused" ? refused(outcome) : answered(outcome)),
  };
}

/** Google returns 400 where others return 401. */
const isRefusedKey = ({ provider }: ModelAccess, status: number, detail: string): boolean =>
  status === 401 || status === 403 || (provider === "google" && status === 400 && /api key/i.test(detail));
