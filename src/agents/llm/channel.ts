/**
 * A queue from many producers to one reader: items in the order in which they were pushed, then the end or the failure.
 */
export function createChannel<T>() {
  const waiting: T[] = [];
  let over: { error: unknown } | null = null;
  let wake = () => {};

  async function* take(): AsyncGenerator<T, void> {
    for (;;) {
      while (waiting.length > 0) yield waiting.shift() as T;
      if (over) {
        if (over.error !== undefined) throw over.error;
        return;
      }
      await new Promise<void>((resolve) => (wake = resolve));
    }
  }
  const finish = (error?: unknown) => {
    over ??= { error };
    wake();
  };
  return {
    push(item: T): void {
      if (!over) waiting.push(item);
      wake();
    },
    end: () => finish(),
    fail: finish,
    items: take(),
  };
}
