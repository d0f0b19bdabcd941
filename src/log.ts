import { styleText } from "node:util";
import pino, { type Logger } from "pino";
import type { Config } from "./config/config.ts";
import { settlesWithin } from "./deadline.ts";
import { redactKeys, redactSecrets } from "./schema.ts";

const flushMs = 100;
const maxBufferedBytes = 1024 * 1024;

type LogSettings = { logLevel: Config["logLevel"]; logFormat: Config["logFormat"] };

/**
 * Logs to stderr: readable lines on a terminal, JSON elsewhere. Lines are written every 100 ms or 8 KiB, since a write per line would cost more
 * than most requests. API keys and `secrets` are redacted from every line.
 */
export function createLog({ logLevel, logFormat }: LogSettings, secrets: readonly string[] = []): Logger {
  const stderr = pino.destination({ fd: 2, sync: false, minLength: 8 * 1024, maxLength: maxBufferedBytes });
  // Drops what a full or closed stderr rejects. Otherwise the last flush would retry forever and keep the process from exiting.
  stderr.on("error", () => {
    stderr.flushSync = () => {};
  });
  const isText = logFormat === "text" || (logFormat === "auto" && process.stderr.isTTY === true);
  let isScheduled = false;
  const destination = {
    write(line: string): void {
      const clean = redactSecrets(redactKeys(line), secrets);
      stderr.write(isText ? formatLine(clean) : clean);
      if (isScheduled) return;
      isScheduled = true;
      setTimeout(() => {
        isScheduled = false;
        // The logger has its own flush, but that syncs to disk each time.
        stderr.flush();
      }, flushMs).unref();
    },
    flush: (done?: (error?: Error) => void) => stderr.flush(done),
  };
  return pino({ level: logLevel, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

/** The log of a command that prints its own progress: silent unless a level other than the default is set. */
export const createCommandLog = (settings: LogSettings, secrets: readonly string[]): Logger =>
  createLog({ ...settings, logLevel: settings.logLevel === "info" ? "silent" : settings.logLevel }, secrets);

/** Resolves once everything logged is written, or after one second if stderr does not accept it. Await it before exiting. */
export const flushLog = (log: Logger): Promise<unknown> =>
  settlesWithin(new Promise<void>((done) => log.flush(() => done())), 1000);

type LogEntry = { level: number; time: string; msg?: string; err?: { message?: string; stack?: string } } & Record<
  string,
  unknown
>;

/** Names and colors of pino's levels. */
const levels: Record<number, [name: string, color: "gray" | "green" | "yellow" | "red"]> = {
  10: ["TRACE", "gray"],
  20: ["DEBUG", "gray"],
  30: ["INFO", "green"],
  40: ["WARN", "yellow"],
  50: ["ERROR", "red"],
  60: ["FATAL", "red"],
};

const hiddenFields = new Set(["level", "time", "pid", "msg", "err"]);

/**
 * Formats one JSON line of pino for people: `2026-11-22T09:30:00Z INFO  run graded run=… score=93`, with the stack of an error below it. Colored
 * if stderr is a terminal and NO_COLOR is not set.
 */
function formatLine(json: string): string {
  const entry = JSON.parse(json) as LogEntry;
  const [name, color] = levels[entry.level] ?? [String(entry.level), "gray"];
  const level = styleText(color, name.padEnd(5), { stream: process.stderr });
  const facts = Object.entries(entry)
    .filter(([key, value]) => !hiddenFields.has(key) && value !== null)
    .map(([key, value]) => `${key}=${toText(value)}`);
  const time = entry.time.replace(/\.\d+Z$/, "Z");
  const stack = entry.err?.stack ?? entry.err?.message;
  const stackText = stack === undefined ? "" : `\n${toPrintable(stack).replace(/^/gm, "  ")}`;
  return `${[time, level, toPrintable(entry.msg ?? ""), ...facts].join(" ")}${stackText}\n`;
}

/** A value in the form of `key=`: quoted if it contains spaces, quotes or control characters. */
function toText(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return toPrintable(/^[^\s"=\p{Cc}]+$/u.test(text) ? text : JSON.stringify(text));
}

/** Control characters and marks of the writing direction, which logged or printed text could use to manipulate the terminal. */
export const controlCharacters = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Text that can't manipulate a terminal: it only changes the places that it is written to. */
export const toPrintable = (text: string): string => text.replace(controlCharacters, "");
