import { InvalidArgumentError } from "commander";
import pino from "pino";
import { allAgents } from "../agents/all.ts";
import type { Config } from "../config.ts";
import { closeDb, openDb } from "../db/open.ts";
import type { OrgId } from "../deps.ts";
import { badRequest } from "../errors.ts";
import { createService, type Service } from "../service.ts";

/** For people: stderr. */
export const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

/** For programs: stdout. */
export const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** Does something with the stored data and closes it again; works beside a running service. */
export function withData<T>(config: Config, work: (service: Service) => T): T {
  const db = openDb(config.dataDir);
  try {
    const baseUrl = config.baseUrl?.href.replace(/\/$/, "") ?? `http://${config.host}:${config.port}`;
    return work(
      createService({ db, config, log: pino({ level: "silent" }), agents: allAgents(), baseUrl: () => baseUrl }),
    );
  } finally {
    closeDb(db);
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
