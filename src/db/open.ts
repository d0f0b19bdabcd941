import { Database } from "bun:sqlite";
import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { sql } from "drizzle-orm/sql";
import { isCompiled } from "../build.ts";
import { AppError, badRequest, reasonOf } from "../errors.ts";
import { codeOf, diskFault, isBusy, isReadOnly, refineDiskError } from "./fault.ts";
import { hideDeletedRows } from "./hidden-rows.ts";
import { checkFiles, rememberFiles } from "./open-files.ts";
import { perConnection } from "./per-connection.ts";
import { maxWaitMs } from "./write-lock.ts";

export type Db = BunSQLiteDatabase & { $client: Database };
/** A transaction in progress. */
export type Tx = Parameters<Parameters<Db["transaction"]>[0]>[0];

// A compiled executable embeds the folder `drizzle` beside its modules; from source it is two folders up.
const migrationsFolder = isCompiled ? join(import.meta.dir, "drizzle") : join(import.meta.dir, "..", "..", "drizzle");

type OpenOptions = {
  /** The migrations, oldest first; by default, the ones of this version. */
  migrations?: Migration[];
  /** Called before the schema of an existing database changes. If it throws, the database stays unchanged. */
  beforeMigration?: () => void;
  /** Called after each statement that changes the schema of an existing database. */
  onProgress?: (progress: { done: number; of: number }) => void;
};

/**
 * Opens (and creates) the database `evald.db` of a data folder, `:memory:` for one that is never stored, and brings its schema up to date.
 * The order of the pragmas matters: without a busy timeout the change to WAL fails when another process is starting.
 */
export function openDb(dataDir: string, options: OpenOptions = {}): Db {
  const isInMemory = dataDir === ":memory:";
  const path = isInMemory ? dataDir : join(dataDir, "evald.db");
  if (!isInMemory) {
    makeFolder(dataDir);
    makePrivate(path);
  }
  const client = explainOpenErrors(path, "Restore a backup", () => new Database(path, { create: true }));
  client.run(`pragma busy_timeout = ${maxWaitMs}`);
  explainOpenErrors(path, "Restore a backup", () => changeToWal(client));
  const db = configureWriter(client);
  explainOpenErrors(path, "Restore a backup", () => migrate(db, options));
  if (!isInMemory) rememberFiles(client);
  return db;
}

/** Sets the pragmas of a connection that writes, and makes it available to Drizzle. */
export function configureWriter(client: Database): Db {
  client.run("pragma synchronous = FULL");
  client.run("pragma foreign_keys = ON");
  client.run("pragma trusted_schema = OFF");
  // 64 MiB: after a checkpoint, a longer log is cut to this size.
  client.run("pragma journal_size_limit = 67108864");
  // The unit is pages: this is 16 MiB. A checkpoint writes a page once, however often it changed, so a sixth less is written than with the default of 1,000.
  client.run("pragma wal_autocheckpoint = 4000");
  client.run("pragma cell_size_check = ON");
  client.run("pragma temp_store = MEMORY");
  // The unit is KiB. With the default of 2 MiB, most reads go to the operating system, which takes twice as long.
  client.run("pragma cache_size = -32768");
  // Erased content is overwritten, in the database and, after a checkpoint, in the log: a freed page is written once more.
  client.run("pragma secure_delete = ON");
  return hideDeletedRows(drizzle({ client }));
}

/** Releases the pages that a connection keeps in memory. */
export const releaseCache = (db: Db): void => void db.$client.run("pragma shrink_memory");

/** Opens a database of this version for reading, beside the connection that writes. */
export function openReader(path: string): Db {
  const client = new Database(path, { readonly: true });
  client.run(`pragma busy_timeout = ${maxWaitMs}`);
  client.run("pragma trusted_schema = OFF");
  client.run("pragma cell_size_check = ON");
  return hideDeletedRows(drizzle({ client }));
}

/** Of all tables (0x10000), analyzes (0x02) the ones that have grown tenfold or have an index without statistics. */
export const optimizePragma = "pragma optimize(0x10002)";

/** A migration as drizzle reads it. `folderMillis`: when it was made, epoch ms. */
export type Migration = { sql: string[]; hash: string; folderMillis: number };
let migrationFiles: Migration[] | undefined;

/** The migrations of this version, oldest first, as recorded in a database. */
export const readMigrations = (): Migration[] => (migrationFiles ??= readMigrationFiles({ migrationsFolder }));

/** A migration that a database has. `createdAt`: when it was made, epoch ms. */
export type AppliedMigration = { hash: string; createdAt: number };

/** Whether this version can use a database with these migrations. `unknown`: no release of evald made the database. */
export function originOf(applied: AppliedMigration[], migrations = readMigrations()): "known" | "newer" | "unknown" {
  const latest = Math.max(...migrations.map(({ folderMillis }) => folderMillis));
  if (applied.some(({ createdAt }) => createdAt > latest)) return "newer";
  const hashes = new Set(migrations.map(({ hash }) => hash));
  return applied.every(({ hash }) => hashes.has(hash)) ? "known" : "unknown";
}

/**
 * Applies pending migrations in one transaction. If two processes start at once, the second waits and finds nothing to do.
 * Compatible with the records of Drizzle's `migrate`, which checks outside its transaction and so could apply everything twice.
 */
function migrate(
  db: Db,
  { migrations = readMigrations(), beforeMigration = () => {}, onProgress = () => {} }: OpenOptions,
): void {
  transaction(db, (tx) => {
    tx.run(sql`create table if not exists __drizzle_migrations
      (id serial primary key, hash text not null, created_at numeric)`);
    const applied = tx.all<AppliedMigration>(sql`select hash, created_at createdAt from __drizzle_migrations`);
    const origin = originOf(applied, migrations);
    if (origin === "newer")
      throw new AppError(
        "conflict",
        "The database was written by a newer version of evald. Use that version, or restore an older backup.",
      );
    if (origin === "unknown")
      throw new AppError(
        "conflict",
        `${db.$client.filename} was written by a development version of evald and can't be upgraded. Use that version, or start with an empty data directory: choose one with --data.`,
      );
    const lastAppliedAt = Math.max(0, ...applied.map(({ createdAt }) => createdAt));
    const missing = migrations.filter((migration) => migration.folderMillis > lastAppliedAt);
    const isUpgrade = lastAppliedAt > 0 && missing.length > 0;
    if (isUpgrade) {
      beforeMigration();
      // With stale statistics the planner can choose a quadratic plan.
      tx.run(sql`analyze`);
    }
    const statementCount = missing.reduce((all, { sql: statements }) => all + statements.length, 0);
    let done = 0;
    for (const { sql: statements, hash, folderMillis } of missing) {
      for (const statement of statements) {
        tx.run(sql.raw(statement));
        done++;
        if (isUpgrade) onProgress({ done, of: statementCount });
      }
      tx.run(sql`insert into __drizzle_migrations (hash, created_at) values (${hash}, ${folderMillis})`);
    }
    // Beside indexes with statistics, the planner considers new ones far too selective.
    if (isUpgrade) tx.run(sql.raw(optimizePragma));
  });
}

/** Retries for two seconds, because if several processes switch a new database to WAL at once, SQLite rejects all but one immediately. */
function changeToWal(client: Database): void {
  const retryMs = 10;
  const maxAttempts = 200;
  for (let attempt = 1; ; attempt++) {
    try {
      client.run("pragma journal_mode = WAL");
      return;
    } catch (error) {
      if (!isBusy(error) || attempt === maxAttempts) throw error;
      Bun.sleepSync(retryMs);
    }
  }
}

function makeFolder(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    if (/^(EEXIST|ENOTDIR)$/.test(codeOf(error)))
      throw badRequest(`The data directory ${dataDir} is not a directory. Choose another one with --data.`);
    throw new AppError(
      "unavailable",
      `Cannot create the data directory ${dataDir} (${reasonOf(error)}). Choose another one with --data.`,
    );
  }
}

/**
 * Makes the files of a database readable only for this user, before SQLite writes to them. SQLite creates the other files with the mode of the
 * database. An existing file is not opened, because closing it would release all locks of this process on it.
 */
function makePrivate(path: string): void {
  try {
    if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
    for (const file of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(file)) chmodSync(file, 0o600);
  } catch {
    // It may be another user's file or a read-only disk. SQLite reports what it can't open.
  }
}

/**
 * Opens a file and turns errors (not writable, not a database) into `unavailable` with its path and the fix. `remedy`: the fix for a damaged
 * file.
 */
function explainOpenErrors<T>(path: string, remedy: string, work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    const error = refineDiskError(thrown, dirname(path));
    const code = codeOf(error);
    const isDamaged = /^SQLITE_(NOTADB|CORRUPT)/.test(code);
    if (!isDamaged && diskFault(error) !== "full" && code !== "SQLITE_PERM") throw error;
    const problem = isDamaged ? `is damaged. ${remedy}` : writeProblemOf(code, dirname(path));
    throw new AppError("unavailable", `${path} ${problem}, or choose another data directory with --data.`);
  }
}

/** Why a file in a folder can't be written, by the code of the error, and the fix. */
function writeProblemOf(code: string, folder: string): string {
  if (/^SQLITE_(FULL|IOERR)/.test(code)) return "cannot be written because the disk is full. Free some space";
  if (isReadOnly(folder)) return "cannot be written because the disk is mounted read-only. Remount it";
  return "cannot be opened for writing. Give this user write access to its directory";
}

/** Updates the planner statistics, if the database is writable, and checkpoints the WAL. */
export function closeDb(db: Db): void {
  try {
    db.$client.run("pragma optimize");
  } catch (error) {
    if (diskFault(refineDiskError(error, dirname(db.$client.filename))) !== "full" && !isBusy(error)) throw error;
  } finally {
    db.$client.close();
  }
}

/**
 * Runs `work` in one immediate transaction; inside another it is a part of that one. `work` must be synchronous: an async one would
 * commit at its first await and could not be rolled back, so a returned promise is refused, and rolled back, with a TypeError.
 */
export function transaction<T>(db: Db, work: (tx: Tx) => T): T {
  const client = db.$client;
  try {
    if (client.inTransaction) return db.transaction((tx) => refusePromise(work(tx)));
    const { tx, begin, commit, rollback } = controlsOf(db);
    begin.run();
    try {
      const result = refusePromise(work(tx));
      commit.run();
      checkFiles(client);
      return result;
    } finally {
      // After some errors, such as a full disk, SQLite has rolled back already.
      if (client.inTransaction) rollback.run();
    }
  } catch (error) {
    throw refineDiskError(error, dirname(client.filename));
  }
}

/** The statements of transactions, prepared once: Drizzle and Bun build functions and objects for each transaction. */
const controlsOf = perConnection((db: Db) => {
  const client = db.$client;
  return {
    tx: db.transaction((tx) => tx) as Tx,
    begin: client.prepare("begin immediate"),
    commit: client.prepare("commit"),
    rollback: client.prepare("rollback"),
  };
});

/** The result of a transaction callback. Throws a TypeError for a promise. */
export function refusePromise<T>(result: T): T {
  if (result instanceof Promise) throw new TypeError("A transaction callback must not be async.");
  return result;
}

/** Locks a data folder for one process. Keep the reference until `release`, because garbage collection would release the lock. */
export type DataLock = { release(): void };

/**
 * Takes a data folder for this process, or throws `conflict` with the name of the holder. The lock is the operating system's, on the
 * file `evald.lock`: it ends with the process, however that ends, and leaves nothing to clean up.
 */
export function lockData(dataDir: string, holder: { pid: number; since: string }): DataLock {
  makeFolder(dataDir);
  const path = join(dataDir, "evald.lock");
  // A user who can read it can lock it.
  makePrivate(path);
  const file = explainOpenErrors(path, "Delete it", () => new Database(path, { create: true }));
  file.run("pragma busy_timeout = 0");
  const readHolder = () => {
    try {
      return file.query<{ pid: number; since: string }, []>("select pid, since from holder").get();
    } catch {
      return null;
    }
  };
  try {
    explainOpenErrors(path, "Delete it", () => {
      file.run("create table if not exists holder (pid integer not null, since text not null) strict");
      file.run("begin immediate");
      file.run("delete from holder");
      file.run("insert into holder values (?, ?)", [holder.pid, holder.since]);
      file.run("commit");
    });
    // Another process may take the lock between the commit and this line; then this one is correctly rejected.
    file.run("begin immediate");
    return {
      release() {
        file.run("rollback");
        file.close();
      },
    };
  } catch (error) {
    if (!isBusy(error)) throw error;
    const currentHolder = readHolder();
    file.close();
    throw new AppError(
      "conflict",
      `The data directory ${dataDir} is in use by ${currentHolder ? `evald process ${currentHolder.pid}, started ${currentHolder.since}` : "another evald process"}. Stop it, or choose another directory with --data.`,
    );
  }
}
