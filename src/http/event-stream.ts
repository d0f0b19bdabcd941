import { securityHeaders } from "./security-headers.ts";

/** One message of a stream. Without an event it is a `message`; `id` is what a reader who comes back has seen last. */
export type Message = { id?: string; event?: string; data: string };

/** Below what proxies and the server itself take for a dead connection. */
const heartbeatMs = 15_000;

const toText = ({ id, event, data }: Message): string =>
  `${event ? `event: ${event}\n` : ""}${id ? `id: ${id}\n` : ""}${data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join("")}\n`;

/** Messages as server-sent events (WHATWG HTML §9.2), until there are no more or nobody listens: then `signal` is aborted. */
export function streamAnswer(messages: (signal: AbortSignal) => AsyncIterable<Message>): Response {
  const gone = new AbortController();
  const encoder = new TextEncoder();
  let heart: ReturnType<typeof setInterval>;
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (text: string) => controller.enqueue(encoder.encode(text));
      heart = setInterval(() => send(":\n\n"), heartbeatMs);
      try {
        send(":\n\n");
        for await (const message of messages(gone.signal)) {
          if (gone.signal.aborted) return;
          send(toText(message));
        }
        controller.close();
      } catch (error) {
        if (!gone.signal.aborted) controller.error(error);
      } finally {
        clearInterval(heart);
      }
    },
    cancel() {
      clearInterval(heart);
      gone.abort();
    },
  });
  return new Response(body, {
    headers: {
      ...securityHeaders,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "private, no-store",
      "x-accel-buffering": "no",
    },
  });
}

/** A part of a page whenever it comes out different at one of the `changes`. */
export async function* fragments(render: () => string, changes: AsyncIterable<void>): AsyncGenerator<Message> {
  let shown: string | null = null;
  for await (const _ of changes) {
    const html = render();
    if (html !== shown) yield { data: html };
    shown = html;
  }
}
