/** How long a result that isn't final is kept, in milliseconds. */
const retryMs = 60_000;

/**
 * A function that does its work at the first call and returns the same result from then on. Work that failed is done again at the next call, because
 * the reason may be temporary, such as too many open files. If the result isn't final, the work is done again at the first call after a minute.
 */
export function once<T>(work: () => Promise<T>, isFinal: (result: T) => boolean = () => true): () => Promise<T> {
  let cached: Promise<T> | undefined;
  let cachedUntil = Number.POSITIVE_INFINITY;
  return () => {
    if (cached && performance.now() < cachedUntil) return cached;
    cachedUntil = Number.POSITIVE_INFINITY;
    const result = work();
    cached = result;
    result.then(
      (value) => {
        if (!isFinal(value)) cachedUntil = performance.now() + retryMs;
      },
      () => {
        cached = undefined;
      },
    );
    return result;
  };
}

/** A function that computes its value at the first call. */
export function lazy<T>(compute: () => T): () => T {
  let value: T | undefined;
  return () => {
    value ??= compute();
    return value;
  };
}

/** A function that does its work at the first call, and nothing from then on. */
export function firstCall(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

/** A function that computes its value once for each object that `keyOf` returns, and keeps it as long as that object exists. */
export function oncePer<A, T extends object>(keyOf: (from: A) => object, compute: (from: A) => T): (from: A) => T {
  const values = new WeakMap<object, T>();
  return (from) => {
    const key = keyOf(from);
    const cached = values.get(key);
    if (cached) return cached;
    const value = compute(from);
    values.set(key, value);
    return value;
  };
}
