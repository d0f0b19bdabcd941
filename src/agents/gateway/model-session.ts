import { parseObject } from "../fields.ts";
import { type Admission, admitCall } from "./admission.ts";
import type { CallAccount } from "./call-account.ts";
import { type CallOutcome, forward, refusalResponse } from "./forward.ts";
import { addOutputLimit, lowerOutputLimit, type RequestedOutput, readRequestedOutput } from "./output-limit.ts";
import type { Need } from "./reserves.ts";
import { likelyInputTokens, maxInputTokens } from "./token-estimate.ts";
import {
  findEndpoint,
  findProviderTool,
  type ModelRequest,
  nearLimitHeader,
  toInvalidRequest,
  toModelRequest,
} from "./wire.ts";

/** The calls of one run to its one model. */
export type ModelSession = {
  account: CallAccount;
  /** Maximum time without data from the model. */
  silenceMs: number;
  /** How long an abandoned response is still read, to learn its cost. */
  drainMs: number;
  /** Whether the run may call its model here. An agent with a login calls its vendor itself. */
  takesCalls: boolean;
  /** Whether its requests may search the web at the provider. */
  allowsWebSearch: boolean;
  /** Lets the service do other work first. It is called before each part of a call that takes long for a large request. */
  waitForTurn: () => Promise<void>;
  /** Aborts when the run ends. */
  closing: AbortController;
  activeCalls: Set<Promise<void>>;
};

const maxCallsAtOnce = 16;
/** Maximum output tokens of a call without a limit of its own. It is the highest maximum of current models. */
const highestOutput = 128_000;
/** Output limits in tokens to try for a model with a lower maximum. */
const smallerOutputs = [8_192, 4_096];
const forwardedHeaders = ["accept", "anthropic-version", "anthropic-beta", "openai-beta"];

/** Forwards a request to the model, if it is allowed and within the run's limits. */
export async function answerCall(session: ModelSession, request: Request): Promise<Response> {
  const { account, closing, activeCalls } = session;
  const reading = await readCall(session, request);
  if (reading instanceof Response) return reading;
  const { call, requested, bytes } = reading;
  await session.waitForTurn();
  const refusal = findRefusal(session);
  if (refusal) return refusal;
  if (activeCalls.size >= maxCallsAtOnce)
    return refusalResponse(429, `a run may make at most ${maxCallsAtOnce} concurrent calls`, "too_many_calls");

  const need = needOf(session, call, requested, bytes);
  const likelyInput = likelyInputTokens(call, bytes);
  const end = Promise.withResolvers<void>();
  activeCalls.add(end.promise);
  const endCall = () => {
    activeCalls.delete(end.promise);
    end.resolve();
  };
  const clientSignal = AbortSignal.any([request.signal, closing.signal]);
  const admission = await admitCall(account, need, clientSignal).catch((error) => {
    endCall();
    throw error;
  });
  if (admission === "aborted") {
    endCall();
    return findRefusal(session) ?? refusalResponse(499, "the client disconnected", "disconnected");
  }
  if ("message" in admission) {
    endCall();
    return refusalResponse(402, admission.message, "budget_exhausted");
  }
  const response = await send(session, { call, requested, admission }, request.headers, clientSignal, (outcome) => {
    endCall();
    admission.settle(outcome, likelyInput);
  });
  if (account.nearLimits.size > 0) response.headers.set(nearLimitHeader, [...account.nearLimits].join(","));
  return response;
}

/** A call of the model, the output that it asks for, and the size of its body. */
type RequestedCall = { call: ModelRequest; requested: RequestedOutput; bytes: number };

/** Reads the call in a request. Returns a response if it isn't allowed. */
async function readCall(
  { account, allowsWebSearch, takesCalls, waitForTurn }: ModelSession,
  request: Request,
): Promise<RequestedCall | Response> {
  if (!takesCalls)
    return refusalResponse(
      403,
      "an agent with a login must call its vendor itself; remove in login.env of its entry what names the gateway",
      "forbidden",
    );
  const { model } = account.run;
  const endpoint = request.method === "POST" ? findEndpoint(model.provider, new URL(request.url)) : null;
  if (!endpoint) return refusalResponse(404, `this is not a supported ${model.provider} endpoint`, "not_found");
  // The server itself rejects bodies that are too large with 413.
  const text = await request.text().catch(() => "");
  await waitForTurn();
  const body = parseObject(text);
  if (!body) return refusalResponse(400, "the request must be a JSON object", "bad_request");
  const call = toModelRequest(endpoint, body);
  if (call.model !== model.name)
    return refusalResponse(403, `this run may only call the model ${model.name}`, "forbidden");
  const providerTool = findProviderTool(call, allowsWebSearch);
  if (providerTool !== null)
    return refusalResponse(403, `tools that run at the provider are not allowed: ${providerTool}`, "forbidden");
  const requested = readRequestedOutput(call);
  if ("field" in requested)
    return Response.json(toInvalidRequest(call.format, requested.field, requested.message), { status: 400 });
  return { call, requested, bytes: Buffer.byteLength(text) };
}

/** Why a session takes no more calls; null if it does. */
function findRefusal({ account, closing }: ModelSession): Response | null {
  if (account.failure) return refusalResponse(403, `the run has ended: ${account.failure.detail}`, "run_ended");
  return closing.signal.aborted ? refusalResponse(401, "the run has ended", "unauthorized") : null;
}

/** Fields that name input which the provider has kept. */
const keptInputField = /^(previous_?response_?id|conversation|cached_?content)$/i;

function needOf(
  { account }: ModelSession,
  call: ModelRequest,
  { maxTokens, answers }: RequestedOutput,
  bytes: number,
): Need {
  const hasKeptInput = Object.entries(call.body).some(([name, value]) => value != null && keptInputField.test(name));
  return {
    input: maxInputTokens(call, bytes) + (hasKeptInput ? account.longestCall : 0),
    output: (maxTokens ?? highestOutput) * answers,
  };
}

type AdmittedCall = { call: ModelRequest; requested: RequestedOutput; admission: Admission };

/** Sends a call with as much output as it may have. If the maximum of its model is lower, tries again with lower limits. */
async function send(
  { account, silenceMs, drainMs }: ModelSession,
  { call, requested: { maxTokens, answers }, admission }: AdmittedCall,
  clientHeaders: Headers,
  clientSignal: AbortSignal,
  onEnd: (outcome: CallOutcome) => void,
): Promise<Response> {
  const { model } = account.run;
  const headers: Record<string, string> = {};
  for (const header of forwardedHeaders) {
    const value = clientHeaders.get(header);
    if (value !== null) headers[header] = value;
  }
  const attempt = (request: ModelRequest, onOutcome = onEnd) =>
    forward(request, model, { headers, clientSignal, silenceMs, drainMs, onEnd: onOutcome });
  const affordable = Math.max(1, Math.floor(admission.output / answers));
  if (affordable >= (maxTokens ?? highestOutput)) return await attempt(call);
  if (maxTokens !== null) return await attempt(lowerOutputLimit(call, affordable));
  for (;;) {
    const limit = Math.min(affordable, account.maxOutput);
    const limitedCall = addOutputLimit(call, model.provider, limit);
    const smaller = smallerOutputs.find((each) => each < limit);
    if (smaller === undefined) return await attempt(limitedCall);
    let isTooHigh = false;
    const response = await attempt(limitedCall, (outcome) => {
      isTooHigh = rejectsOutputLimit(outcome);
      if (!isTooHigh) onEnd(outcome);
    });
    if (!isTooHigh) return response;
    account.maxOutput = smaller;
  }
}

/** Whether a provider rejects a request because of its output limit, which such messages name. */
const rejectsOutputLimit = (outcome: CallOutcome): boolean =>
  outcome.kind === "refused" && outcome.status === 400 && /max_?((completion|output)_?)?tokens/i.test(outcome.detail);

/** Ends a session. Resolves when all of its calls have finished. */
export async function closeSession({ closing, activeCalls }: ModelSession): Promise<void> {
  closing.abort();
  await Promise.all(activeCalls);
}
