import type { Logger } from "pino";
import type { Config } from "./config/config.ts";
import type { Db } from "./db/open.ts";

declare const brand: unique symbol;
/** The id of an organisation that was proven: only a key, a signed-in person, the scheduler or the command line makes one. */
export type OrgId = string & { readonly [brand]: "org" };

/** What every part is given instead of reaching for it. */
export type Deps = {
  db: Db;
  config: Config;
  log: Logger;
  /** Epoch milliseconds. */
  now: () => number;
  /** A UUIDv7 of that moment: ids of a later moment sort later, those of one moment in the order of making if one process made them. */
  newId: (atMs: number) => string;
  /** Where people and programs reach the service; no slash at its end. Known once it listens. */
  baseUrl: () => string;
};
