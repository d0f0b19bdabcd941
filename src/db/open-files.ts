import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { dirname } from "node:path";

/** `inode` 0: there is no such file. */
type Identity = { path: string; device: number; inode: number };

/** The files of an open database. SQLite goes on writing to deleted files, and those rows are lost when it closes them. */
type OpenFiles = {
  files: Identity[];
  folder: string;
  /** While the folder has this modification time, the files need no further check. Epoch ms; null: check them. */
  provenAt: number | null;
  /** When the files were last checked, by the monotonic clock. */
  checkedAt: number;
};

const openFiles = new WeakMap<Database, OpenFiles>();

/** Commits on a fast disk take a tenth of this, so most of them need no check of the disk. */
const checkEveryMs = 1;
/** Longer than a tick of the timestamps of files. */
const tickMs = 50;

const statOf = (path: string) => statSync(path, { throwIfNoEntry: false });

const identityOf = (path: string): Identity => {
  const { dev, ino } = statOf(path) ?? { dev: 0, ino: 0 };
  return { path, device: dev, inode: ino };
};

const isSame = (a: Identity, b: Identity) => a.inode === b.inode && a.device === b.device;
const walOf = ({ filename }: Database) => `${filename}-wal`;

/** Remembers which files a connection has open. Call it after the first statement in WAL mode. */
export function rememberFiles(client: Database): void {
  const files = [client.filename, walOf(client)].map(identityOf);
  openFiles.set(client, {
    files,
    folder: dirname(client.filename),
    provenAt: null,
    checkedAt: Number.NEGATIVE_INFINITY,
  });
}

/** Throws SQLITE_IOERR_VNODE, as SQLite calls it, if the database or its WAL was deleted, moved or replaced. Checks at most once a millisecond. */
export function checkFiles(client: Database): void {
  const open = openFiles.get(client);
  if (!open || performance.now() - open.checkedAt < checkEveryMs) return;
  open.checkedAt = performance.now();
  // Each of these changes also changes the folder, and checking it takes half as long. This runs after every commit.
  const changedAt = statOf(open.folder)?.mtimeMs ?? null;
  if (changedAt !== null && changedAt === open.provenAt) return;
  const lost = open.files.find((file) => !isSame(file, identityOf(file.path)));
  if (lost) {
    const message = `${lost.path} was deleted, moved or replaced while the service was running`;
    throw Object.assign(new Error(message), { code: "SQLITE_IOERR_VNODE" });
  }
  // Another change in the same tick would leave the folder with the same time.
  const isTickOver = changedAt !== null && diskNow(open) - changedAt > tickMs;
  open.provenAt = isTickOver ? changedAt : null;
}

/**
 * The current time by the clock of the disk, epoch ms. A check follows a commit, which writes a file, so the time of the last write is the current
 * one.
 */
const diskNow = ({ files }: OpenFiles): number => Math.max(...files.map(({ path }) => statOf(path)?.mtimeMs ?? 0));

/** Moves the rows of a deleted WAL, which is still open, into the database, unless either file was replaced. Returns whether it did. */
export function rescueWal(client: Database): boolean {
  const [main, wal] = openFiles.get(client)?.files ?? [];
  if (!main || !wal || !isSame(main, identityOf(main.path)) || identityOf(wal.path).inode !== 0) return false;
  client.run("pragma wal_checkpoint(full)");
  return true;
}
