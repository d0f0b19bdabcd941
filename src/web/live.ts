import type { Message } from "../http/event-stream.ts";

/** Share of the event loop that rendering may take, so that many open pages don't delay other requests. */
const maxShare = 0.2;

type Part = {
  readers: number;
  html: string | null;
  /** Resolves when `html` has changed or `over` was aborted; rejects when rendering failed. */
  changed: PromiseWithResolvers<void>;
  over: AbortController;
};

/** Yields immediately, and then whenever something may have changed. */
type Watch = (signal: AbortSignal) => AsyncIterable<void>;

/**
 * Parts of pages that update live. Pages with the same content share one part, which is rendered once per change for all viewers. Parts are
 * rendered one at a time.
 */
export function createLiveParts(watch: Watch) {
  const parts = new Map<string, Part>();
  let turn: Promise<void> = Promise.resolve();

  async function inTurn(render: () => string): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = turn;
    turn = promise;
    await before;
    const startedAt = performance.now();
    try {
      return render();
    } finally {
      setTimeout(resolve, (performance.now() - startedAt) * (1 / maxShare - 1));
    }
  }

  async function update(part: Part, render: () => string): Promise<void> {
    for await (const _ of watch(part.over.signal)) {
      const html = await inTurn(render);
      if (html === part.html) continue;
      part.html = html;
      const { resolve } = part.changed;
      part.changed = Promise.withResolvers();
      resolve();
    }
    part.over.abort();
    part.changed.resolve();
  }

  function open(key: string, render: () => string): Part {
    const part: Part = { readers: 0, html: null, changed: Promise.withResolvers(), over: new AbortController() };
    parts.set(key, part);
    update(part, render).catch((error) => {
      close(key, part);
      // The last reader may have left already.
      part.changed.promise.catch(() => {});
      part.changed.reject(error);
    });
    return part;
  }

  function close(key: string, part: Part): void {
    part.over.abort();
    if (parts.get(key) === part) parts.delete(key);
  }

  return {
    /** Yields the part named `key`, and again whenever its content changes. Throws what `render` throws. */
    async *follow(key: string, render: () => string, gone: AbortSignal): AsyncGenerator<Message> {
      const part = parts.get(key) ?? open(key, render);
      part.readers++;
      const left = new Promise<void>((resolve) => gone.addEventListener("abort", () => resolve(), { once: true }));
      let shown: string | null = null;
      try {
        while (!gone.aborted) {
          if (part.html !== shown) {
            shown = part.html;
            yield { data: shown ?? "" };
          } else if (part.over.signal.aborted) return;
          else await Promise.race([part.changed.promise, left]);
        }
      } finally {
        part.readers--;
        if (part.readers === 0) close(key, part);
      }
    },
  };
}
