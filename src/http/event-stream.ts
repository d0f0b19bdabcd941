import { type Context, type OrgId, perContext } from "../context.ts";
import { limitPerOrg } from "./limit-per-org.ts";
import { securityHeaders } from "./security-headers.ts";

/** One message of a stream. Without an event it is a `message`. A client that reconnects sends the `id` of the last message it received. */
export type Message = { id?: string; event?: string; data: string };

/** Shorter than the time after which proxies and the server itself consider a connection dead. */
const heartbeatMs = 15_000;

const toText = ({ id, event, data }: Message): string =>
  `${event ? `event: ${event}\n` : ""}${id ? `id: ${id}\n` : ""}${data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join("")}\n`;

/** Maximum open streams of one organization. A page has one, so this is also how many tabs its people can keep open. */
const maxPerOrg = 200;

const headers = {
  ...securityHeaders,
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "private, no-store",
  "x-accel-buffering": "no",
};

const limitStreams = perContext(() => limitPerOrg(maxPerOrg, "event streams"));

/**
 * A response that streams server-sent events (WHATWG HTML §9.2) until there are no more messages or the client disconnects, which aborts
 * `signal`. The next message is created when the client has received the last one. Throws rate_limited if the organization has too many open
 * streams.
 */
export function answerStream(
  ctx: Context,
  org: OrgId,
  messages: (signal: AbortSignal) => AsyncIterable<Message>,
): Response {
  const endStream = limitStreams(ctx)(org);
  return new Response(toStream(messages, endStream, ctx.disk.onError), { headers });
}

/** `onEnd` is called once. `onError` is called if the messages fail: the response has started, so nothing else would report that. */
function toStream(
  messages: (signal: AbortSignal) => AsyncIterable<Message>,
  onEnd: () => void,
  onError: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  const encoder = new TextEncoder();
  const parts = messages(gone.signal)[Symbol.asyncIterator]();
  let heart: ReturnType<typeof setInterval> | undefined;
  function end(): void {
    if (heart === undefined) return;
    clearInterval(heart);
    heart = undefined;
    onEnd();
  }
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const beat = () => {
        // A client that doesn't read receives no heartbeats either.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(":\n\n"));
      };
      heart = setInterval(beat, heartbeatMs);
      beat();
    },
    async pull(controller) {
      try {
        const { value, done } = await parts.next();
        if (gone.signal.aborted) return;
        if (!done) return controller.enqueue(encoder.encode(toText(value)));
        end();
        controller.close();
      } catch (error) {
        end();
        if (gone.signal.aborted) return;
        onError(error);
        controller.error(error);
      }
    },
    cancel() {
      end();
      gone.abort();
      // Resumes a generator that waits at a yield, so that it can clean up.
      void parts.return?.();
    },
  });
}
