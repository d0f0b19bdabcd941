import { type Context, type OrgId, perContext } from "../context.ts";
import { limitPerOrg } from "./limit-per-org.ts";
import { securityHeaders } from "./responses.ts";

/** One message of a stream. Without `event`, its type is `message`. A client that reconnects sends the last `id`. */
export type Message = { id?: string; event?: string; data: string };

/** Shorter than the idle time after which proxies and the server itself consider a connection dead. */
const heartbeatMs = 15_000;

function toText({ id, event, data }: Message): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}`);
  if (id) lines.unshift(`id: ${id}`);
  if (event) lines.unshift(`event: ${event}`);
  return `${lines.join("\n")}\n\n`;
}

/** Maximum open streams of one organization. A page has one stream, so this is also the number of tabs that its people can keep open. */
const maxPerOrg = 200;

const headers = {
  ...securityHeaders,
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "private, no-store",
  "x-accel-buffering": "no",
};

const openStreams = perContext(() => ({ enter: limitPerOrg(maxPerOrg, "event streams") }));

/**
 * A response that streams server-sent events (WHATWG HTML §9.2). It ends when there are no more messages, or when the client disconnects.
 * Disconnecting aborts `signal`. The next message is created when the client has received the last one. Throws rate_limited if the organization has
 * too many open streams.
 */
export function streamResponse(ctx: Context, org: OrgId, messages: (signal: AbortSignal) => AsyncIterable<Message>) {
  const body = toStream(messages, openStreams(ctx).enter(org), ctx.disk.onError);
  return new Response(body, { headers });
}

/** Calls `onEnd` once. If the messages fail, it also calls `onError`, because nobody else learns of a failure after the response has started. */
function toStream(
  messages: (signal: AbortSignal) => AsyncIterable<Message>,
  onEnd: () => void,
  onError: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  const disconnected = new AbortController();
  const encoder = new TextEncoder();
  const iterator = messages(disconnected.signal)[Symbol.asyncIterator]();
  let heartbeat: ReturnType<typeof setInterval> | undefined;
  function end(): void {
    if (heartbeat === undefined) return;
    clearInterval(heartbeat);
    heartbeat = undefined;
    onEnd();
  }
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const sendHeartbeat = () => {
        // A client that doesn't read gets no heartbeats.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(":\n\n"));
      };
      heartbeat = setInterval(sendHeartbeat, heartbeatMs);
      sendHeartbeat();
    },
    async pull(controller) {
      try {
        const { value, done } = await iterator.next();
        if (disconnected.signal.aborted) return;
        if (!done) return controller.enqueue(encoder.encode(toText(value)));
        end();
        controller.close();
      } catch (error) {
        end();
        if (disconnected.signal.aborted) return;
        onError(error);
        controller.error(error);
      }
    },
    cancel() {
      end();
      disconnected.abort();
      // Resumes a generator that is suspended at a yield, so that it can clean up.
      void iterator.return?.();
    },
  });
}
