import { appendFileSync, closeSync, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { version } from "../../package.json" with { type: "json" };
import { badRequest } from "../errors.ts";
import { toIso } from "../schema.ts";

/**
 * The manifest of a backup. A backup is a database, followed by this object as a line of JSON and by the SHA-256 of everything before, as a
 * line of hex. So it is one file that can't lose its checksum, and SQLite can still read it: the size in its header ends it before that.
 */
export type Manifest = {
  type: "evald backup";
  version: 1;
  /** The version of evald that made it. */
  evald: string;
  createdAt: string;
  /** Size of the database. */
  bytes: number;
  runs: number;
};

const pieceBytes = 1024 * 1024;
/** A manifest and the checksum are shorter. */
const maxEndBytes = 1024;

/** Appends the manifest and the checksum to a database that nothing else uses. Times are in epoch milliseconds. */
export function sealBackup(path: string, runs: number, atMs: number): void {
  const hash = new Bun.CryptoHasher("sha256");
  let bytes = 0;
  for (const piece of readPieces(path)) {
    hash.update(piece);
    bytes += piece.length;
  }
  const createdAt = toIso(atMs);
  const manifest: Manifest = { type: "evald backup", version: 1, evald: version, createdAt, bytes, runs };
  const line = `\n${JSON.stringify(manifest)}\n`;
  appendFileSync(path, `${line}${hash.update(line).digest("hex")}\n`);
}

/**
 * Copies the database of a backup to a new file, and syncs it. Throws bad_request, which names the backup, if it is incomplete or any of its
 * bytes changed; the copy is then useless.
 */
export function copyFromBackup(path: string, to: string): Manifest {
  const hash = new Bun.CryptoHasher("sha256");
  const copy = openSync(to, "wx", 0o600);
  try {
    let end = Buffer.alloc(0);
    let size = 0;
    for (const piece of readPieces(path)) {
      // The last bytes may be the manifest and the checksum, so they are held back until more follows.
      const pending = Buffer.concat([end, piece]);
      const ready = pending.subarray(0, Math.max(0, pending.length - maxEndBytes));
      end = Buffer.from(pending.subarray(ready.length));
      hash.update(ready);
      writeFully(copy, ready);
      size += piece.length;
    }
    const { manifest, manifestBytes, sha256 } = readEnd(path, end);
    // The checksum covers all but its own line.
    hash.update(end.subarray(0, -`${sha256}\n`.length));
    if (hash.digest("hex") !== sha256 || manifest.bytes !== size - manifestBytes) throw toDamageError(path);
    writeFully(copy, end);
    ftruncateSync(copy, manifest.bytes);
    fsyncSync(copy);
    return manifest;
  } finally {
    closeSync(copy);
  }
}

/** Reads the lines after the database. `manifestBytes` is the length of both lines. */
function readEnd(path: string, end: Buffer): { manifest: Manifest; manifestBytes: number; sha256: string } {
  const [all, json, sha256] = /\n(\{"type":"evald backup",.*\})\n([0-9a-f]{64})\n$/.exec(end.toString("latin1")) ?? [];
  if (all === undefined || json === undefined || sha256 === undefined)
    throw badRequest(
      `${path} doesn't end with the manifest of a backup: it is cut short, or evald backup didn't make it. Use another backup.`,
    );
  try {
    return { manifest: JSON.parse(json), manifestBytes: all.length, sha256 };
  } catch {
    throw toDamageError(path);
  }
}

const toDamageError = (path: string) =>
  badRequest(`${path} is damaged: its content doesn't match its checksum. Use an earlier backup.`);

function* readPieces(path: string): Generator<Buffer> {
  const file = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(pieceBytes);
    for (let length = readSync(file, buffer); length > 0; length = readSync(file, buffer))
      yield buffer.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

/** Writes all bytes to an open file: one write may take only a part. */
export function writeFully(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}
