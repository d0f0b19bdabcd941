import { closeStdout, sayFailure } from "./terminal.ts";

/** Exit codes of shells for a command that a signal ended. */
const codes = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * When somebody interrupts the command, ends it with what `describe` returns: what goes on without it, or what has stopped. Returns a function
 * that ends this. `before`: what to do first.
 */
export function onInterruption(
  describe: () => { error: string; detail: string },
  json = false,
  before: () => Promise<unknown> = async () => {},
): () => void {
  const listeners = (["SIGINT", "SIGTERM"] as const).map((signal) => {
    const listener = async () => {
      sayFailure(describe(), json);
      await before();
      await closeStdout();
      process.exit(codes[signal]);
    };
    process.once(signal, listener);
    return () => process.off(signal, listener);
  });
  return () => {
    for (const stop of listeners) stop();
  };
}
