import { styleText } from "node:util";
import { InvalidArgumentError } from "commander";
import type { RunFailure } from "../agents/remedies.ts";
import { getOrgByName, listOrgs } from "../auth/orgs.ts";
import type { Config } from "../config/config.ts";
import type { OrgId } from "../context.ts";
import { codeOf } from "../db/fault.ts";
import { AppError, badRequest, ConfigError, errorStatus } from "../errors.ts";
import type { Paged } from "../http/paging.ts";
import { controlCharacters, toPrintable } from "../log.ts";
import type { Service } from "../service.ts";
import { findRunningService } from "./running.ts";
import { cutText, formatTable } from "./text-layout.ts";

/** Parses an option that may be repeated into the list of its values. */
export const repeatable = (value: string, previous: string[] = []): string[] => [...previous, value];

/** Writes a line for people, to stderr. */
export const say = (text: string): void => {
  process.stderr.write(`${toPrintable(text)}\n`);
};

/** Writes a line about the progress of work, to stderr. In a terminal, the line is cut at the width of the terminal. */
export const sayProgress = (text: string): void => {
  const { columns = Number.POSITIVE_INFINITY } = process.stderr;
  for (const line of text.split("\n")) say(cutText(line, columns));
};

/**
 * Writes a line for programs, to stdout. The line is text, whose control characters are removed, or the result of `toJson`. `endOnStdoutError`
 * handles a failure.
 */
export const print = (text: string): void => {
  // A jq expression may select nothing. Then no line is printed.
  if (text !== "") process.stdout.write(`${toPrintable(text)}\n`);
};

/** Turns JSON into the text that a command prints instead. */
type JsonFilter = (json: string) => string;
let jsonFilter: JsonFilter | null = null;

/** From now on, this command prints the result of the filter instead of its JSON. */
export const filterJson = (filter: JsonFilter): void => {
  jsonFilter = filter;
};

/** What a command prints as JSON: the value, with escapes for all characters that `print` would remove, or the result of `--jq`. */
export function toJson(value: unknown, space?: number): string {
  const json = escapeControls(JSON.stringify(value, null, space));
  return jsonFilter === null ? json : jsonFilter(json);
}

const escapeControls = (json: string): string =>
  json.replace(controlCharacters, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * Ends the command if stdout fails. As in other tools, there is no error message if the reader has gone. A service continues, because only its first
 * lines are for programs.
 */
export function endOnStdoutError(isService: () => boolean): void {
  process.stdout.on("error", (error) => {
    const isUnread = codeOf(error) === "EPIPE";
    const isDiskFull = ["ENOSPC", "EDQUOT"].includes(codeOf(error));
    if (!isUnread) sayError(`Cannot write to stdout: ${isDiskFull ? "the disk is full" : toMessage(error)}.`);
    if (!isService()) process.exit(isUnread ? exits.unread : exits.error);
  });
}

/** Closes stdout. Resolves when stdout has accepted all output, because exiting would drop what a slow reader hasn't read yet. */
export const closeStdout = (): Promise<void> => new Promise((done) => process.stdout.end(() => done()));

/** Whether text on stdout has colors. Node decides that by the terminal and by variables such as NO_COLOR. */
export const hasColor = (): boolean => styleText("bold", "x", { stream: process.stdout }) !== "x";

/** A text without control characters, styled if stdout has colors. */
export const styled = (format: Style, text: string): string =>
  hasColor() ? styleText(format, toPrintable(text), { validateStream: false }) : toPrintable(text);
export type Style = Parameters<typeof styleText>[0];

/** Writes a line that `styled` and `toPrintable` created, to stdout. `print` would remove its styles. */
export const printStyled = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

/** Writes an error to stderr, in commander's style. */
export const sayError = (message: string): void => say(`error: ${message}`);

/**
 * Exit codes of every command. `failed`: the result doesn't meet the requirement. `error`: the command could not do its work, or has no result.
 * `unread`: nobody reads the output; other tools return the same code after SIGPIPE.
 */
export const exits = { passed: 0, failed: 1, usage: 2, error: 3, unread: 141 } as const;

/** The exit code of a command that failed: 2 if the user can correct the call, 3 for everything else. */
export function exitOf(error: unknown): number {
  const isUsageError = error instanceof ConfigError || (error instanceof AppError && errorStatus[error.code] < 429);
  return isUsageError ? exits.usage : exits.error;
}

/**
 * Reports a failure on stderr. With `--json`, it also prints the failure on stdout, in the format of an API error. `--jq` applies only to results.
 */
export function sayFailure(failure: { error: string; detail: string; failure?: RunFailure }, json = false): void {
  sayError(failure.detail);
  if (json && jsonFilter === null) print(toJson(failure, 2));
}

/** A failed run as lines of text: what happened, what to do, and the command or setting to use. */
export const failureText = ({ title, detail, remedy, command }: RunFailure): string =>
  [`${title}. ${detail}`, `  ${remedy}`, ...(command === null ? [] : [`  ${command}`])].join("\n");

/** An error as a code and a message. */
export function toFailure(error: unknown): { error: string; detail: string } {
  if (error instanceof AppError) return { error: error.code, detail: error.detail };
  return { error: error instanceof ConfigError ? "bad_request" : "internal", detail: toMessage(error) };
}

/** The message of an error, for people. */
export function toMessage(error: unknown): string {
  if (error instanceof AppError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}

/** Wildcard addresses, each with the loopback address that it includes. */
const loopbackAddresses: Record<string, string> = { "0.0.0.0": "127.0.0.1", "[::]": "[::1]" };

/** The URL at which this machine reaches a service that listens on `host`, which may be a wildcard address. */
export function toOwnUrl({ host, port }: { host: string; port: number }): string {
  const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return `http://${loopbackAddresses[name] ?? name}:${port}`;
}

/** The base URL for links that commands print: the configured URL, the URL of the running service, or the default. */
export const linkBase = (config: Config): string =>
  config.baseUrl ?? findRunningService(config.dataDir)?.url ?? toOwnUrl(config);

/** The organization that `--org` names, or the only organization. */
export function orgOf({ ctx }: Service, name: string | undefined): OrgId {
  if (name !== undefined) return getOrgByName(ctx, name).id;
  const orgs = listOrgs(ctx);
  const [first] = orgs;
  if (!first) throw badRequest('There is no organization yet. Create one with: evald org create "NAME"');
  if (orgs.length === 1) return first.id;
  const names = orgs.map((org) => org.name).join(", ");
  throw badRequest(`There are several organizations. Choose one with --org: ${names}`);
}

/** Parses `name=value` and adds it to the pairs of earlier options. */
export function parsePair(value: string, all: Record<string, string> = {}): Record<string, string> {
  const separator = value.indexOf("=");
  if (separator < 1) throw new InvalidArgumentError("Must be NAME=VALUE.");
  return { ...all, [value.slice(0, separator)]: value.slice(separator + 1) };
}

/** A parser of whole numbers. */
export const wholeNumber = (min: number, max: number) => (value: string) => {
  if (!/^\d{1,9}$/.test(value) || Number(value) < min || Number(value) > max)
    throw new InvalidArgumentError(`Must be a whole number from ${min} to ${max}.`);
  return Number(value);
};

/** An amount in USD above 0. */
export function parseDollars(value: string): number {
  if (!/^\d{1,6}(\.\d+)?$/.test(value) || Number(value) === 0)
    throw new InvalidArgumentError("Must be an amount in USD above 0.");
  return Number(value);
}

/** Parses a score. */
export function parseScore(value: string): number {
  if (!/^\d{1,3}(\.\d+)?$/.test(value) || Number(value) > 100)
    throw new InvalidArgumentError("Must be a number from 0 to 100.");
  return Number(value);
}

/** Formats rows as aligned columns, one line for each row. The first row is the header. In a terminal, the lines fit into its width. */
export function table(rows: string[][], maxWidth = process.stdout.columns ?? Number.POSITIVE_INFINITY): string {
  return formatTable(
    rows.map((row) => row.map((cell) => toPrintable(cell.replace(/\s+/g, " ")))),
    maxWidth,
  );
}

/** Prints how many items of a list are not shown. */
export function sayRest({ items, total }: Paged<unknown>): void {
  if (total > items.length) say(`Showing ${items.length} of ${total}. Show more with --limit.`);
}

/** Something that runs and reports its progress. */
type Running = { status: string; progress: { ended: number; of: number } };

/** Prints the progress whenever it changes, and returns the final state. `read` returns the current state. */
export async function waitForEnd<T extends Running>(started: T, read: () => Promise<T>): Promise<T> {
  let previous = "";
  let current = started;
  while (true) {
    const line = `${current.progress.ended} of ${current.progress.of} runs finished`;
    if (line !== previous) sayProgress(line);
    previous = line;
    if (current.status !== "running") return current;
    await Bun.sleep(500);
    current = await read();
  }
}
