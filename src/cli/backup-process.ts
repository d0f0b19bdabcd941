import { mkdirSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { linesOf } from "../agents/lines.ts";
import { type BackupAnswer, type BackupOrder, workFolder } from "../backups/loop.ts";
import { download, listStored, removeStored, upload } from "../backups/object-store.ts";
import { isBackupName } from "../backups/retention.ts";
import { type BackupTarget, locationOf } from "../config/backup-settings.ts";
import { recordBackup } from "../db/backup-record.ts";
import { AppError, badRequest, conflict, reasonOf, unavailable } from "../errors.ts";
import { toSize } from "../grading/text.ts";
import { copyTo } from "./database-copy.ts";
import { restoreFile } from "./restore.ts";

/** The space that must stay free on a disk, so that the service can continue to write. */
const spareBytes = 64 * 1024 * 1024;

/** The process of a backup: reads an order from stdin, answers it on stdout, and ends. */
export async function runBackupProcess(): Promise<never> {
  let answer: BackupAnswer;
  try {
    answer = await backUp(await readOrder());
  } catch (error) {
    answer = { failure: error instanceof AppError ? error.detail : reasonOf(error) };
  }
  await new Promise((done) => process.stdout.write(`${JSON.stringify(answer)}\n`, done));
  // Exits explicitly, because an interrupted transfer would keep the process alive.
  process.exit(0);
}

async function readOrder(): Promise<BackupOrder> {
  for await (const line of linesOf(Bun.stdin.stream())) if (line !== null) return JSON.parse(line);
  throw new Error("There is no order.");
}

/** Writes a backup to the target, restores it next to the database to check it, and then deletes the expired backups. */
async function backUp({ dataDir, target, name, expired, known }: BackupOrder): Promise<BackupAnswer> {
  const work = join(dataDir, workFolder);
  rmSync(work, { recursive: true, force: true });
  // The names are times, so the newest backup comes last.
  const storedNames = (await listTarget(target)).filter(isBackupName).sort();
  if (known !== null) refuseForeign(target, storedNames, known);
  checkSpace(dataDir, target);
  mkdirSync(work, { mode: 0o700 });
  try {
    const local = target.kind === "directory" ? locationOf(target, name) : join(work, name);
    const copied = copyTo(join(dataDir, "evald.db"), local);
    if (target.kind === "store") {
      await upload(target, local, name);
      rmSync(local);
    }
    try {
      if (target.kind === "store") await download(target, name, local);
      const runs = restoreIn(work, local);
      if (runs !== copied.runs)
        throw badRequest(`${locationOf(target, name)} has ${runs} runs and not ${copied.runs}.`);
    } catch (error) {
      await remove(target, name).catch(() => {});
      throw error;
    }
    recordBackup(dataDir);
    return { ...copied, removed: await removeAll(target, expired) };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Restores a backup in a folder, to check it. Returns its number of runs. Throws what `restoreFile` throws. */
function restoreIn(folder: string, file: string): number {
  const restored = join(folder, "restored");
  mkdirSync(restored);
  return restoreFile(restored, file).runs;
}

/** The names of the files in the target. Removes leftovers of killed backups. Throws bad_request or unavailable if the target can't keep backups. */
async function listTarget(target: BackupTarget): Promise<string[]> {
  if (target.kind === "store") return (await listStored(target)).map(({ name }) => name);
  if (!statSync(target.path, { throwIfNoEntry: false })?.isDirectory())
    throw badRequest(`The directory ${target.path} does not exist. Create it, or mount its disk.`);
  const names = readdirSync(target.path);
  for (const file of names) {
    const [, name = ""] = /^(.*\.backup)\.\d+\.unfinished(?:-journal)?$/.exec(file) ?? [];
    if (isBackupName(name)) rmSync(join(target.path, file), { force: true });
  }
  return names;
}

/**
 * Throws conflict if all backups in the target are of other databases. Somebody may be about to restore one of them into a new installation, whose
 * own backup would be newer and empty.
 */
function refuseForeign(target: BackupTarget, storedNames: string[], knownNames: string[]): void {
  const newest = storedNames.at(-1);
  if (newest === undefined || storedNames.some((name) => knownNames.includes(name))) return;
  throw conflict(
    `${locationOf(target)} has backups of another database, such as ${newest}. Restore one of them, or choose another place. To add backups of this one nevertheless: evald backups run`,
  );
}

/**
 * Throws unavailable if there is no space for a backup. The data directory needs space for one copy, which is restored to check the backup. If the
 * target is a store, the data directory needs space for a second copy, which is sent and fetched again. If it is a directory, that directory needs
 * space for the backup.
 */
function checkSpace(dataDir: string, target: BackupTarget): void {
  const sizeOf = (file: string) => statSync(join(dataDir, file), { throwIfNoEntry: false })?.size ?? 0;
  const size = sizeOf("evald.db") + sizeOf("evald.db-wal");
  const isOnSameDisk = target.kind === "store" || statSync(target.path).dev === statSync(dataDir).dev;
  const copies = isOnSameDisk
    ? [{ path: dataDir, bytes: 2 * size }]
    : [dataDir, target.path].map((path) => ({ path, bytes: size }));
  for (const { path, bytes } of copies) {
    const { bavail, bsize } = statfsSync(path);
    if (bavail * bsize < bytes + spareBytes)
      throw unavailable(
        `The disk of ${path} has ${toSize(bavail * bsize)} free. A backup needs ${toSize(bytes + spareBytes)}.`,
      );
  }
}

async function remove(target: BackupTarget, name: string): Promise<void> {
  if (target.kind === "store") await removeStored(target, name);
  else rmSync(locationOf(target, name), { force: true });
}

/** Deletes files that are named like backups. Returns the names of the deleted files. The others are deleted after a later backup. */
async function removeAll(target: BackupTarget, names: string[]): Promise<string[]> {
  const removed: string[] = [];
  for (const name of names.filter(isBackupName))
    await remove(target, name).then(
      () => removed.push(name),
      () => {},
    );
  return removed;
}
