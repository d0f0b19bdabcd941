export type Slots = ReturnType<typeof createSlots>;

/** Limits each host to `max` concurrent requests. */
export function createSlots(max: number) {
  const busy = new Map<string, number>();
  const waiting = new Map<string, (() => void)[]>();

  function free(host: string): void {
    const next = waiting.get(host)?.shift();
    if (next) {
      next();
      return;
    }
    const left = (busy.get(host) ?? 1) - 1;
    waiting.delete(host);
    if (left > 0) busy.set(host, left);
    else busy.delete(host);
  }

  return {
    /** Waits for a free slot of a host, in FIFO order, and returns a function that releases it. Throws `stopped()` on abort. */
    async take(host: string, stopped: () => Error, signal?: AbortSignal): Promise<() => void> {
      if (signal?.aborted) throw stopped();
      if ((busy.get(host) ?? 0) < max) {
        busy.set(host, (busy.get(host) ?? 0) + 1);
        return () => free(host);
      }
      const queue = waiting.get(host) ?? [];
      waiting.set(host, queue);
      await new Promise<void>((resolve, reject) => {
        const enter = () => {
          signal?.removeEventListener("abort", leave);
          resolve();
        };
        const leave = () => {
          queue.splice(queue.indexOf(enter), 1);
          reject(stopped());
        };
        queue.push(enter);
        signal?.addEventListener("abort", leave, { once: true });
      });
      return () => free(host);
    },
  };
}
