import { Database } from "bun:sqlite";
import {
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { secretFile } from "../auth/links.ts";
import { download } from "../backups/object-store.ts";
import { isStoreUrl, toBackupTarget } from "../config/backup-settings.ts";
import type { Config } from "../config/config.ts";
import { copyFromBackup, sealBackup } from "../db/backup-file.ts";
import { codeOf } from "../db/fault.ts";
import { listForeignSchema } from "../db/foreign-schema.ts";
import { type AppliedMigration, lockData, originOf } from "../db/open.ts";
import { badRequest, conflict } from "../errors.ts";
import { count, toSize } from "../grading/text.ts";
import { toIso } from "../schema.ts";
import { type CopySummary, checkIntegrity, countRuns, readDatabase, syncPath } from "./database-copy.ts";
import { checkFile, refuseOwnFile, toWriteError } from "./files.ts";
import { print, say, toJson } from "./terminal.ts";

type Env = Record<string, string | undefined>;

/** Adds `restore`: replaces the database with a backup and keeps the previous one next to it. */
export function addRestore(program: Command, configOf: () => Config, env: Env): void {
  program
    .command("restore <file>")
    .description("Restore the database from a backup, a file or s3://bucket/name; stop the service first")
    .option("--json", "Print the result as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  evald restore /var/backups/evald.backup\n  evald restore s3://backups/evald/evald-2026-11-20T03-00-00Z.backup",
    )
    .action(async (file: string, { json }: { json?: boolean }) => {
      const { dataDir } = configOf();
      const result = isStoreUrl(file) ? await restoreStored(dataDir, file, env) : restoreFile(dataDir, file);
      say(`Restored ${count(result.runs, "run")} (${toSize(result.bytes)}) from ${file}.`);
      if (result.before !== null)
        say(`The previous database is kept at ${result.before}. Delete it once you no longer need it.`);
      print(json ? toJson(result) : result.database);
    });
}

/** Fetches a backup from a store into the data directory, and restores it. Throws ConfigError if the variables of the store are missing. */
async function restoreStored(dataDir: string, url: string, env: Env) {
  const [, folderUrl = "", name = ""] = /^(.*)\/([^/]*)$/s.exec(url) ?? [];
  const target = toBackupTarget(folderUrl, env);
  if (target.kind !== "store" || name === "") throw badRequest(`${url} doesn't name a file.`);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const folder = mkdtempSync(join(dataDir, "restore."));
  try {
    const file = join(folder, name);
    say(`Fetching ${url}…`);
    await download(target, name, file);
    return restoreFile(dataDir, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Replaces the database of a data directory with the database of a backup. If it throws bad_request, conflict or unavailable, nothing has changed.
 */
export function restoreFile(
  dataDir: string,
  file: string,
): CopySummary & { database: string; before: string | null; createdAt: string } {
  checkFile(file);
  refuseOwnFile(dataDir, file);
  const since = toIso(Date.now());
  const time = since.replaceAll(":", "-");
  const lock = lockData(dataDir, { pid: process.pid, since });
  const database = join(dataDir, "evald.db");
  const copy = join(dataDir, "evald.db.restoring");
  const before = existsSync(database) ? `${database}.before-restore-${time}` : null;
  try {
    removeLeftovers(dataDir, file);
    const { bytes, runs, createdAt } = copyFromBackup(file, copy);
    readDatabase(copy, (db) => checkBackup(db, file));
    // An administrator may run the restore, but the user of the service must be able to open these files.
    giveToOwnerOf(before === null ? dataDir : database, [copy, join(dataDir, "evald.lock")]);
    // If there is no database, only the WAL of a lost one may remain.
    const isIntact = linkDatabaseTo(database, before ?? `${database}.lost-${time}`);
    syncPath(dataDir);
    // Deleting the signing key invalidates the sessions and links that were issued before.
    rmSync(join(dataDir, secretFile), { force: true });
    // Atomic: other processes see either the old database or the new one.
    renameSync(copy, database);
    syncPath(dataDir);
    if (before !== null && isIntact) sealPrevious(before);
    return { database, before, bytes, runs, createdAt };
  } catch (error) {
    rmSync(copy, { force: true });
    throw toWriteError(error, copy);
  } finally {
    lock.release();
  }
}

function giveToOwnerOf(path: string, files: string[]): void {
  const { uid, gid } = statSync(path);
  for (const file of files) if (statSync(file).uid !== uid) chownSync(file, uid, gid);
}

/** Turns the previous database into a backup, so that it can be restored. */
function sealPrevious(path: string): void {
  try {
    sealBackup(path, readDatabase(path, countRuns), Date.now());
    syncPath(path);
  } catch {
    // The restore is already complete. A file without a manifest can still be put back by hand.
  }
}

/** Checks that a backup is intact, and from this or an older version of evald. Throws an error that names the backup `file`. */
function checkBackup(db: Database, file: string): void {
  const hasMigrations = db.query("select 1 from sqlite_schema where name = '__drizzle_migrations'").get() !== null;
  const appliedMigrations = hasMigrations
    ? db.query<AppliedMigration, []>("select hash, created_at createdAt from __drizzle_migrations").all()
    : [];
  if (appliedMigrations.length === 0) throw badRequest(`${file} is not an evald database.`);
  const origin = originOf(appliedMigrations);
  if (origin === "newer")
    throw badRequest(`${file} was made by a newer version of evald. Restore it with that version.`);
  if (origin === "unknown")
    throw badRequest(`${file} was made by a development version of evald and can't be upgraded. Use that version.`);
  const foreign = listForeignSchema(db);
  if (foreign.length > 0)
    throw badRequest(
      `${file} was changed by another program. It differs from a database of evald in ${foreign.slice(0, 5).join(", ")}${foreign.length > 5 ? ` and ${foreign.length - 5} more` : ""}. Use an earlier backup.`,
    );
  checkIntegrity(db, file);
}

/** Removes leftovers of an earlier restore that was killed, but never the file that is being restored. */
function removeLeftovers(dataDir: string, file: string): void {
  for (const name of readdirSync(dataDir)) {
    const path = join(dataDir, name);
    // If a restore was killed before its last step, it has only given the database a second name.
    const isSecondName =
      name.startsWith("evald.db.before-restore-") &&
      statSync(path).ino === statSync(join(dataDir, "evald.db"), { throwIfNoEntry: false })?.ino;
    const isLeftover = isSecondName || /^evald\.db\.restoring(-(journal|wal|shm))?$/.test(name);
    if (isLeftover && realpathSync(path) !== realpathSync(file)) rmSync(path);
  }
}

/**
 * Merges the database into one file, and links it to a second name. The link keeps the database when a new file replaces it. Returns whether the
 * database can be read.
 */
function linkDatabaseTo(database: string, secondName: string): boolean {
  const isIntact = mergeWal(database);
  // A remaining WAL belongs to a damaged or missing database. SQLite would replay it into the new database.
  for (const suffix of ["-wal", "-shm"]) {
    if (!existsSync(database + suffix)) continue;
    linkOrCopy(database + suffix, secondName + suffix);
    rmSync(database + suffix);
  }
  if (existsSync(database)) linkOrCopy(database, secondName);
  return isIntact;
}

/**
 * Merges the WAL into the database, and returns whether that succeeded. Doesn't touch a damaged database. Throws conflict if the database is in use.
 */
function mergeWal(path: string): boolean {
  if (!existsSync(path)) return false;
  let db: Database | undefined;
  try {
    db = new Database(path, { readwrite: true });
    db.run("pragma busy_timeout = 1000");
    db.run("pragma journal_mode = delete");
    return true;
  } catch (error) {
    if (/^SQLITE_(BUSY|LOCKED)/.test(codeOf(error)))
      throw conflict(`${path} is in use by another evald command. Wait for it to finish and try again.`);
    if (!/^SQLITE_(NOTADB|CORRUPT)/.test(codeOf(error))) throw error;
    return false;
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
