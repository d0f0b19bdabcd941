import { providerVariables } from "../../config/model-settings.ts";
import { readRetryAfter } from "../../net/retry-after.ts";
import { toAgentFailure } from "../agent.ts";
import { codeOfCall } from "../endings.ts";
import type { FailedCode } from "../failure.ts";
import { type CallAccount, endRun, failWithoutPrice, reportNearLimits, reportUnknownPrice } from "./call-account.ts";
import type { CallOutcome } from "./forward.ts";
import { type ModelAccess, priceOf } from "./prices.ts";
import { likelyOutputTokens } from "./token-estimate.ts";
import type { ResponseSummary, Usage } from "./wire.ts";

/** Records a finished call, and ends the run if it cannot continue. */
export function settleCall(account: CallAccount, outcome: CallOutcome, likelyInput: number): void {
  if (outcome.kind === "refused") settleRefusal(account, outcome);
  else settleAnswer(account, outcome, likelyInput);
}

function settleRefusal(
  account: CallAccount,
  { status, detail, retryAfter }: Extract<CallOutcome, { kind: "refused" }>,
): void {
  const { model } = account.run;
  const facts = { code: codeOfCall(status), subject: model.id };
  if (status === null) countFailure(account, `did not respond: ${detail}`, null, facts);
  else if (status === 402) {
    const reason = `${model.provider} requires payment (402): ${detail}; top up the account, or use another key`;
    endRun(account, toAgentFailure("key_rejected", reason, facts));
  } else if (status === 404) {
    const reason = `${model.provider} returned 404: ${detail}; check that ${model.baseUrl} serves the model ${model.name} and includes the API version in its path, if the provider uses one`;
    endRun(account, toAgentFailure("provider_rejected", reason, facts));
  } else if (rejectsKey(model, status, detail)) {
    const remedy = `set a valid key in ${providerVariables[model.provider].key}, or for the organization with evald model set-key ${model.provider}`;
    const reason = `${model.provider} rejected the API key (${status}): ${detail}; ${remedy}`;
    endRun(account, toAgentFailure("key_rejected", reason, { ...facts, code: "model_key_refused" }));
  } else if (status < 400 || status === 429 || status >= 500)
    countFailure(account, `returned ${status}: ${detail}`, retryAfter, facts);
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
  const finalUsage = isComplete ? usage : null;
  const costUsd = finalUsage && priceOf(finalUsage, summary.model, model);
  // A response that names no model, such as a web page, cost nothing, unless it was cut before it could name one.
  const isFromModel = summary.model !== null || cutReason !== null;
  const estimate = finalUsage === null && isFromModel ? toEstimate(summary, likelyInput, model) : null;
  const { input: inputTokens = 0, output: outputTokens = 0, cached: cachedTokens, reasoning } = usage ?? {};
  const usedTokens = estimate ? estimate.inputTokens + estimate.outputTokens : inputTokens + outputTokens;
  const usedUsd = costUsd ?? estimate?.costUsd ?? 0;
  account.longestCall = Math.max(account.longestCall, usedTokens);
  spent.tokens += usedTokens;
  spent.costUsd += usedUsd;
  for (const budget of run.shared ?? []) budget.count(usedUsd);
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
  if (finalUsage === null) {
    const text = `The response of ${name} did not report its token usage, so the cost of this call is unknown.`;
    onEvent({ type: "message", text });
  } else if (costUsd === null) reportUnknownPrice(account, name);
  if (!usage && isComplete)
    failWithoutPrice(account, `${name} does not report token usage`, "use a server that reports it");
  const problem = error ?? cutReason ?? findIncompleteness(summary, model);
  // A response that the agent itself didn't read to its end is no failure.
  const isFailure = problem !== null && (error !== null || !clientLeft);
  if (problem === null) {
    account.failures = 0;
    account.lastFailure = null;
  } else if (isFailure)
    countFailure(account, `sent an incomplete response: ${problem.slice(0, 300)}`, null, {
      code: "model_answer_incomplete",
      subject: model.id,
    });
}

/** Why a response that was neither an error nor cut off is incomplete; null if it isn't. */
function findIncompleteness({ usage, model, isComplete }: ResponseSummary, { baseUrl }: ModelAccess): string | null {
  if (isComplete) return null;
  return usage === null && model === null
    ? `the response is not from a model API; check the base URL ${baseUrl}`
    : "the response ended early";
}

function toEstimate(summary: ResponseSummary, likelyInput: number, model: ModelAccess) {
  const usage = estimateUsage(summary, likelyInput);
  return { inputTokens: usage.input, outputTokens: usage.output, costUsd: priceOf(usage, summary.model, model) };
}

/** What a call has probably used if its response did not say so, or was cut before it did. It is never less than what the response reported. */
function estimateUsage({ usage, chars }: ResponseSummary, likelyInput: number): Usage {
  const none = { cached: 0, cacheWritten: 0, cacheWrittenForHour: 0, reasoning: 0, output: 0 };
  const reported = usage ?? { ...none, input: likelyInput };
  return { ...reported, output: Math.max(reported.output, likelyOutputTokens(chars)) };
}

function countFailure(
  account: CallAccount,
  detail: string,
  retryAfter: string | null,
  facts: { code: FailedCode; subject: string },
): void {
  const { model, onEvent } = account.run;
  const message = `${model.provider} ${detail}`;
  account.failures++;
  onEvent({ type: "error", where: "model", message, url: null, retryable: true });
  const retryAfterMs = readRetryAfter(retryAfter, account.now());
  const text = account.failures > 1 ? `${message} (${account.failures} failures in a row)` : message;
  const ending = facts.code === "model_answer_incomplete" ? "cut_answer" : "provider_fault";
  account.lastFailure = toAgentFailure(ending, text, { ...facts, ...(retryAfterMs !== null && { retryAfterMs }) });
  if (account.failures >= account.maxFailures) endRun(account, account.lastFailure);
}

/** Whether a response rejects the key. Google returns 400 where others return 401. */
const rejectsKey = ({ provider }: ModelAccess, status: number, detail: string): boolean =>
  status === 401 || status === 403 || (provider === "google" && status === 400 && /api key/i.test(detail));
