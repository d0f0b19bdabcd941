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
 * Backs up the database next to itself before its tables change, and says where. It belongs to the owner of the database, and isn't recorded as a
 * backup: it is on the same disk. Throws unavailable or bad_request, which name the remedy.
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

/** Copies a database to a file, which appears only when it is complete. */
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
 * Copies a consistent snapshot of a database to a new file, checks, seals and syncs it, and makes it readable for its owner only. Removes
 * the file on failure. Throws unavailable or bad_request with the path and the remedy.
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

/** Number of runs of a database; 0 if its version has no table of runs. */
export function countRuns(db: Database): number {
  const hasRuns = db.query("select 1 from sqlite_master where type = 'table' and name = 'runs'").get() !== null;
  return hasRuns ? (db.query<{ n: number }, []>("select count(*) as n from runs").get()?.n ?? 0) : 0;
}

/** Opens an existing database read-only for the duration of `work`. Throws bad_request if it is damaged or no database, and unavailable if this user may not read it. */
export function readDatabase<T>(path: string, work: (db: Database) => T): T {
  let db: Database | undefined;
  try {
    db = new Database(path, { readonly: true });
    db.run("pragma busy_timeout = 5000");
    // It may be a stranger's file.
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

/** Throws bad_request, which names `path`, for a damaged database. */
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
