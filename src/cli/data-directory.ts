import { userInfo } from "node:os";
import pino from "pino";
import { createAgentStandby, createChildAgents } from "../agents/all.ts";
import type { Config } from "../config/config.ts";
import { closeDb, type DataLock, type Db, lockData, openDb } from "../db/open.ts";
import { AppError, conflict } from "../errors.ts";
import { toIso } from "../schema.ts";
import { createService, type Service } from "../service.ts";
import { backUpBeforeUpgrade } from "./database-copy.ts";
import { linkBase, say } from "./terminal.ts";

type OpenOptions = Omit<NonNullable<Parameters<typeof openDb>[1]>, "beforeMigration"> & {
  /** Whether an upgrade takes the lock of the directory. True if the caller doesn't hold the lock. */
  locksUpgrade?: boolean;
};

/** Opens the database of a data directory. Before an upgrade, it backs up the database. If the backup or the lock fails, nothing changes. */
export function openData(dataDir: string, { locksUpgrade = false, ...options }: OpenOptions = {}): Db {
  let unlock = () => {};
  try {
    return openDb(dataDir, {
      onProgress: sayUpgradeProgress(),
      ...options,
      beforeMigration() {
        if (locksUpgrade) unlock = lockToMigrate(dataDir).release;
        backUpBeforeUpgrade(dataDir);
      },
    });
  } finally {
    unlock();
  }
}

/** Prints the progress of a database upgrade, at most once a second. */
function sayUpgradeProgress() {
  let saidAt = 0;
  return ({ done, of }: { done: number; of: number }): void => {
    if (done < of && Date.now() - saidAt < 1000) return;
    saidAt = Date.now();
    say(`Upgrading the database: step ${done} of ${of}`);
  };
}

/** Opens the data directory for the duration of `work`, which may be async. A service may run on the directory, unless its version is older. */
export function withData<T>(config: Config, work: (service: Service) => T): T {
  const db = openData(config.dataDir, { locksUpgrade: true });
  let result: T;
  try {
    const baseUrl = () => linkBase(config);
    const agents = createChildAgents(process.env, createAgentStandby(process.env));
    const log = pino({ level: "silent" });
    result = work(createService({ db, config, log, agents, baseUrl, operator: operatorName() }));
  } catch (error) {
    closeDb(db);
    throw error;
  }
  if (result instanceof Promise) return result.finally(() => closeDb(db)) as T;
  closeDb(db);
  return result;
}

/** The user of this machine who runs the command, for the audit log. */
export function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    // The user of a container may have no name.
    return String(process.getuid?.() ?? "operator");
  }
}

/** Takes the lock before a migration, because the tables must not change while a service runs. */
function lockToMigrate(dataDir: string): DataLock {
  try {
    return lockData(dataDir, { pid: process.pid, since: toIso(Date.now()) });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "conflict") throw error;
    throw conflict("The running service is older than this command. Restart the service with this version first.");
  }
}
