import { posix } from "node:path";
import { createGunzip } from "node:zlib";
import { AppError, invalidField, reasonOf } from "../errors.ts";
import { loadTar } from "../lazy-packages.ts";

/** Maximum size of a compressed file. Its base64 must fit into one line of an export. */
export const maxArchiveBytes = 5 * 1024 * 1024;
/**
 * Maximum size of a compressed docs site, which no export contains. With its headers, the request is below the largest body that the service
 * receives.
 */
export const maxSiteBytes = 15 * 1024 * 1024;
const maxEntries = 20_000;
const maxUnpackedBytes = 256 * 1024 * 1024;
/** Maximum size of a tar file. Each file also needs room for a header, a long name and padding. */
const maxTarBytes = maxUnpackedBytes + maxEntries * 4096;
const tooLargeUnpacked = `the archive is larger than ${maxUnpackedBytes / 1024 ** 2} MiB when unpacked`;
const noTarGz = "must be a tar file compressed with gzip";
const allowedTypes = new Set(["File", "OldFile", "ContiguousFile", "Directory", "SymbolicLink", "Link"]);

/** The first bytes of a gzip file. */
const gzipStart = [0x1f, 0x8b];
const isGzip = (data: Uint8Array): boolean => gzipStart.every((byte, i) => data[i] === byte);

/** Resolves a path in an archive; null if it leads out of it. */
function resolveInside(path: string): string | null {
  const clean = posix.normalize(path);
  return posix.isAbsolute(path) || clean === ".." || clean.startsWith("../") ? null : clean;
}

/** An entry of a tar file. `linkpath`: where a link leads to. */
type Entry = { path: string; type: string; linkpath?: string | undefined; size: number };

/** Why an entry can't be stored, in words; null: it can. */
function problemOf({ path, type, linkpath = "" }: Entry): string | null {
  const location = resolveInside(path);
  if (location === null) return `${JSON.stringify(path)} leads out of the archive`;
  if (!allowedTypes.has(type)) return `${JSON.stringify(path)} is neither a file, a directory nor a link`;
  const leadsOut = `the link ${JSON.stringify(path)} leads out of the archive`;
  // A symbolic link is relative to its own directory, a hard link to the top of the archive.
  if (type === "Link" && resolveInside(linkpath) === null) return leadsOut;
  if (type !== "SymbolicLink") return null;
  const isInside = !posix.isAbsolute(linkpath) && resolveInside(posix.join(posix.dirname(location), linkpath)) !== null;
  return isInside ? null : leadsOut;
}

/** A tar.gz file and the number of files in it. */
export type CheckedArchive = { data: Uint8Array; files: number };

/** What is wrong with the content of an archive. */
class ArchiveProblem extends Error {}

/** Checks a tar file part by part, without keeping the parts. `end` returns the number of files. `write` and `end` throw if the file is not valid. */
function createTarCheck() {
  let entries = 0;
  let files = 0;
  let bytes = 0;
  let isAtEnd = false;
  let problem: Error | undefined;
  const limitProblem = (): string | null => {
    if (entries > maxEntries) return `the archive has more than ${maxEntries} entries`;
    return bytes > maxUnpackedBytes ? tooLargeUnpacked : null;
  };
  const { Parser } = loadTar();
  const parser = new Parser({
    strict: true,
    // The parser would decompress the content of a tar.gz once more.
    zstd: false,
    maxMetaEntrySize: 64 * 1024,
    onReadEntry(entry) {
      entries++;
      bytes += entry.size;
      if (entry.type !== "Directory") files++;
      const reason = limitProblem() ?? problemOf(entry as Entry);
      if (reason === null) return void entry.resume();
      problem = new ArchiveProblem(reason);
      parser.abort(problem);
    },
  });
  parser.on("error", (error: Error) => {
    problem ??= error;
  });
  parser.on("eof", () => {
    isAtEnd = true;
  });
  const throwProblem = () => {
    if (problem) throw problem;
  };
  return {
    write(part: Buffer): void {
      // The parser would keep everything after the end of the archive.
      if (isAtEnd) return;
      parser.write(part);
      throwProblem();
    },
    end(): number {
      parser.end();
      throwProblem();
      return files;
    },
  };
}

/** Decompresses in parts and in other threads, so that a large archive neither fills the memory nor blocks the event loop. */
async function countFiles(data: Uint8Array): Promise<number> {
  const tar = createTarCheck();
  const gunzip = createGunzip({ chunkSize: 64 * 1024 });
  gunzip.end(data);
  let size = 0;
  for await (const part of gunzip as AsyncIterable<Buffer>) {
    // The parser would decompress a gzip file within once more, without a limit. Its second byte may come with the next part.
    if (size === 0 && (part.length === 1 ? part[0] === gzipStart[0] : isGzip(part))) throw new ArchiveProblem(noTarGz);
    size += part.length;
    // Leaving the loop ends the decompression.
    if (size > maxTarBytes) throw new ArchiveProblem(tooLargeUnpacked);
    tar.write(part);
  }
  return tar.end();
}

/**
 * Throws bad_request or too_large for a file that is not a tar.gz, is too large, or contains an entry that would be stored elsewhere. `field`:
 * the input that errors name.
 */
export async function checkArchive(
  data: Uint8Array,
  field = "body",
  maxBytes = maxArchiveBytes,
): Promise<CheckedArchive> {
  const limit = `${maxBytes / 1024 ** 2} MiB`;
  if (data.length > maxBytes)
    throw new AppError("too_large", `The archive is larger than ${limit}.`, {
      field,
      problem: `the archive must not be larger than ${limit}`,
    });
  if (!isGzip(data)) throw invalidField(field, noTarGz);
  let files: number;
  try {
    files = await countFiles(data);
  } catch (error) {
    const reason = reasonOf(error);
    throw invalidField(field, error instanceof ArchiveProblem ? reason : `the archive can't be read: ${reason}`);
  }
  if (files === 0) throw invalidField(field, "the archive contains no files");
  return { data, files };
}
