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
