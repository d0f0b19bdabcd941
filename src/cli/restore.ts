import { Database } from "bun:sqlite";
import {
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { secretFile } from "../auth/links.ts";
import type { Config } from "../config/config.ts";
import { codeOf } from "../db/fault.ts";
import { type AppliedMigration, lockData, originOf } from "../db/open.ts";
import { badRequest, conflict } from "../errors.ts";
import { count } from "../grading/text.ts";
import { toIso } from "../schema.ts";
import { type CopySummary, checkIntegrity, copyDatabase, readDatabase, syncPath } from "./backup.ts";
import { checkFile, refuseOwnFile } from "./files.ts";
import { print, say, toJson, toSize } from "./terminal.ts";

/** Adds `restore`: replaces the database with a backup and keeps the previous one next to it. */
export function addRestore(program: Command, configOf: () => Config): void {
  program
    .command("restore <file>")
    .description("Restore the database from a backup; stop the service first")
    .option("--json", "Print the result as JSON")
    .addHelpText("after", "\nExample:\n  evald restore /var/backups/evald.backup")
    .action((file: string, { json }: { json?: boolean }) => {
      const { dataDir } = configOf();
      const result = restore(dataDir, file);
      say(`Restored ${count(result.runs, "run")} (${toSize(result.bytes)}) from ${file}.`);
      if (result.before !== null)
        say(`The previous database is kept at ${result.before}. Delete it once you no longer need it.`);
      print(json ? toJson(result) : result.database);
    });
}

function restore(dataDir: string, file: string): CopySummary & { database: string; before: string | null } {
  checkFile(file);
  refuseOwnFile(dataDir, file);
  readDatabase(file, checkBackup);
  const since = toIso(Date.now());
  const time = since.replaceAll(":", "-");
  const lock = lockData(dataDir, { pid: process.pid, since });
  const database = join(dataDir, "evald.db");
  const copy = join(dataDir, "evald.db.restoring");
  const before = existsSync(database) ? `${database}.before-restore-${time}` : null;
  try {
    removeLeftovers(dataDir, file);
    const copyResult = copyDatabase(file, copy);
    const { uid, gid } = statSync(before === null ? dataDir : database);
    for (const path of [copy, join(dataDir, "evald.lock")]) if (uid !== statSync(path).uid) chownSync(path, uid, gid);
    linkDatabaseTo(database, before ?? `${database}.lost-${time}`);
    syncPath(dataDir);
    // Deleting the signing key invalidates the sessions and links that were issued before.
    rmSync(join(dataDir, secretFile), { force: true });
    // Atomic: other processes see either the old database or the new one.
    renameSync(copy, database);
    syncPath(dataDir);
    return { database, before, ...copyResult };
  } catch (error) {
    rmSync(copy, { force: true });
    throw error;
  } finally {
    lock.release();
  }
}

/** Throws unless the database is an intact backup of this version of evald or an older one. */
function checkBackup(db: Database): void {
  const hasMigrations = db.query("select 1 from sqlite_schema where name = '__drizzle_migrations'").get() !== null;
  const appliedMigrations = hasMigrations
    ? db.query<AppliedMigration, []>("select hash, created_at createdAt from __drizzle_migrations").all()
    : [];
  const origin = originOf(appliedMigrations);
  if (appliedMigrations.length === 0 || origin === "unknown")
    throw badRequest(`${db.filename} is not an evald database.`);
  if (origin === "newer")
    throw badRequest(`${db.filename} was made by a newer version of evald. Restore it with that version.`);
  checkIntegrity(db, db.filename);
}

/** Removes leftovers of an earlier restore that was killed, but never the file to restore. */
function removeLeftovers(dataDir: string, file: string): void {
  for (const name of readdirSync(dataDir)) {
    const path = join(dataDir, name);
    const isDuplicate =
      name.startsWith("evald.db.before-restore-") &&
      statSync(path).ino === statSync(join(dataDir, "evald.db"), { throwIfNoEntry: false })?.ino;
    const isLeftover = isDuplicate || /^evald\.db\.restoring(-(journal|wal|shm))?$/.test(name);
    if (isLeftover && realpathSync(path) !== realpathSync(file)) rmSync(path);
  }
}

/** Links the database, as one file, to a second name, under which it is kept once a new file replaces it. */
function linkDatabaseTo(database: string, aside: string): void {
  mergeWal(database);
  // A remaining WAL belongs to a damaged or missing database. SQLite would replay it into the new one.
  for (const suffix of ["-wal", "-shm"]) {
    if (!existsSync(database + suffix)) continue;
    linkOrCopy(database + suffix, aside + suffix);
    rmSync(database + suffix);
  }
  if (existsSync(database)) linkOrCopy(database, aside);
}

/** Merges the WAL into the database. Leaves a damaged database as it is. Throws conflict if it is in use. */
function mergeWal(path: string): void {
  if (!existsSync(path)) return;
  let db: Database | undefined;
  try {
    db = new Database(path, { readwrite: true });
    db.run("pragma busy_timeout = 1000");
    db.run("pragma journal_mode = delete");
  } catch (error) {
    if (/^SQLITE_(BUSY|LOCKED)/.test(codeOf(error)))
      throw conflict(`${path} is in use by another evald command. Wait for it to finish and try again.`);
    if (!/^SQLITE_(NOTADB|CORRUPT)/.test(codeOf(error))) throw error;
  } finally {
    db?.close();
  }
}

function linkOrCopy(path: string, name: string): void {
  try {
    linkSync(path, name);
  } catch {
    // Not every file system supports hard links.
    copyFileSync(path, name);
    syncPath(name);
  }
}
