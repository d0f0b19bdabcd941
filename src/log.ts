import pino, { type Logger } from "pino";
import type { Config } from "./config.ts";

/** Structured lines on stderr. Keys never reach them: their shape is replaced wherever it stands. */
export function createLog(level: Config["logLevel"]): Logger {
  const stderr = pino.destination({ fd: 2, sync: false, minLength: 0 });
  return pino({ level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, stderr);
}
