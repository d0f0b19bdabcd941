import { type Context, type OrgId, perContext } from "../context.ts";
import type { Message } from "../http/event-stream.ts";
import { turnOfOrg } from "../http/turns.ts";
import { watchDatabase } from "../runs/follow.ts";

/** The share of the event loop that rendering may use, so that many open pages don't delay other requests. */
const maxShare = 0.2;

type LivePart = {
  readers: number;
  html: string | null;
  /** Resolves when `html` has changed or `closing` was aborted. Rejects when rendering has failed. */
  nextChange: PromiseWithResolvers<void>;
  closing: AbortController;
};

/** The open parts by key. `turn`: resolves when the next part may be rendered. */
const liveParts = perContext(() => ({ open: new Map<string, LivePart>(), turn: Promise.resolve() }));

/**
 * Yields a part of a page, and yields it again whenever its content changes. Viewers of the same organization and name share one part, which is
 * rendered once per change for all of them. Parts are rendered one at a time. Throws what `render` throws.
 */
export async function* followPart(
  ctx: Context,
  org: OrgId,
  name: string,
  render: () => string,
  signal: AbortSignal,
): AsyncGenerator<Message> {
  const key = `${org} ${name}`;
  const part = liveParts(ctx).open.get(key) ?? openPart(ctx, key, () => inTurn(ctx, org, render));
  part.readers++;
  const disconnected = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  let lastHtml: string | null = null;
  try {
    while (!signal.aborted) {
      if (part.html !== lastHtml) {
        lastHtml = part.html;
        yield { data: lastHtml ?? "" };
      } else if (part.closing.signal.aborted) return;
      else await Promise.race([part.nextChange.promise, disconnected]);
    }
  } finally {
    part.readers--;
    if (part.readers === 0) closePart(ctx, key, part);
  }
}

/** Yields a part of a page at each tick, if its content has changed. The part is not shared between viewers. */
export async function* followTicks(ticks: AsyncIterable<void>, render: () => string): AsyncGenerator<Message> {
  let lastHtml: string | null = null;
  for await (const _ of ticks) {
    const html = render();
    if (html !== lastHtml) yield { data: html };
    lastHtml = html;
  }
}

function openPart(ctx: Context, key: string, render: () => Promise<string>): LivePart {
  const part: LivePart = {
    readers: 0,
    html: null,
    nextChange: Promise.withResolvers(),
    closing: new AbortController(),
  };
  liveParts(ctx).open.set(key, part);
  updatePart(ctx, part, render).catch((error) => {
    closePart(ctx, key, part);
    // The last reader may already have left. Then nobody else would handle the rejection.
    part.nextChange.promise.catch(() => {});
    part.nextChange.reject(error);
  });
  return part;
}

function closePart(ctx: Context, key: string, part: LivePart): void {
  part.closing.abort();
  const { open } = liveParts(ctx);
  if (open.get(key) === part) open.delete(key);
}

async function updatePart(ctx: Context, part: LivePart, render: () => Promise<string>): Promise<void> {
  for await (const _ of watchDatabase(ctx, part.closing.signal)) {
    const html = await render();
    if (html === part.html) continue;
    part.html = html;
    const { resolve } = part.nextChange;
    part.nextChange = Promise.withResolvers();
    resolve();
  }
  // The last reader has left, or the service is stopping.
  part.closing.abort();
  part.nextChange.resolve();
}

/** Renders a part when all earlier parts have been rendered and other work has had its share of the event loop. */
async function inTurn(ctx: Context, org: OrgId, render: () => string): Promise<string> {
  const parts = liveParts(ctx);
  const { promise, resolve } = Promise.withResolvers<void>();
  const previousTurn = parts.turn;
  parts.turn = promise;
  await previousTurn;
  await turnOfOrg(ctx, org);
  const startedAt = performance.now();
  try {
    return render();
  } finally {
    const renderMs = performance.now() - startedAt;
    // Pauses long enough that rendering uses only its share of the total time.
    const pauseMs = renderMs / maxShare - renderMs;
    setTimeout(resolve, pauseMs);
  }
}
