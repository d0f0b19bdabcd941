import { InvalidArgumentError } from "commander";
import pino from "pino";
import { allAgents } from "../agents/all.ts";
import type { AllowRule, Config } from "../config.ts";
import { closeDb, type DataLock, lockData, openDb } from "../db/open.ts";
import type { OrgId } from "../deps.ts";
import { AppError, badRequest, conflict } from "../errors.ts";
import { createService, type Service } from "../service.ts";

/** What a page or a command may have written to steer a terminal. */
const steering = /(?![\n\t])\p{Cc}/gu;

/** For people: stderr. */
export const say = (text: string): void => {
  process.stderr.write(`${text.replace(steering, "")}\n`);
};

/** For programs: stdout. */
export const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** The address by which this machine itself reaches a service that listens on `host`, which may stand for all of its addresses. */
export function toOwnUrl({ host, port }: Pick<Config, "host" | "port">): string {
  const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return `http://${name === "0.0.0.0" ? "127.0.0.1" : name === "[::]" ? "[::1]" : name}:${port}`;
}

/** The one place behind an http or https address, for runs to be let in. */
export function toPlace(url: string): AllowRule {
  const { hostname, port, protocol } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || (protocol === "https:" ? 443 : 80)) };
}

/** Does something with the stored data and closes it again; works beside a running service, if that is not of an older version. */
export function withData<T>(config: Config, work: (service: Service) => T): T {
  let lock: DataLock | undefined;
  try {
    const db = openDb(config.dataDir, () => {
      lock = lockToMigrate(config.dataDir);
    });
    try {
      const baseUrl = () => config.baseUrl ?? toOwnUrl(config);
      return work(createService({ db, config, log: pino({ level: "silent" }), agents: allAgents(), baseUrl }));
    } finally {
      closeDb(db);
    }
  } finally {
    lock?.release();
  }
}

/** A service that runs knows the tables as its own version made them: they are not changed under it. */
function lockToMigrate(dataDir: string): DataLock {
  try {
    return lockData(dataDir, { pid: process.pid, since: new Date().toISOString() });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "conflict") throw error;
    throw conflict("the service that runs is of an older version than this command; restart the service first");
  }
}

/** The organisation that `--org` names; without it the only one there is. */
export function orgOf({ orgs }: Service, name: string | undefined): OrgId {
  if (name !== undefined) return orgs.getOrgByName(name).id;
  const all = orgs.listOrgs();
  const only = all[0];
  if (!only) throw badRequest('there is no organisation yet; evald org create "NAME" makes one');
  if (all.length > 1) throw badRequest(`name the organisation with --org: ${all.map((org) => org.name).join(", ")}`);
  return only.id;
}

/** A whole number of an option. */
export const wholeNumber = (min: number, max: number) => (value: string) => {
  if (!/^\d{1,9}$/.test(value) || Number(value) < min || Number(value) > max)
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  return Number(value);
};

/** A score of an option. */
export function score(value: string): number {
  if (!/^\d{1,3}(\.\d+)?$/.test(value) || Number(value) > 100)
    throw new InvalidArgumentError("It must be a number from 0 to 100.");
  return Number(value);
}

/** A number of bytes for people. */
export function toSize(bytes: number): string {
  const gib = bytes / 1024 ** 3;
  return gib >= 1 ? `${gib.toFixed(1)} GiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}

/** Rows for people, columns aligned; the first row is the heading. */
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
