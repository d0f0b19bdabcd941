export type Slots = ReturnType<typeof createSlots>;

/** Limits each host to `max` concurrent requests. */
export function createSlots(max: number) {
  const activeCounts = new Map<string, number>();
  const queues = new Map<string, (() => void)[]>();

  function release(host: string): void {
    const next = queues.get(host)?.shift();
    if (next) {
      next();
      return;
    }
    const remaining = (activeCounts.get(host) ?? 1) - 1;
    queues.delete(host);
    if (remaining > 0) activeCounts.set(host, remaining);
    else activeCounts.delete(host);
  }

  return {
    /** Waits for a free slot of a host, in FIFO order, and returns a function that releases it. Throws `toAbortError()` on abort. */
    async take(host: string, toAbortError: () => Error, signal?: AbortSignal): Promise<() => void> {
      if (signal?.aborted) throw toAbortError();
      if ((activeCounts.get(host) ?? 0) < max) {
        activeCounts.set(host, (activeCounts.get(host) ?? 0) + 1);
        return () => release(host);
      }
      const queue = queues.get(host) ?? [];
      queues.set(host, queue);
      await new Promise<void>((resolve, reject) => {
        const enter = () => {
          signal?.removeEventListener("abort", leave);
          resolve();
        };
        const leave = () => {
          queue.splice(queue.indexOf(enter), 1);
          reject(toAbortError());
        };
        queue.push(enter);
        signal?.addEventListener("abort", leave, { once: true });
      });
      return () => release(host);
    },
  };
}
