const tickMs = 5;
let passedMs = 0;
setInterval(() => (passedMs += tickMs), tickMs).unref();

/**
 * A clock that stops while this process is busy or waits for a CPU, so that a loaded machine doesn't make pages look
 * slow. Deliberate delays use it too.
 */
export const clock = {
  now: (): number => passedMs,
  async sleep(ms: number): Promise<void> {
    for (const until = passedMs + ms; passedMs < until; ) await Bun.sleep(tickMs);
  },
};
