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
import type { Config } from "../config.ts";
import { codeOf } from "../db/fault.ts";
import { lockData, readMigrations } from "../db/open.ts";
import { badRequest, conflict } from "../errors.ts";
import { type Contents, checkWhole, copyDatabase, readDatabase, refuseOwnFile, syncPath } from "./backup.ts";
import { print, say, toSize } from "./terminal.ts";

/** Adds `restore`: puts a backup in the place of the database, which is kept beside it. */
export function addRestore(program: Command, configOf: () => Config): void {
  program
    .command("restore <file>")
    .description("put a backup in the place of the database; the service must be stopped")
    .option("--json", "print what was done as JSON")
    .addHelpText("after", "\nExample:\n  evald restore /var/backups/evald.backup")
    .action((file: string, { json }: { json?: boolean }) => {
      const { dataDir } = configOf();
      const done = restore(dataDir, file);
      say(`restored ${file}: ${toSize(done.bytes)}, ${done.runs} ${done.runs === 1 ? "run" : "runs"}`);
      if (done.before !== null) say(`what was there before is kept as ${done.before}; delete it when it is not needed`);
      print(json ? JSON.stringify(done) : done.database);
    });
}

function restore(dataDir: string, file: string): Contents & { database: string; before: string | null } {
  if (!existsSync(file)) throw badRequest(`there is no file ${file}`);
  if (!statSync(file).isFile()) throw badRequest(`${file} is no file`);
  refuseOwnFile(dataDir, file);
  readDatabase(file, checkBackup);
  const since = new Date().toISOString();
  const time = since.replaceAll(":", "-");
  const lock = lockData(dataDir, { pid: process.pid, since });
  const database = join(dataDir, "evald.db");
  const copy = join(dataDir, "evald.db.restoring");
  const before = existsSync(database) ? `${database}.before-restore-${time}` : null;
  try {
    removeUnfinished(dataDir, file);
    const made = copyDatabase(file, copy);
    const { uid, gid } = statSync(before === null ? dataDir : database);
    for (const path of [copy, join(dataDir, "evald.lock")]) if (uid !== statSync(path).uid) chownSync(path, uid, gid);
    putAside(database, before ?? `${database}.lost-${time}`);
    syncPath(dataDir);
    // Sign-ins and links of a former time come to nothing with the key that signed them.
    rmSync(join(dataDir, secretFile), { force: true });
    // In one step: whoever looks finds the old database or the new one.
    renameSync(copy, database);
    syncPath(dataDir);
    return { database, before, ...made };
  } catch (error) {
    rmSync(copy, { force: true });
    throw error;
  } finally {
    lock.release();
  }
}

/** Throws for what is no whole backup of this version of evald or an older one. */
function checkBackup(db: Database): void {
  const known = new Set(readMigrations().map(({ hash }) => hash));
  const ofEvald = db.query("select 1 from sqlite_schema where name = '__drizzle_migrations'").get() !== null;
  const applied = ofEvald
    ? db.query<{ hash: string }, []>("select hash from __drizzle_migrations order by created_at").all()
    : [];
  if (!applied[0] || !known.has(applied[0].hash)) throw badRequest(`${db.filename} is no database of evald`);
  if (applied.some(({ hash }) => !known.has(hash)))
    throw badRequest(`${db.filename} was made by a newer version of evald; restore it with that version`);
  checkWhole(db, db.filename);
}

/** Removes what an earlier restore has left that was killed, but never the file that is to be restored. */
function removeUnfinished(dataDir: string, file: string): void {
  for (const name of readdirSync(dataDir)) {
    const path = join(dataDir, name);
    const second =
      name.startsWith("evald.db.before-restore-") &&
      statSync(path).ino === statSync(join(dataDir, "evald.db"), { throwIfNoEntry: false })?.ino;
    const ours = second || /^evald\.db\.restoring(-(journal|wal|shm))?$/.test(name);
    if (ours && realpathSync(path) !== realpathSync(file)) rmSync(path);
  }
}

/** Gives the database, in one file, a second name, under which it stays; until another file takes the first, it has both. */
function putAside(database: string, aside: string): void {
  foldWal(database);
  // A WAL that is still there belongs to a database that is damaged or gone. It would be read into the new one.
  for (const suffix of ["-wal", "-shm"]) {
    if (!existsSync(database + suffix)) continue;
    secondName(database + suffix, aside + suffix);
    rmSync(database + suffix);
  }
  if (existsSync(database)) secondName(database, aside);
}

/** Makes one file of a database and its WAL. One that is damaged stays as it is. Throws conflict if it is in use. */
function foldWal(path: string): void {
  if (!existsSync(path)) return;
  let db: Database | undefined;
  try {
    db = new Database(path, { readwrite: true });
    db.run("pragma busy_timeout = 1000");
    db.run("pragma journal_mode = delete");
  } catch (error) {
    if (/^SQLITE_(BUSY|LOCKED)/.test(codeOf(error)))
      throw conflict(`${path} is in use by another command of evald; wait for its end and try again`);
    if (!/^SQLITE_(NOTADB|CORRUPT)/.test(codeOf(error))) throw error;
  } finally {
    db?.close();
  }
}

function secondName(path: string, name: string): void {
  try {
    linkSync(path, name);
  } catch {
    // Not every file system has second names.
    copyFileSync(path, name);
    syncPath(name);
  }
}
