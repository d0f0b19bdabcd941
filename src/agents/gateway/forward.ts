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

/**
 * Sends a call to the provider with the real key and streams the response back unchanged. `onEnd` is called once with
 * the result.
 */
export async function forward(request: ModelRequest, access: ModelAccess, terms: Terms): Promise<Response> {
  const { gone, silenceMs, drainMs } = terms;
  const ending = new AbortController();
  const silenceTimer = setTimeout(() => ending.abort(`no data for ${silenceMs / 1000} seconds`), silenceMs);
  let drainTimer: ReturnType<typeof setTimeout> | undefined;
  let ended = false;
  let left = false;
  let leave = () => {};
  const onDisconnect = () => {
    left = true;
    drainTimer ??= setTimeout(() => ending.abort("the client disconnected"), drainMs);
    leave();
  };
  gone.addEventListener("abort", onDisconnect, { once: true });
  if (gone.aborted) onDisconnect();

  function end(outcome: Outcome): void {
    if (ended) return;
    ended = true;
    clearTimeout(silenceTimer);
    clearTimeout(drainTimer);
    gone.removeEventListener("abort", onDisconnect);
    terms.onEnd(outcome);
  }
  const describe = (error: unknown): string =>
    ending.signal.aborted
      ? String(ending.signal.reason)
      : (error instanceof Error ? error.message : String(error)).replace(/ For more information.*/s, "");
  const withoutKey = (text: string) => (access.key ? text.replaceAll(access.key, "[redacted]") : text);

  function refused(status: number | null, error: unknown, retryAfter: string | null = null): string {
    const detail = withoutKey(describe(error));
    end({ kind: "refused", status, detail, retryAfter });
    return detail;
  }

  let upstream: Response;
  try {
    upstream = await openUpstream(access.baseUrl + request.path, {
      headers: { ...terms.headers, ...(access.key ? keyHeader(access.provider, access.key) : {}) },
      body: JSON.stringify(request.body),
      signal: ending.signal,
      allow: access.allow,
    });
  } catch (error) {
    // A call that we aborted may still have reached the model and cost money.
    if (ending.signal.aborted) end({ kind: "answered", reading: noReading, cut: describe(error), left });
    return refusal(502, `${access.provider} did not respond: ${refused(null, error)}`);
  }
  silenceTimer.refresh();
  const headers = new Headers({ "cache-control": "no-store" });
  for (const name of responseHeaders)
    if (upstream.headers.has(name)) headers.set(name, upstream.headers.get(name) ?? "");

  if (!upstream.ok) {
    const text = await readStart(upstream).catch(describe);
    const detail = refused(upstream.status, toMessage(text), toRetryAfter(upstream.headers));
    if (upstream.status < 400)
      return refusal(502, `${access.provider} responded with a redirect, which is not followed`);
    return text.length > maxErrorBytes
      ? refusal(upstream.status, detail)
      : new Response(withoutKey(text), { status: upstream.status, headers });
  }

  const meter = createMeter(request.format, /^text\/event-stream/i.test(headers.get("content-type") ?? ""));
  const reader = upstream.body?.getReader();
  /** The next bytes; null at the end. Throws if the response is cut. */
  async function next(): Promise<Uint8Array | null> {
    try {
      const part = await reader?.read();
      silenceTimer.refresh();
      if (part?.value) meter.push(part.value);
      if (part?.value) return part.value;
      end({ kind: "answered", reading: meter.end(), cut: null, left });
      return null;
    } catch (error) {
      end({ kind: "answered", reading: meter.end(), cut: describe(error), left });
      throw error;
    }
  }

  const body = new ReadableStream<Uint8Array>({
    start(stream) {
      leave = () => {
        leave = () => {};
        cut(stream);
        (async () => {
          while (await next());
        })().catch(() => {});
      };
    },
    async pull(stream) {
      try {
        const bytes = await next();
        if (left) return;
        if (bytes) stream.enqueue(bytes);
        else stream.close();
      } catch {
        cut(stream);
      }
    },
    cancel: () => onDisconnect(),
  });
  if (left) leave();
  return new Response(body, { status: upstream.status, headers });
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
