type Held<T> = Exclude<T, false | null | undefined>;

/**
 * Waits until a condition holds and returns its value. Throws with `what` after `ms`: late, because an agent has a low priority, and
 * hardly works while other tests use all cores.
 */
export async function until<T>(what: string, condition: () => T | Promise<T>, ms = 280_000): Promise<Held<T>> {
  const deadline = performance.now() + ms;
  for (;;) {
    const value = await condition();
    if (value) return value as Held<T>;
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`);
    await Bun.sleep(10);
  }
}
