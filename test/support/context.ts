import pino from "pino";
import { readConfig } from "../../src/config/config.ts";
import { type Context, type ContextOptions, createContext } from "../../src/context.ts";
import type { Db } from "../../src/db/open.ts";

/** A context without agents and without a service, for functions that need little more than a database. */
export const bareContext = (db: Db, options: Partial<ContextOptions> = {}): Context =>
  createContext({
    db,
    config: readConfig({}),
    log: pino({ level: "silent" }),
    agents: {},
    baseUrl: () => "http://localhost:3000",
    ...options,
  });
