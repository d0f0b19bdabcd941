import { isatty } from "node:tty";
import { closeStdout, say, sayError, sayFailure, toMessage } from "./terminal.ts";

/** The exit codes that shells use for a command that a signal ended. */
const codes = { SIGINT: 130, SIGTERM: 143 } as const;
type Signal = keyof typeof codes;

const stdinDescriptor = 0;
const stderrDescriptor = 2;
/** The character that a terminal in raw mode sends instead of a signal. */
const ctrlC = "\u0003";

/** How long the question after Ctrl-C waits for an answer, in seconds. */
const answerSeconds = 10;

/** `stop`: what to do before the command exits. `cancel`: cancels the work that would continue without the command. */
type Interruption = { json?: boolean; stop?: () => Promise<unknown>; cancel?: () => Promise<unknown> };

/**
 * When somebody interrupts the command, ends it with the failure that `describe` returns. The failure says what continues without the command, or
 * what has stopped. In a terminal, a command with `cancel` asks first whether to cancel. Without an answer, the command continues to wait. Returns a
 * function that stops listening.
 */
export function onInterruption(
  describe: () => { error: string; detail: string },
  { json = false, stop = async () => {}, cancel }: Interruption = {},
): () => void {
  let closeQuestion: (() => void) | null = null;
  const leave = async (signal: Signal) => {
    closeQuestion?.();
    sayFailure(describe(), json);
    await stop();
    await closeStdout();
    process.exit(codes[signal]);
  };
  const canAsk = cancel !== undefined && isatty(stdinDescriptor) && isatty(stderrDescriptor);
  const listeners = {
    SIGTERM: () => leave("SIGTERM"),
    SIGINT: () => {
      if (!canAsk || closeQuestion) return leave("SIGINT");
      say(`${describe().detail}\nPress Ctrl-C again to leave, or c to cancel. Any other key waits on.`);
      closeQuestion = askForKey((key) => {
        closeQuestion = null;
        if (key === ctrlC) return leave("SIGINT");
        if (key?.toLowerCase() !== "c") return say("Waiting on.");
        say("Cancelling.");
        return cancel().catch((error) => sayError(toMessage(error)));
      });
    },
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, listeners[signal]);
  return () => {
    closeQuestion?.();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, listeners[signal]);
  };
}

/** Calls `onAnswer` once, with the key that was pressed, or with null after a while. Returns a function that withdraws the question. */
function askForKey(onAnswer: (key: string | null) => unknown): () => void {
  const { stdin } = process;
  const answer = (bytes: Buffer | null) => {
    close();
    onAnswer(bytes === null ? null : (bytes.toString()[0] ?? null));
  };
  const timer = setTimeout(answer, answerSeconds * 1000, null);
  const close = () => {
    clearTimeout(timer);
    stdin.off("data", answer);
    stdin.setRawMode(false);
    stdin.pause();
  };
  stdin.setRawMode(true);
  stdin.resume();
  stdin.on("data", answer);
  return close;
}
