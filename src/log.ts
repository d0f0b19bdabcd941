import pino, { type Logger } from "pino";
import type { Config } from "./config.ts";

const flushMs = 100;

/** Structured lines on stderr, written every 100 ms or 8 KiB: a write for each line would cost more than most requests. */
export function createLog(level: Config["logLevel"]): Logger {
  const stderr = pino.destination({ fd: 2, sync: false, minLength: 8 * 1024 });
  const log = pino({ level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, stderr);
  setInterval(() => log.flush(), flushMs).unref();
  return log;
}
