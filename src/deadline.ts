/** Whether a promise settles within `ms`. Unlike a race with `Bun.sleep`, this leaves no timer behind that keeps the process from exiting. */
export async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const deadline = Promise.withResolvers<boolean>();
  const timer = setTimeout(deadline.resolve, ms, false);
  try {
    return await Promise.race([promise.then(() => true), deadline.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for `ms`. Returns false as soon as `signal` is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  await new Promise<void>((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener("abort", finish, { once: true });
  });
  return !signal.aborted;
}
