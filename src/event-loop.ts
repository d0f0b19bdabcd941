let lastTurn: Promise<void> = Promise.resolve();

/**
 * Resolves in a later turn of the event loop, for one caller per turn. Long work calls it between its parts, so that requests are handled in
 * between, no matter how much work is in progress.
 */
export function yieldToEventLoop(): Promise<void> {
  lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve)));
  return lastTurn;
}
