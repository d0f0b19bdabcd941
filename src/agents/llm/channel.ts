/**
 * A queue from many producers to one reader: items in the order in which they were pushed, then the end or the failure.
 */
export function createChannel<T>() {
  const items: T[] = [];
  let ending: { error: unknown } | null = null;
  let wakeReader = () => {};

  async function* readItems(): AsyncGenerator<T, void> {
    for (;;) {
      while (items.length > 0) yield items.shift() as T;
      if (ending) {
        if (ending.error !== undefined) throw ending.error;
        return;
      }
      await new Promise<void>((resolve) => (wakeReader = resolve));
    }
  }
  const finish = (error?: unknown) => {
    ending ??= { error };
    wakeReader();
  };
  return {
    push(item: T): void {
      if (!ending) items.push(item);
      wakeReader();
    },
    end: () => finish(),
    fail: finish,
    items: readItems(),
  };
}
