export type Slots = ReturnType<typeof createSlots>;

/** Limits how many uses of each key, such as a host, are active at once to `max`. */
export function createSlots(max: number) {
  const activeCounts = new Map<string, number>();
  const queues = new Map<string, (() => void)[]>();

  function release(key: string): void {
    const next = queues.get(key)?.shift();
    if (next) {
      next();
      return;
    }
    const remaining = (activeCounts.get(key) ?? 1) - 1;
    queues.delete(key);
    if (remaining > 0) activeCounts.set(key, remaining);
    else activeCounts.delete(key);
  }

  return {
    /** Waits for a free slot of a key, in FIFO order, and returns a function that releases it. Throws `toAbortError()` on abort. */
    async take(
      key: string,
      signal?: AbortSignal,
      toAbortError: () => Error = () => signal?.reason,
    ): Promise<() => void> {
      if (signal?.aborted) throw toAbortError();
      if ((activeCounts.get(key) ?? 0) < max) {
        activeCounts.set(key, (activeCounts.get(key) ?? 0) + 1);
        return () => release(key);
      }
      const queue = queues.get(key) ?? [];
      queues.set(key, queue);
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
      return () => release(key);
    },
  };
}
