import { AsyncLocalStorage } from "node:async_hooks";

/** Announces something within this process to whoever subscribed, immediately and in the order of subscription. Nobody needs to listen. */
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
      // What a listener does is not a part of the request during which the signal is emitted.
      listeners.push(AsyncLocalStorage.bind(listener));
    },
  };
}
