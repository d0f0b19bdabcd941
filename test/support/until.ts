/** Waits until a condition holds and returns its value. Throws with `what` after `ms`. */
export async function until<T>(what: string, condition: () => T | Promise<T>, ms = 30_000): Promise<T> {
  const deadline = performance.now() + ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`);
    await Bun.sleep(10);
  }
}
