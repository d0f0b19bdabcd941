import { Database } from "bun:sqlite";
import { chownSync, closeSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { sealBackup } from "../db/backup-file.ts";
import { codeOf } from "../db/fault.ts";
import { badRequest, unavailable } from "../errors.ts";
import { count, toSize } from "../grading/text.ts";
import { toIso } from "../schema.ts";
import { removeUnfinished, toWriteError } from "./files.ts";
import { say } from "./terminal.ts";

/**
 * Backs up the database to the folder that it is in, before its tables change, and prints the path. The backup belongs to the owner of the database.
 * It isn't recorded as a backup, because it is on the same disk. Throws unavailable or bad_request, which name the remedy.
 */
export function backUpBeforeUpgrade(dataDir: string): void {
  const database = join(dataDir, "evald.db");
  const file = `${database}.before-upgrade-${toIso(Date.now()).replaceAll(":", "-")}`;
  say("Backing up the database before its upgrade…");
  const { runs, bytes } = copyTo(database, file);
  const { uid, gid } = statSync(database);
  if (uid !== statSync(file).uid) chownSync(file, uid, gid);
  say(`Backed up ${count(runs, "run")} (${toSize(bytes)}) to ${file}. Delete it once you no longer need it.`);
}

/** Copies a database to a file. The file appears only when it is complete. */
export function copyTo(database: string, file: string): CopySummary {
  const folder = dirname(resolve(file));
  removeUnfinished(file);
  const unfinished = join(folder, `${basename(file)}.${process.pid}.unfinished`);
  const result = copyDatabase(database, unfinished);
  try {
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw toWriteError(error, file);
  }
  syncPath(folder);
  return result;
}

/** Size and number of runs of a database file. */
export type CopySummary = { bytes: number; runs: number };

/**
 * Copies a consistent snapshot of a database to a new file. Checks, seals and syncs the file, and makes it readable for its owner only. Removes the
 * file on failure. Throws unavailable or bad_request with the path and the remedy.
 */
function copyDatabase(from: string, to: string): CopySummary {
  try {
    closeSync(openSync(to, "wx", 0o600));
    readDatabase(from, (db) => db.run("vacuum into ?", [to]));
    const runs = readDatabase(to, (db) => {
      checkIntegrity(db, from);
      return countRuns(db);
    });
    sealBackup(to, runs, Date.now());
    syncPath(to);
    return { bytes: statSync(to).size, runs };
  } catch (error) {
    rmSync(to, { force: true });
    rmSync(`${to}-journal`, { force: true });
    throw toWriteError(error, to);
  }
}

/** The number of runs in a database; 0 if its version doesn't have the table yet. */
export function countRuns(db: Database): number {
  const hasRuns = db.query("select 1 from sqlite_master where type = 'table' and name = 'runs'").get() !== null;
  return hasRuns ? (db.query<{ n: number }, []>("select count(*) as n from runs").get()?.n ?? 0) : 0;
}

/**
 * Opens an existing database read-only for the duration of `work`. Throws bad_request if the file is damaged or isn't a database, and unavailable if
 * this user may not read it.
 */
export function readDatabase<T>(path: string, work: (db: Database) => T): T {
  let db: Database | undefined;
  try {
    db = new Database(path, { readonly: true });
    db.run("pragma busy_timeout = 5000");
    // The file may come from a stranger.
    db.run("pragma trusted_schema = OFF");
    db.run("pragma cell_size_check = ON");
    return work(db);
  } catch (error) {
    const code = codeOf(error);
    if (/^SQLITE_(NOTADB|CORRUPT)/.test(code))
      throw badRequest(`${path} is damaged or not a database (${(error as Error).message}). Use an earlier backup.`);
    if (/^SQLITE_(CANTOPEN|PERM)/.test(code)) throw unavailable(`This user has no read access to ${path}.`);
    throw error;
  } finally {
    db?.close();
  }
}

/** Throws bad_request that names `path` if the database is damaged. */
export function checkIntegrity(db: Database, path: string): void {
  const damage =
    db.query<{ integrity_check: string }, []>("pragma integrity_check(1)").get()?.integrity_check ?? "no answer";
  const hasOrphans = db.query("pragma foreign_key_check").get() !== null;
  if (damage !== "ok" || hasOrphans)
    throw badRequest(`${path} is damaged (${hasOrphans ? "foreign key violations" : damage}). Use an earlier backup.`);
}

/** Syncs a file, or the entries of a directory, to disk. */
export function syncPath(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
