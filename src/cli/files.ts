import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { codeOf } from "../db/fault.ts";
import { badRequest, unavailable } from "../errors.ts";

/** The kind of file at a path; undefined: there is nothing. Throws bad_request if this user isn't allowed to look. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return undefined;
    throw toReadError(error, path);
  }
}

/** Checks that a path can be the path of a file. Throws bad_request that names the path and the remedy. */
export function checkFileName(file: string): void {
  if (statOf(file)?.isDirectory()) throw badRequest(`${file} is a directory. Choose a file name.`);
  const folder = dirname(resolve(file));
  const folderStats = statOf(folder);
  if (!folderStats) throw badRequest(`The directory ${folder} does not exist. Create it, or choose another one.`);
  if (!folderStats.isDirectory()) throw badRequest(`${folder} is not a directory. Choose another one.`);
}

/** Checks that a command may create a file. With `force`, it may also replace one. Throws bad_request that names the path and the remedy. */
export function checkNewFile(dataDir: string, file: string, { force }: { force: boolean }): void {
  checkFileName(file);
  const stats = statOf(file);
  if (stats && !stats.isFile()) throw badRequest(`${file} is not a regular file. Choose another file name.`);
  refuseOwnFile(dataDir, file);
  if (stats && !force)
    throw badRequest(`${file} already exists. Choose another file name, or overwrite it with --force.`);
}

/** Names of files that the service itself uses. SQLite stores some of them in several files. */
const ownFileName = /^evald\.(db|lock|secret|last-backup|db\.restoring)(-(journal|wal|shm))?$/;

/** Throws bad_request for a file that the service uses itself. */
export function refuseOwnFile(dataDir: string, file: string): void {
  const folder = dirname(resolve(file));
  const isDataFolder = existsSync(folder) && existsSync(dataDir) && realpathSync(folder) === realpathSync(dataDir);
  if (isDataFolder && ownFileName.test(basename(file)))
    throw badRequest(`${file} is a file of the data directory. Choose another file name.`);
}

/** Checks that there is a regular file that this user may read. Throws bad_request that names the path. */
export function checkFile(file: string): void {
  const stats = statOf(file);
  if (!stats) throw badRequest(`${file} does not exist.`);
  if (!stats.isFile()) throw badRequest(`${file} is not a file.`);
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw toReadError(error, file);
  }
}

/** The text of a file. Throws bad_request that names it if this user can't read it. */
export function readTextFile(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw toReadError(error, file);
  }
}

/** The parsed JSON of a file; null if the file isn't JSON. Throws bad_request for a file that this user can't read. */
export function readJsonFile(file: string): unknown {
  const text = readTextFile(file);
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Removes unfinished files that killed processes left when they tried to write this file. */
export function removeUnfinished(file: string): void {
  const folder = dirname(resolve(file));
  for (const name of namesIn(folder)) {
    if (!name.startsWith(`${basename(file)}.`)) continue;
    // Such as `acme.jsonl.4711.unfinished`.
    const [, pid] = /\.(\d+)\.unfinished(-journal)?$/.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(folder, name), { force: true });
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw toReadError(error, folder);
  }
}

/** Whether a process exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // The process belongs to another user.
    return codeOf(error) === "EPERM";
  }
}

/** Turns an error of reading a path into bad_request that names the path. Returns other errors unchanged. */
export function toReadError(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (code === "ENOENT" || code === "ENOTDIR") return badRequest(`${path} does not exist.`);
  if (code === "EISDIR") return badRequest(`${path} is not a file.`);
  if (code === "EACCES" || code === "EPERM") return badRequest(`This user has no read access to ${path}.`);
  return error;
}

/** Turns an error of writing a file into an AppError that names its directory and the remedy. Returns other errors unchanged. */
export function toWriteError(error: unknown, file: string): unknown {
  const code = codeOf(error);
  const folder = dirname(resolve(file));
  if (/^(SQLITE_FULL|ENOSPC|EDQUOT)/.test(code))
    return unavailable(`The disk of ${folder} is full. Free some space, or choose a file on another disk.`);
  if (/^(EACCES|EROFS|EPERM)/.test(code))
    return badRequest(`This user has no write access to ${folder}. Choose another directory.`);
  return error;
}
