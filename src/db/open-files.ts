import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";

type Identity = { path: string; device: number; inode: number };

/** The files of an open database. SQLite goes on writing to deleted files, and those rows are lost when it closes them. */
const openFiles = new WeakMap<Database, Identity[]>();

const identityOf = (path: string): Identity => {
  const { dev, ino } = statSync(path, { throwIfNoEntry: false }) ?? { dev: 0, ino: 0 };
  return { path, device: dev, inode: ino };
};

const isSame = (a: Identity, b: Identity) => a.inode === b.inode && a.device === b.device;
const walOf = ({ filename }: Database) => `${filename}-wal`;

/** Remembers which files a connection has open. Call it after the first statement in WAL mode. */
export function noteFiles(client: Database): void {
  openFiles.set(client, [client.filename, walOf(client)].map(identityOf));
}

/** Throws SQLITE_IOERR_VNODE, as SQLite calls it, if the database or its WAL was deleted, moved or replaced. */
export function checkFiles(client: Database): void {
  const gone = openFiles.get(client)?.find((file) => !isSame(file, identityOf(file.path)));
  if (!gone) return;
  const message = `${gone.path} was deleted, moved or replaced while the service was running`;
  throw Object.assign(new Error(message), { code: "SQLITE_IOERR_VNODE" });
}

/** Moves the rows of a deleted WAL, which is still open, into the database, unless either file was replaced. Returns whether it did. */
export function rescueWal(client: Database): boolean {
  const [main, wal] = openFiles.get(client) ?? [];
  if (!main || !wal || !isSame(main, identityOf(main.path)) || identityOf(wal.path).inode !== 0) return false;
  client.run("pragma wal_checkpoint(full)");
  return true;
}
