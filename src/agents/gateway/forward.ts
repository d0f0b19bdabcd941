import { reasonOf } from "../../errors.ts";
import { readTextStart } from "../../net/text-start.ts";
import { openUpstream } from "../../net/upstream.ts";
import type { ModelAccess } from "./prices.ts";
import { createMeter, emptySummary, keyHeader, type ModelRequest, type ResponseSummary } from "./wire.ts";

/** Result of a call: a response, or none. A response with a `cutReason` was cut off. `clientLeft`: the client disconnected. */
export type CallOutcome =
  | { kind: "answered"; summary: ResponseSummary; cutReason: string | null; clientLeft: boolean }
  | { kind: "refused"; status: number | null; detail: string; retryAfter: string | null };

type CallOptions = {
  /** Client headers that are forwarded. */
  headers: Record<string, string>;
  /** Aborts when the client disconnects. */
  clientSignal: AbortSignal;
  /** Maximum time without data. */
  silenceMs: number;
  /** How long a response without a client is still read. Its usage comes at its end. */
  drainMs: number;
  onEnd: (outcome: CallOutcome) => void;
};

const maxErrorChars = 64 * 1024;
/** Headers of the provider that the client gets. */
const responseHeaders = "content-type retry-after retry-after-ms x-should-retry request-id x-request-id".split(" ");

/** A call in progress. */
type Call = {
  access: ModelAccess;
  options: CallOptions;
  /** Aborts the request to the provider. */
  controller: AbortController;
  silenceTimer: ReturnType<typeof setTimeout>;
  drainTimer: ReturnType<typeof setTimeout> | undefined;
  hasEnded: boolean;
  /** Whether the client has disconnected. */
  clientLeft: boolean;
  onDisconnect: () => void;
  /** Cuts off the client's side of the response and reads the rest. Does nothing before there is a response. */
  drain: () => void;
};

/** Sends a call to the provider with the real key, and streams the response back unchanged. `onEnd` is called once with the result. */
export async function forward(request: ModelRequest, access: ModelAccess, options: CallOptions): Promise<Response> {
  const call = startCall(access, options);
  let upstream: Response;
  try {
    upstream = await openUpstream(access.baseUrl + request.path, {
      headers: { ...options.headers, ...(access.key ? keyHeader(access.provider, access.key) : {}) },
      body: JSON.stringify(request.body),
      signal: call.controller.signal,
      allow: access.allow,
    });
  } catch (error) {
    const detail = withoutKey(call, describeError(call, error));
    // A call that was aborted here may still have reached the model and cost money.
    if (call.controller.signal.aborted) endAnswered(call, emptySummary, detail);
    else endCall(call, { kind: "refused", status: null, detail, retryAfter: null });
    return refusalResponse(502, `${access.provider} did not respond: ${detail}`);
  }
  call.silenceTimer.refresh();
  const headers = new Headers({ "cache-control": "no-store" });
  for (const name of responseHeaders)
    if (upstream.headers.has(name)) headers.set(name, upstream.headers.get(name) ?? "");
  if (!upstream.ok) return await forwardError(call, upstream, headers);
  const isStream = /^text\/event-stream/i.test(headers.get("content-type") ?? "");
  const body = toBody(call, upstream, createMeter(request.format, isStream));
  if (call.clientLeft) call.drain();
  return new Response(body, { status: upstream.status, headers });
}

function startCall(access: ModelAccess, options: CallOptions): Call {
  const { clientSignal, silenceMs, drainMs } = options;
  const controller = new AbortController();
  const silenceTimer = setTimeout(() => controller.abort(`no data for ${silenceMs / 1000} seconds`), silenceMs);
  const call: Call = {
    access,
    options,
    controller,
    silenceTimer,
    drainTimer: undefined,
    hasEnded: false,
    clientLeft: false,
    onDisconnect() {
      if (call.clientLeft) return;
      call.clientLeft = true;
      call.drainTimer = setTimeout(() => controller.abort("the client disconnected"), drainMs);
      call.drain();
    },
    drain: () => {},
  };
  clientSignal.addEventListener("abort", call.onDisconnect, { once: true });
  if (clientSignal.aborted) call.onDisconnect();
  return call;
}

/** Ends a call, unless it has ended already. */
function endCall(call: Call, outcome: CallOutcome): void {
  if (call.hasEnded) return;
  call.hasEnded = true;
  clearTimeout(call.silenceTimer);
  clearTimeout(call.drainTimer);
  call.options.clientSignal.removeEventListener("abort", call.onDisconnect);
  call.options.onEnd(outcome);
}

const endAnswered = (call: Call, summary: ResponseSummary, cutReason: string | null): void =>
  endCall(call, { kind: "answered", summary, cutReason, clientLeft: call.clientLeft });

const withoutKey = ({ access }: Call, text: string): string =>
  access.key ? text.replaceAll(access.key, "[redacted]") : text;

const describeError = ({ controller }: Call, error: unknown): string =>
  controller.signal.aborted
    ? String(controller.signal.reason)
    : reasonOf(error).replace(/ For more information.*/s, "");

/** Passes on an error of the provider, without the key. */
async function forwardError(call: Call, upstream: Response, headers: Headers): Promise<Response> {
  const { status } = upstream;
  const text = await readTextStart(upstream, maxErrorChars).catch((error) => describeError(call, error));
  const detail = withoutKey(call, describeError(call, toMessage(text)));
  endCall(call, { kind: "refused", status, detail, retryAfter: toRetryAfter(upstream.headers) });
  if (status < 400)
    return refusalResponse(502, `${call.access.provider} responded with a redirect, which is not followed`);
  return text.length > maxErrorChars
    ? refusalResponse(status, detail)
    : new Response(withoutKey(call, text), { status, headers });
}

type Meter = ReturnType<typeof createMeter>;

/** The body of a response, which is measured as it passes. */
function toBody(call: Call, upstream: Response, meter: Meter): ReadableStream<Uint8Array> {
  const reader = upstream.body?.getReader();
  return new ReadableStream<Uint8Array>({
    start(stream) {
      call.drain = () => {
        abortStream(stream);
        readRest(call, reader, meter).catch(() => {});
      };
    },
    async pull(stream) {
      try {
        const bytes = await readNext(call, reader, meter);
        if (call.clientLeft) return;
        if (bytes) stream.enqueue(bytes);
        else stream.close();
      } catch {
        abortStream(stream);
      }
    },
    cancel: call.onDisconnect,
  });
}

type BodyReader = ReadableStreamDefaultReader<Uint8Array> | undefined;

async function readRest(call: Call, reader: BodyReader, meter: Meter): Promise<void> {
  let bytes: Uint8Array | null;
  do bytes = await readNext(call, reader, meter);
  while (bytes !== null);
}

/** The next bytes of a response; null at the end. Throws if the response is cut. */
async function readNext(call: Call, reader: BodyReader, meter: Meter): Promise<Uint8Array | null> {
  try {
    const { value = null } = (await reader?.read()) ?? {};
    call.silenceTimer.refresh();
    if (value !== null) {
      meter.push(value);
      return value;
    }
    endAnswered(call, meter.end(), null);
    return null;
  } catch (error) {
    endAnswered(call, meter.end(), describeError(call, error));
    throw error;
  }
}

/** Aborts a stream so that its reader sees it is incomplete. (Bun would print a reason.) */
function abortStream(stream: ReadableStreamDefaultController): void {
  try {
    stream.error(undefined);
  } catch {
    // Already ended.
  }
}

/** An error of the gateway itself, in a format that every provider's client understands. */
export function refusalResponse(status: number, message: string, code = "gateway"): Response {
  return Response.json({ type: "error", error: { type: code, code: status, status: code, message } }, { status });
}

/** The message in an error body, on one line. */
function toMessage(text: string): string {
  let message = text;
  try {
    const value = JSON.parse(text);
    message = String((Array.isArray(value) ? value[0] : value)?.error?.message ?? value?.message ?? text);
  } catch {
    // Not JSON: use the text itself.
  }
  return message.replace(/\s+/g, " ").trim().slice(0, 300);
}

const toRetryAfter = (headers: Headers): string | null => {
  const ms = headers.get("retry-after-ms");
  return ms && /^\d+$/.test(ms) ? String(Number(ms) / 1000) : headers.get("retry-after");
};
