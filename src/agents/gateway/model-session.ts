import { parseObject } from "../fields.ts";
import { type CallAccount, countCall, remainingUsd, settleCall } from "./call-account.ts";
import { forward, refusalResponse } from "./forward.ts";
import { affordableOutput } from "./prices.ts";
import { findEndpoint, findProviderTool, limitOutput, nearLimitHeader, toModelRequest } from "./wire.ts";

/** The calls of one run to its one model. */
export type ModelSession = {
  account: CallAccount;
  /** Maximum time without data from the model. */
  silenceMs: number;
  /** How long an abandoned response is still read, to learn its cost. */
  drainMs: number;
  /** Aborts when the run ends. */
  closing: AbortController;
  activeCalls: Set<Promise<void>>;
};

const maxCallsAtOnce = 16;
/** Minimum output tokens of a call, however little budget is left. */
const minOutputTokens = 1_000;
const forwardedHeaders = ["accept", "anthropic-version", "anthropic-beta", "openai-beta"];

/** Forwards a request to the model, if it is allowed and within the run's limits. */
export async function answerCall(session: ModelSession, request: Request): Promise<Response> {
  const { account, closing, activeCalls, silenceMs, drainMs } = session;
  const { model } = account.run;
  const endpoint = request.method === "POST" ? findEndpoint(model.provider, new URL(request.url)) : null;
  if (!endpoint) return refusalResponse(404, `this is not a supported ${model.provider} endpoint`, "not_found");
  // The server itself rejects bodies that are too large with 413.
  const body = parseObject(await request.text().catch(() => ""));
  if (!body) return refusalResponse(400, "the request must be a JSON object", "bad_request");
  const call = toModelRequest(endpoint, body);
  if (call.model !== model.name)
    return refusalResponse(403, `this run may only call the model ${model.name}`, "forbidden");
  const providerTool = findProviderTool(call);
  if (providerTool !== null)
    return refusalResponse(403, `tools that run at the provider are not allowed: ${providerTool}`, "forbidden");
  if (account.failure) return refusalResponse(403, `the run has ended: ${account.failure.detail}`, "run_ended");
  if (closing.signal.aborted) return refusalResponse(401, "the run has ended", "unauthorized");
  if (activeCalls.size >= maxCallsAtOnce)
    return refusalResponse(429, `a run may make at most ${maxCallsAtOnce} concurrent calls`, "too_many_calls");
  const objection = countCall(account);
  if (objection) return refusalResponse(402, objection, "budget_exhausted");

  const headers: Record<string, string> = {};
  for (const header of forwardedHeaders) {
    const value = request.headers.get(header);
    if (value !== null) headers[header] = value;
  }
  const end = Promise.withResolvers<void>();
  activeCalls.add(end.promise);
  // Input can't be limited beforehand; output is limited by the remaining budget.
  const limitedCall = limitOutput(call, Math.max(minOutputTokens, affordableOutput(remainingUsd(account), model)));
  const response = await forward(limitedCall, model, {
    headers,
    clientSignal: AbortSignal.any([request.signal, closing.signal]),
    silenceMs,
    drainMs,
    onEnd(outcome) {
      activeCalls.delete(end.promise);
      end.resolve();
      settleCall(account, outcome);
    },
  });
  if (account.nearLimits.size > 0) response.headers.set(nearLimitHeader, [...account.nearLimits].join(","));
  return response;
}

/** Ends a session. Resolves when all of its calls have finished. */
export async function closeSession({ closing, activeCalls }: ModelSession): Promise<void> {
  closing.abort();
  await Promise.all(activeCalls);
}
