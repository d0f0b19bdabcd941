import { InvalidArgumentError } from "commander";
import pino from "pino";
import { allAgents } from "../agents/all.ts";
import type { AllowRule } from "../config/allow-rules.ts";
import type { Config } from "../config/config.ts";
import { closeDb, type DataLock, lockData, openDb } from "../db/open.ts";
import type { OrgId } from "../deps.ts";
import { AppError, badRequest, conflict } from "../errors.ts";
import { toIso } from "../schema.ts";
import { createService, type Service } from "../service.ts";

/** Control characters, which pages and commands could use to manipulate the terminal. */
const controlCharacters = /(?![\n\t])\p{Cc}/gu;

/** Writes a line for people, to stderr. */
export const say = (text: string): void => {
  process.stderr.write(`${text.replace(controlCharacters, "")}\n`);
};

/** Says how far the upgrade of a database is, at most once a second. */
export function upgradeProgress() {
  let saidAt = 0;
  return ({ done, of }: { done: number; of: number }): void => {
    if (done < of && Date.now() - saidAt < 1000) return;
    saidAt = Date.now();
    say(`Upgrading the database: step ${done} of ${of}`);
  };
}

/** Writes a line for programs, to stdout. */
export const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** Writes an error to stderr, in commander's style. */
export const sayError = (message: string): void => say(`error: ${message}`);

/** The message of an error, for people. */
export const toMessage = (error: unknown): string =>
  error instanceof AppError ? error.detail : error instanceof Error ? error.message : String(error);

export const outdatedService =
  "The running service is older than this command. Restart the service with this version first.";

/** The URL at which this machine reaches a service that listens on `host`, which may be a wildcard address. */
export function toOwnUrl({ host, port }: Pick<Config, "host" | "port">): string {
  const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return `http://${name === "0.0.0.0" ? "127.0.0.1" : name === "[::]" ? "[::1]" : name}:${port}`;
}

/** A rule that lets runs reach exactly the host and port of a URL. */
export function toAllowRule(url: string): AllowRule {
  const { hostname, port, protocol } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || (protocol === "https:" ? 443 : 80)) };
}

/** Opens the data directory for the duration of `work`, also next to a running service, unless that is older. */
export function withData<T>(config: Config, work: (service: Service) => T): T {
  let lock: DataLock | undefined;
  try {
    const db = openDb(config.dataDir, {
      mayMigrate() {
        lock = lockToMigrate(config.dataDir);
      },
      onProgress: upgradeProgress(),
    });
    try {
      const baseUrl = () => config.baseUrl ?? toOwnUrl(config);
      return work(
        createService({ db, config, log: pino({ level: "silent" }), agents: allAgents(process.env), baseUrl }),
      );
    } finally {
      closeDb(db);
    }
  } finally {
    lock?.release();
  }
}

/** Takes the lock before a migration: the tables must not change under a running service. */
function lockToMigrate(dataDir: string): DataLock {
  try {
    return lockData(dataDir, { pid: process.pid, since: toIso(Date.now()) });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "conflict") throw error;
    throw conflict(outdatedService);
  }
}

/** The organization named by `--org`, or the only one there is. */
export function orgOf({ orgs }: Service, name: string | undefined): OrgId {
  if (name !== undefined) return orgs.getOrgByName(name).id;
  const all = orgs.listOrgs();
  const only = all[0];
  if (!only) throw badRequest('There is no organization yet. Create one with: evald org create "NAME"');
  if (all.length > 1)
    throw badRequest(
      `There are several organizations. Choose one with --org: ${all.map((org) => org.name).join(", ")}`,
    );
  return only.id;
}

/** Parses a whole number. */
export const wholeNumber = (min: number, max: number) => (value: string) => {
  if (!/^\d{1,9}$/.test(value) || Number(value) < min || Number(value) > max)
    throw new InvalidArgumentError(`Must be a whole number from ${min} to ${max}.`);
  return Number(value);
};

/** Parses a score. */
export function score(value: string): number {
  if (!/^\d{1,3}(\.\d+)?$/.test(value) || Number(value) > 100)
    throw new InvalidArgumentError("Must be a number from 0 to 100.");
  return Number(value);
}

/** Formats a number of bytes. */
export function toSize(bytes: number): string {
  const gib = bytes / 1024 ** 3;
  return gib >= 1 ? `${gib.toFixed(1)} GiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}

/** Formats rows as aligned columns; the first row is the header. */
export function table(rows: string[][]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
