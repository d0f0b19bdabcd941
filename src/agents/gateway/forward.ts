import { reasonOf } from "../../errors.ts";
import { openUpstream } from "../../net/upstream.ts";
import type { ModelAccess } from "./prices.ts";
import { createMeter, keyHeader, type ModelRequest, type Reading } from "./wire.ts";

/** Result of a call: a response (complete, or `cut` with a reason), or none. `left`: the client disconnected. */
export type Outcome =
  | { kind: "answered"; reading: Reading; cut: string | null; left: boolean }
  | { kind: "refused"; status: number | null; detail: string; retryAfter: string | null };

type Terms = {
  /** Client headers that are forwarded. */
  headers: Record<string, string>;
  /** Aborts when the client disconnects. */
  gone: AbortSignal;
  /** Maximum time without data. */
  silenceMs: number;
  /** How long an abandoned response is still read, because its usage comes last. */
  drainMs: number;
  onEnd: (outcome: Outcome) => void;
};

const noReading: Reading = { model: null, usage: null, whole: false, error: null };
const maxErrorBytes = 64 * 1024;
const responseHeaders = [
  "content-type",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
  "request-id",
  "x-request-id",
];

/** A call in progress. */
type Call = {
  access: ModelAccess;
  terms: Terms;
  /** Aborts the request to the provider. */
  ending: AbortController;
  silenceTimer: ReturnType<typeof setTimeout>;
  drainTimer: ReturnType<typeof setTimeout> | undefined;
  hasEnded: boolean;
  /** Whether the client has disconnected. */
  left: boolean;
  onDisconnect: () => void;
  /** Cuts the client's side of the response and reads the rest. */
  drain: () => void;
};

/**
 * Sends a call to the provider with the real key and streams the response back unchanged. `onEnd` is called once with
 * the result.
 */
export async function forward(request: ModelRequest, access: ModelAccess, terms: Terms): Promise<Response> {
  const call = startCall(access, terms);
  let upstream: Response;
  try {
    upstream = await openUpstream(access.baseUrl + request.path, {
      headers: { ...terms.headers, ...(access.key ? keyHeader(access.provider, access.key) : {}) },
      body: JSON.stringify(request.body),
      signal: call.ending.signal,
      allow: access.allow,
    });
  } catch (error) {
    // A call that we aborted may still have reached the model and cost money.
    if (call.ending.signal.aborted)
      endCall(call, { kind: "answered", reading: noReading, cut: describe(call, error), left: call.left });
    return refusal(502, `${access.provider} did not respond: ${endRefused(call, null, describe(call, error))}`);
  }
  call.silenceTimer.refresh();
  const headers = new Headers({ "cache-control": "no-store" });
  for (const name of responseHeaders)
    if (upstream.headers.has(name)) headers.set(name, upstream.headers.get(name) ?? "");
  if (!upstream.ok) return await forwardError(call, upstream, headers);
  const body = toBody(
    call,
    upstream,
    createMeter(request.format, /^text\/event-stream/i.test(headers.get("content-type") ?? "")),
  );
  if (call.left) call.drain();
  return new Response(body, { status: upstream.status, headers });
}

function startCall(access: ModelAccess, terms: Terms): Call {
  const { gone, silenceMs, drainMs } = terms;
  const ending = new AbortController();
  const silenceTimer = setTimeout(() => ending.abort(`no data for ${silenceMs / 1000} seconds`), silenceMs);
  const call: Call = {
    ...{ access, terms, ending, silenceTimer, drainTimer: undefined, hasEnded: false, left: false },
    onDisconnect() {
      call.left = true;
      call.drainTimer ??= setTimeout(() => ending.abort("the client disconnected"), drainMs);
      call.drain();
    },
    drain: () => {},
  };
  gone.addEventListener("abort", call.onDisconnect, { once: true });
  if (gone.aborted) call.onDisconnect();
  return call;
}

function endCall(call: Call, outcome: Outcome): void {
  if (call.hasEnded) return;
  call.hasEnded = true;
  clearTimeout(call.silenceTimer);
  clearTimeout(call.drainTimer);
  call.terms.gone.removeEventListener("abort", call.onDisconnect);
  call.terms.onEnd(outcome);
}

/** Ends a call that got no answer; returns the reason without the key. */
function endRefused(call: Call, status: number | null, text: string, retryAfter: string | null = null): string {
  const detail = withoutKey(call, text);
  endCall(call, { kind: "refused", status, detail, retryAfter });
  return detail;
}

const withoutKey = ({ access }: Call, text: string): string =>
  access.key ? text.replaceAll(access.key, "[redacted]") : text;

const describe = ({ ending }: Call, error: unknown): string =>
  ending.signal.aborted ? String(ending.signal.reason) : reasonOf(error).replace(/ For more information.*/s, "");

/** Passes on an error of the provider, without the key. */
async function forwardError(call: Call, upstream: Response, headers: Headers): Promise<Response> {
  const { status } = upstream;
  const text = await readStart(upstream).catch((error) => describe(call, error));
  const detail = endRefused(call, status, describe(call, toMessage(text)), toRetryAfter(upstream.headers));
  if (status < 400) return refusal(502, `${call.access.provider} responded with a redirect, which is not followed`);
  return text.length > maxErrorBytes
    ? refusal(status, detail)
    : new Response(withoutKey(call, text), { status, headers });
}

/** The body of a response, which is measured as it passes. */
function toBody(call: Call, upstream: Response, meter: ReturnType<typeof createMeter>): ReadableStream<Uint8Array> {
  const reader = upstream.body?.getReader();
  return new ReadableStream<Uint8Array>({
    start(stream) {
      call.drain = () => {
        call.drain = () => {};
        cut(stream);
        (async () => {
          while (await readNext(call, reader, meter));
        })().catch(() => {});
      };
    },
    async pull(stream) {
      try {
        const bytes = await readNext(call, reader, meter);
        if (call.left) return;
        if (bytes) stream.enqueue(bytes);
        else stream.close();
      } catch {
        cut(stream);
      }
    },
    cancel: call.onDisconnect,
  });
}

/** The next bytes of a response; null at the end. Throws if the response is cut. */
async function readNext(
  call: Call,
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  meter: ReturnType<typeof createMeter>,
): Promise<Uint8Array | null> {
  try {
    const part = await reader?.read();
    call.silenceTimer.refresh();
    if (part?.value) meter.push(part.value);
    if (part?.value) return part.value;
    endCall(call, { kind: "answered", reading: meter.end(), cut: null, left: call.left });
    return null;
  } catch (error) {
    endCall(call, { kind: "answered", reading: meter.end(), cut: describe(call, error), left: call.left });
    throw error;
  }
}

/** Aborts a stream so that its reader sees it is incomplete. (Bun would print a reason.) */
function cut(stream: ReadableStreamDefaultController): void {
  try {
    stream.error(undefined);
  } catch {
    // Already ended.
  }
}

/** An error of the gateway itself, in a format that every provider's client understands. */
export function refusal(status: number, message: string, code = "gateway"): Response {
  return Response.json({ type: "error", error: { type: code, code: status, status: code, message } }, { status });
}

async function readStart(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > maxErrorBytes) break;
  }
  return text;
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
