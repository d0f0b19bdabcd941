import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isVisibleInSandboxes } from "../agents/sandbox/bubblewrap.ts";
import { readDiskHistory } from "./disk-history.ts";
import { type CheckInput, type Finding, ok, problemFound } from "./finding.ts";

const dayMs = 24 * 3600_000;
const minFreeBytes = 512 * 1024 * 1024;
const minDaysUntilFull = 14;
/** Growth over a shorter time says little about the next weeks. */
const minHistoryMs = 2 * dayMs;

/** The directory itself, or its nearest existing parent. */
const nearestExisting = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));

/** Permissions that only the owner may have. Others may list the data directory, but they must not read its files. */
const ownerOnly = { directory: 0o022, file: 0o077 };

/** The permissions of a file; 0 if it is gone. SQLite may remove some of its files at any time. */
const modeOf = (path: string): number => (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777;

/** Whether this user can write the data directory and its files, other users can't write the directory, and they can't read the files. */
export function checkDataDirectory({ config }: CheckInput): Finding {
  const path = resolve(config.dataDir);
  const existing = nearestExisting(path);
  if (!statSync(existing).isDirectory())
    return problemFound("data_directory_invalid", `${existing} is not a directory`, existing);
  if (!mayWrite(existing)) return problemFound("data_directory_read_only", `no write access to ${path}`, existing);
  if (isVisibleInSandboxes(path)) return problemFound("data_directory_visible", `sandboxes show ${path}`, path);
  if (!existsSync(path)) return ok(`${path} does not exist yet; evald serve creates it`, path);
  const files = readdirSync(path).filter((name) => name.startsWith("evald."));
  const exposed = [
    { name: path, mode: modeOf(path), forbidden: ownerOnly.directory },
    ...files.map((name) => ({ name, mode: modeOf(join(path, name)), forbidden: ownerOnly.file })),
  ].filter(({ mode, forbidden }) => (mode & forbidden) !== 0);
  if (exposed.length > 0) {
    const modes = exposed.map(({ name, mode }) => `${name} has mode ${mode.toString(8)}`);
    return problemFound("data_exposed", modes.join(", "), path);
  }
  const readOnly = files.find((name) => name.startsWith("evald.db") && !mayWrite(join(path, name)));
  if (readOnly) return problemFound("database_read_only", `no write access to ${join(path, readOnly)}`, path);
  return ok(path, path);
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    // A file of SQLite may be gone by now.
    return !existsSync(path);
  }
}

/** Whether the disk of the data directory has space, and will have some in two weeks. */
export function checkDisk({ config, now }: CheckInput): Finding {
  const path = resolve(config.dataDir);
  const { bavail, bsize } = statfsSync(nearestExisting(path));
  const free = bavail * bsize;
  const detail = `${toGib(free)} free`;
  if (free < minFreeBytes) return problemFound("disk_full", `${detail}; at least 0.5 GiB is needed`, path);
  const [first] = readDiskHistory(path);
  if (!first) return ok(detail, path);
  const elapsedMs = now() - first.at;
  const usedBytes = first.freeBytes - free;
  if (elapsedMs < minHistoryMs || usedBytes <= 0) return ok(detail, path);
  const days = (free / usedBytes) * (elapsedMs / dayMs);
  if (days >= minDaysUntilFull) return ok(detail, path);
  const growth = `${toGib((usedBytes * dayMs) / elapsedMs)} less each day for ${Math.round(elapsedMs / dayMs)} days`;
  return problemFound("disk_filling", `${detail}, ${growth}: full in ${Math.floor(days)} days`, path);
}

const toGib = (bytes: number): string => `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
