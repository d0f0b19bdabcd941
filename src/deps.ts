import type { Logger } from "pino";
import type { Config } from "./config/config.ts";
import type { Db } from "./db/open.ts";

declare const brand: unique symbol;
/** The ID of an authenticated organization. Only a key, a signed-in person, the scheduler and the command line create one. */
export type OrgId = string & { readonly [brand]: "org" };

/** What every part receives, instead of using globals. */
export type Deps = {
  db: Db;
  config: Config;
  log: Logger;
  /** Epoch milliseconds. */
  now: () => number;
  /** A UUIDv7 of that moment. IDs sort by time and, within one process, by creation. */
  newId: (atMs: number) => string;
  /** The URL at which the service is reached, without a trailing slash. Known once it listens. */
  baseUrl: () => string;
};
