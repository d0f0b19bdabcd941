import { AsyncLocalStorage } from "node:async_hooks";

/** Announces something within this process to all subscribers, immediately and in the order of subscription. There need not be any subscribers. */
type Signal<T = void> = {
  emit(value: T): void;
  subscribe(listener: (value: T) => void): void;
};

/** Creates a signal: `emit` calls all listeners, in the order in which they were added. */
export function createSignal<T = void>(): Signal<T> {
  const listeners: ((value: T) => void)[] = [];
  return {
    emit(value) {
      for (const listener of listeners) listener(value);
    },
    subscribe(listener) {
      // The work of a listener is not part of the request during which the signal is emitted.
      listeners.push(AsyncLocalStorage.bind(listener));
    },
  };
}
