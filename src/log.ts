import pino, { type Logger } from "pino";
import type { Config } from "./config.ts";
import { redactKeys, redactSecrets } from "./schema.ts";

const flushMs = 100;
const maxWaiting = 1024 * 1024;

/**
 * Structured lines on stderr, written every 100 ms or 8 KiB: a write for each line would cost more than most requests. API keys never reach
 * them: their shape is replaced wherever it stands, and so is each of `secrets`.
 */
export function createLog(level: Config["logLevel"], secrets: readonly string[] = []): Logger {
  const stderr = pino.destination({ fd: 2, sync: false, minLength: 8 * 1024, maxLength: maxWaiting });
  // What a full or closed stderr does not take may be lost: the service goes on, and ends, where the last flush would try for ever.
  stderr.on("error", () => {
    stderr.flushSync = () => {};
  });
  let isDue = false;
  const redacting = {
    write(line: string): void {
      stderr.write(redactSecrets(redactKeys(line), secrets));
      if (isDue) return;
      isDue = true;
      setTimeout(() => {
        isDue = false;
        // Not the logger's own flush: it asks the disk for a sync each time.
        stderr.flush();
      }, flushMs).unref();
    },
    flush: (done?: (error?: Error) => void) => stderr.flush(done),
  };
  return pino({ level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, redacting);
}

/** Ends once all that was logged is written; after a second in any case, where stderr takes nothing. A process that exits before may lose its last lines. */
export const flushed = (log: Logger): Promise<unknown> =>
  Promise.race([new Promise<void>((done) => log.flush(() => done())), Bun.sleep(1000)]);
