import { posix } from "node:path";
import { Parser } from "tar";
import { AppError, invalidField } from "../errors.ts";

/** Of the compressed file: base64 of it fits into one line of an export. */
export const maxArchiveBytes = 5 * 1024 * 1024;
const maxEntries = 20_000;
const maxUnpackedBytes = 256 * 1024 * 1024;
const kinds = new Set(["File", "OldFile", "ContiguousFile", "Directory", "SymbolicLink", "Link"]);

/** Resolves a path in an archive; null if it leads out of it. */
function inside(path: string): string | null {
  const clean = posix.normalize(path);
  return posix.isAbsolute(path) || clean === ".." || clean.startsWith("../") ? null : clean;
}

type Entry = { path: string; type: string; linkpath?: string | undefined; size: number };

function problemOf({ path, type, linkpath = "" }: Entry): string | null {
  const place = inside(path);
  if (place === null) return `${JSON.stringify(path)} leads out of the archive`;
  if (!kinds.has(type)) return `${JSON.stringify(path)} is neither a file, a directory nor a link`;
  // A symbolic link is relative to its own directory, a hard link to the top of the archive.
  const target =
    type === "SymbolicLink"
      ? posix.isAbsolute(linkpath)
        ? null
        : inside(posix.join(posix.dirname(place), linkpath))
      : type === "Link"
        ? inside(linkpath)
        : place;
  return target === null ? `the link ${JSON.stringify(path)} leads out of the archive` : null;
}

/** A tar.gz file and the number of files in it. */
export type CheckedArchive = { data: Uint8Array; files: number };

/**
 * Throws bad_request or too_large for a file that is not a tar.gz, is too large, or contains an entry that would be stored elsewhere. `field`:
 * the input that errors name.
 */
export async function checkArchive(data: Uint8Array, field = "body"): Promise<CheckedArchive> {
  const limit = `${maxArchiveBytes / 1024 ** 2} MiB`;
  if (data.length > maxArchiveBytes)
    throw new AppError("too_large", `The archive is larger than ${limit}.`, {
      field,
      problem: `the archive must not be larger than ${limit}`,
    });
  if (data[0] !== 0x1f || data[1] !== 0x8b) throw invalidField(field, "must be a tar file compressed with gzip");
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let entries = 0;
  let files = 0;
  let bytes = 0;
  const refuse = (problem: string) => {
    reject(invalidField(field, problem));
    parser.abort(new Error(problem));
  };
  const parser = new Parser({
    strict: true,
    maxMetaEntrySize: 64 * 1024,
    onReadEntry(entry) {
      entries++;
      bytes += entry.size;
      if (entry.type !== "Directory") files++;
      const problem =
        entries > maxEntries
          ? `the archive has more than ${maxEntries} entries`
          : bytes > maxUnpackedBytes
            ? `the archive is larger than ${maxUnpackedBytes / 1024 ** 2} MiB when unpacked`
            : problemOf(entry as Entry);
      if (problem !== null) refuse(problem);
      else entry.resume();
    },
  });
  parser.on("end", () => resolve(files));
  parser.on("error", (error: Error) => reject(invalidField(field, `the archive can't be read: ${error.message}`)));
  parser.end(Buffer.from(data));
  if ((await promise) === 0) throw invalidField(field, "the archive contains no files");
  return { data, files };
}
