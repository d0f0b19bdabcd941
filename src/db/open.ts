import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { sql } from "drizzle-orm/sql";
import { AppError } from "../errors.ts";
import { codeOf, diskFault, isBusy, isReadOnly, nameFault } from "./fault.ts";

export type Db = BunSQLiteDatabase & { $client: Database };
/** A transaction in progress; what is done through it stands or falls together. */
export type Tx = Parameters<Parameters<Db["transaction"]>[0]>[0];

// A compiled executable carries the folder `drizzle` beside its modules; from source it lies two folders up.
const migrationsFolder = Bun.main.startsWith("/$bunfs/")
  ? join(import.meta.dir, "drizzle")
  : join(import.meta.dir, "..", "..", "drizzle");

/**
 * Opens (and makes) the database `evald.db` of a data folder, `:memory:` for one that is never stored, and brings its schema up to date,
 * before which `mayMigrate` is called for one of an older version: what it throws leaves that as it is.
 * The order of the pragmas matters: without a busy timeout the change to WAL fails when another process is starting.
 */
export function openDb(dataDir: string, mayMigrate = () => {}): Db {
  if (dataDir !== ":memory:") makeFolder(dataDir);
  const path = dataDir === ":memory:" ? dataDir : join(dataDir, "evald.db");
  const client = opened(path, "put a backup in its place", () => new Database(path, { create: true }));
  client.run("pragma busy_timeout = 5000");
  opened(path, "put a backup in its place", () => changeToWal(client));
  client.run("pragma synchronous = FULL");
  client.run("pragma foreign_keys = ON");
  client.run("pragma trusted_schema = OFF");
  client.run("pragma journal_size_limit = 67108864");
  client.run("pragma cell_size_check = ON");
  client.run("pragma temp_store = MEMORY");
  // KiB. With the usual 2 MiB most reads of a run go to the operating system, which takes twice as long.
  client.run("pragma cache_size = -32768");
  const db = drizzle({ client });
  opened(path, "put a backup in its place", () => migrate(db, mayMigrate));
  return db;
}

/** The migrations that this version carries, oldest first, as their records stand in a database. */
export const readMigrations = () => readMigrationFiles({ migrationsFolder });

/**
 * Applies what is new of `drizzle` in one transaction, in which processes that start at once take turns: the second finds nothing left to do.
 * Keeps the records of Drizzle's own `migrate`, which looks before its transaction and so applies everything twice.
 */
function migrate(db: Db, mayMigrate: () => void): void {
  const migrations = readMigrations();
  tx(db, (t) => {
    t.run(sql`create table if not exists __drizzle_migrations
      (id serial primary key, hash text not null, created_at numeric)`);
    const last = t.values<[number | null]>(sql`select max(created_at) from __drizzle_migrations`)[0]?.[0] ?? 0;
    if (last > Math.max(...migrations.map((one) => one.folderMillis)))
      throw new AppError(
        "conflict",
        "the data were written by a newer evald than this; use that one, or restore an older backup",
      );
    const missing = migrations.filter((one) => one.folderMillis > last);
    if (last > 0 && missing.length > 0) mayMigrate();
    for (const { sql: statements, hash, folderMillis } of missing) {
      for (const statement of statements) t.run(sql.raw(statement));
      t.run(sql`insert into __drizzle_migrations (hash, created_at) values (${hash}, ${folderMillis})`);
    }
  });
}

/** Of processes that change a new database to WAL at once, SQLite refuses all but one without waiting: they try again. */
function changeToWal(client: Database): void {
  for (let attempt = 1; ; attempt++) {
    try {
      client.run("pragma journal_mode = WAL");
      return;
    } catch (error) {
      if (!isBusy(error) || attempt === 200) throw error;
      Bun.sleepSync(10);
    }
  }
}

function makeFolder(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AppError("unavailable", `the data folder ${dataDir} cannot be made (${why}); name another with --data`);
  }
}

/** The first uses of a file, which tell that it cannot be written or is no database: `unavailable`, with its path and the remedy. */
function opened<T>(path: string, remedy: string, work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    const error = nameFault(thrown, dirname(path));
    const damaged = /^SQLITE_(NOTADB|CORRUPT)/.test(codeOf(error));
    if (!damaged && diskFault(error) !== "full" && codeOf(error) !== "SQLITE_PERM") throw error;
    const what = damaged
      ? `is damaged; ${remedy}`
      : /^SQLITE_(FULL|IOERR)/.test(codeOf(error))
        ? "cannot be written, for its disk is full; make room"
        : isReadOnly(dirname(path))
          ? "cannot be written, for its disk is read-only; mount it for writing"
          : "cannot be opened for writing; give its folder to this user";
    throw new AppError("unavailable", `${path} ${what}, or name another folder with --data`);
  }
}

/** Lets the planner look at what has changed, if that can be written, and gives the WAL back to the file. */
export function closeDb(db: Db): void {
  try {
    db.$client.run("pragma optimize");
  } catch (error) {
    if (diskFault(nameFault(error, dirname(db.$client.filename))) !== "full" && !isBusy(error)) throw error;
  } finally {
    db.$client.close();
  }
}

/**
 * Runs `work` in one immediate transaction; inside another `tx` it is a part of that one. `work` must be synchronous: an async one would
 * commit at its first await and could not be rolled back, so a returned promise is refused, and rolled back, with a TypeError.
 */
export function tx<T>(db: Db, work: (tx: Tx) => T): T {
  try {
    return db.transaction((inner) => refusePromise(work(inner)), { behavior: "immediate" });
  } catch (error) {
    throw nameFault(error, dirname(db.$client.filename));
  }
}

/** What a transaction's work answered with. Throws a TypeError for a promise. */
export function refusePromise<T>(result: T): T {
  if (result instanceof Promise) throw new TypeError("the work of a transaction must not be async");
  return result;
}

/** Holds a data folder for one process. Dropping the last reference would let it go, so keep it until `release`. */
export type DataLock = { release(): void };

/**
 * Takes a data folder for this process, or throws `conflict` with the name of the holder. The lock is the operating system's, on the
 * file `evald.lock`: it ends with the process, however that ends, and leaves nothing to clean up.
 */
export function lockData(dataDir: string, holder: { pid: number; since: string }): DataLock {
  makeFolder(dataDir);
  const path = join(dataDir, "evald.lock");
  const file = opened(path, "delete it", () => new Database(path, { create: true }));
  file.run("pragma busy_timeout = 0");
  const whose = () => {
    try {
      return file.query<{ pid: number; since: string }, []>("select pid, since from holder").get();
    } catch {
      return null;
    }
  };
  try {
    opened(path, "delete it", () => {
      file.run("create table if not exists holder (pid integer not null, since text not null) strict");
      file.run("begin immediate");
      file.run("delete from holder");
      file.run("insert into holder values (?, ?)", [holder.pid, holder.since]);
      file.run("commit");
    });
    // Between the commit and this line another process may win; then this one is refused as it should be.
    file.run("begin immediate");
    return {
      release() {
        file.run("rollback");
        file.close();
      },
    };
  } catch (error) {
    if (!isBusy(error)) throw error;
    const owner = whose();
    file.close();
    throw new AppError(
      "conflict",
      `the data folder ${dataDir} is in use by ${owner ? `the evald process ${owner.pid}, started ${owner.since}` : "another evald process"}; stop it, or name another folder with --data`,
    );
  }
}

/** Another text whenever something may have been written since, by this process or another: asking costs no look at the data. */
export const changeMark = ({ $client }: Db): string =>
  ["select total_changes()", "pragma data_version"]
    .map((text) => Object.values($client.query<Record<string, number>, []>(text).get() ?? {})[0])
    .join(" ");
