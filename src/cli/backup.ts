import { Database } from "bun:sqlite";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import type { Config } from "../config.ts";
import { codeOf } from "../db/fault.ts";
import { badRequest, unavailable } from "../errors.ts";
import { print, say, toSize } from "./terminal.ts";

type Options = { force?: boolean; json?: boolean };

/** Adds `backup`: a whole copy of the database in one file, beside a running service or without one. */
export function addBackup(program: Command, configOf: () => Config): void {
  program
    .command("backup <file>")
    .description("copy the database to a file, whole and checked; the service may run meanwhile")
    .option("--force", "replace the file if it is there")
    .option("--json", "print what was made as JSON")
    .addHelpText("after", "\nExample:\n  evald backup /var/backups/evald.backup")
    .action((file: string, { force, json }: Options) => {
      const { dataDir } = configOf();
      const made = backup(dataDir, file, force ?? false);
      say(`${toSize(made.bytes)}, ${made.runs} ${made.runs === 1 ? "run" : "runs"}`);
      print(json ? JSON.stringify(made) : made.file);
    });
}

function backup(dataDir: string, file: string, force: boolean) {
  const database = join(dataDir, "evald.db");
  if (!existsSync(database)) throw badRequest(`there is no database at ${database}; name its folder with --data`);
  const folder = dirname(resolve(file));
  const there = statSync(file, { throwIfNoEntry: false });
  if (there?.isDirectory()) throw badRequest(`${file} is a folder; name a file in it`);
  if (!existsSync(folder)) throw badRequest(`the folder ${folder} does not exist; make it, or name a file elsewhere`);
  if (there && !there.isFile()) throw badRequest(`${file} is no regular file; name another file`);
  refuseOwnFile(dataDir, file);
  if (there && !force) throw badRequest(`${file} is there already; name another file, or replace it with --force`);
  removeUnfinished(file);
  const unfinished = join(folder, `${basename(file)}.${process.pid}.unfinished`);
  const made = copyDatabase(database, unfinished);
  renameSync(unfinished, file);
  syncPath(folder);
  return { file, ...made };
}

/** Throws bad_request for a file that the service itself uses. */
export function refuseOwnFile(dataDir: string, file: string): void {
  const folder = dirname(resolve(file));
  const own = existsSync(folder) && existsSync(dataDir) && realpathSync(folder) === realpathSync(dataDir);
  if (own && /^evald\.(db|lock|secret|db\.restoring)(-(journal|wal|shm))?$/.test(basename(file)))
    throw badRequest(`${file} belongs to the data folder itself; name another file`);
}

/** Removes what earlier tries to make a file have left that were killed. */
export function removeUnfinished(file: string): void {
  const folder = dirname(resolve(file));
  for (const name of readdirSync(folder)) {
    const [, pid] = name.startsWith(`${basename(file)}.`) ? (/\.(\d+)\.unfinished(-journal)?$/.exec(name) ?? []) : [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(folder, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

/** What is in a file of the database. */
export type Contents = { bytes: number; runs: number };

/**
 * Copies a database, as it is at one moment, to a new file: whole, checked, on the disk, and for its owner alone. What was written of it is
 * removed on a failure. Throws unavailable with the path and the remedy.
 */
export function copyDatabase(from: string, to: string): Contents {
  try {
    closeSync(openSync(to, "wx", 0o600));
    readDatabase(from, (db) => db.run("vacuum into ?", [to]));
    const runs = readDatabase(to, (db) => checkWhole(db, from));
    syncPath(to);
    return { bytes: statSync(to).size, runs };
  } catch (error) {
    rmSync(to, { force: true });
    rmSync(`${to}-journal`, { force: true });
    const code = codeOf(error);
    if (/^(SQLITE_FULL|ENOSPC|EDQUOT)/.test(code))
      throw unavailable(`the disk of ${dirname(to)} is full; make room, or name a file on another disk`);
    if (/^(EACCES|EROFS|EPERM)/.test(code))
      throw unavailable(`${dirname(to)} cannot be written by this user; name a file elsewhere`);
    throw error;
  }
}

/** Does something with a database that is there already, without changing it. Throws unavailable for a file that cannot be read as one. */
export function readDatabase<T>(path: string, work: (db: Database) => T): T {
  let db: Database | undefined;
  try {
    db = new Database(path, { readonly: true });
    db.run("pragma busy_timeout = 5000");
    return work(db);
  } catch (error) {
    const code = codeOf(error);
    if (/^SQLITE_(NOTADB|CORRUPT)/.test(code))
      throw unavailable(`${path} is damaged or no database (${(error as Error).message}); use an earlier backup`);
    if (/^SQLITE_(CANTOPEN|PERM)/.test(code)) throw unavailable(`${path} cannot be read by this user`);
    throw error;
  } finally {
    db?.close();
  }
}

/** Looks at every page of a database, and answers with the number of its runs. Throws unavailable, in the name of `path`. */
export function checkWhole(db: Database, path: string): number {
  const damage =
    db.query<{ integrity_check: string }, []>("pragma integrity_check(1)").get()?.integrity_check ?? "no answer";
  const orphan = db.query("pragma foreign_key_check").get() !== null;
  if (damage !== "ok" || orphan)
    throw unavailable(
      `${path} is damaged (${orphan ? "rows miss what they refer to" : damage}); use an earlier backup`,
    );
  return db.query<{ n: number }, []>("select count(*) as n from runs").get()?.n ?? 0;
}

/** Waits until a file, or the names in a folder, are on the disk. */
export function syncPath(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
