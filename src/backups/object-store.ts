import { closeSync, fsyncSync, openSync, readSync } from "node:fs";
import { S3Client } from "bun";
import { locationOf, type StoreTarget } from "../config/backup-settings.ts";
import { writeFully } from "../db/backup-file.ts";
import { codeOf } from "../db/fault.ts";
import { settlesWithin } from "../deadline.ts";
import { AppError, notFound, reasonOf, unavailable } from "../errors.ts";

/** Time limit for one answer of the store. */
const answerMs = 20_000;
/** Time in which a part must be sent, or the next bytes arrive. */
const transferMs = 120_000;
const minPartBytes = 8 * 1024 * 1024;
/** S3 allows 10,000. */
const maxParts = 9_000;
/** Parts that are sent at the same time, and kept in memory. */
const partsAtOnce = 2;

/** A file in the store. */
type StoredFile = { name: string; bytes: number; storedAt: string | null };

const clientOf = ({ endpoint, sessionToken, ...target }: StoreTarget): S3Client =>
  new S3Client({
    bucket: target.bucket,
    region: target.region,
    accessKeyId: target.accessKeyId,
    secretAccessKey: target.secretAccessKey,
    ...(endpoint !== null && { endpoint }),
    ...(sessionToken !== null && { sessionToken }),
  });

/** The files directly below the prefix, by name. Throws unavailable, also if the store doesn't answer within 20 seconds. */
export const listStored = (target: StoreTarget): Promise<StoredFile[]> =>
  withStoreName(target, async () => {
    const client = clientOf(target);
    const files: StoredFile[] = [];
    let token: string | undefined;
    do {
      const { prefix } = target;
      const answer = await withinTime(
        client.list({ prefix, ...(token !== undefined && { continuationToken: token }) }),
      );
      for (const { key, size, lastModified } of answer.contents ?? [])
        files.push({ name: key.slice(prefix.length), bytes: size ?? 0, storedAt: lastModified ?? null });
      token = answer.isTruncated ? answer.nextContinuationToken : undefined;
    } while (token !== undefined);
    return files.filter(({ name }) => name !== "" && !name.includes("/"));
  });

/** Sends a file to the store, in parts. Throws unavailable. */
export const upload = (target: StoreTarget, file: string, name: string): Promise<void> =>
  withStoreName(target, async () => {
    const size = Bun.file(file).size;
    const partSize = Math.max(minPartBytes, Math.ceil(size / maxParts));
    const writer = clientOf(target)
      .file(target.prefix + name)
      .writer({ partSize, queueSize: partsAtOnce, retry: 3, type: "application/octet-stream" });
    const source = openSync(file, "r");
    try {
      for (;;) {
        const part = Buffer.alloc(partSize);
        const length = readSync(source, part);
        if (length === 0) break;
        writer.write(part.subarray(0, length));
        await withinTime(Promise.resolve(writer.flush()), transferMs);
      }
      await withinTime(Promise.resolve(writer.end()), transferMs);
    } finally {
      closeSync(source);
    }
  });

/** Copies a file of the store to a new local file, and syncs it. Throws not_found and unavailable. */
export const download = (target: StoreTarget, name: string, file: string): Promise<void> =>
  withStoreName(target, async () => {
    const reader = clientOf(target)
      .file(target.prefix + name)
      .stream()
      .getReader();
    const copy = openSync(file, "wx", 0o600);
    try {
      for (let next = await withinTime(reader.read()); !next.done; next = await withinTime(reader.read(), transferMs)) {
        writeFully(copy, next.value);
      }
      fsyncSync(copy);
    } finally {
      closeSync(copy);
    }
  });

/** Deletes a file of the store. Throws unavailable. */
export const removeStored = (target: StoreTarget, name: string): Promise<void> =>
  withStoreName(target, async () => {
    await withinTime(clientOf(target).delete(target.prefix + name));
  });

/** The answer of the store. Throws unavailable if it takes longer: Bun's client has no time limit of its own. */
async function withinTime<T>(answer: Promise<T>, ms = answerMs): Promise<T> {
  if (!(await settlesWithin(answer, ms))) throw unavailable(`it did not answer within ${ms / 1000} seconds`);
  return await answer;
}

/** Runs `work`, and names the store in each error that it throws. */
async function withStoreName<T>(target: StoreTarget, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const location = locationOf(target);
    if (error instanceof AppError) throw unavailable(`${location}: ${error.detail}.`);
    const code = codeOf(error);
    if (code === "NoSuchKey")
      throw notFound(`${location} has no such backup. List them with: evald backups list ${location}`);
    // The error is of a local file, not of the store.
    if (/^E[A-Z]+$/.test(code)) throw error;
    // Bun has only this text for all errors of the connection.
    const reason = reasonOf(error).replace(/^an unexpected error has occurred$/, "the store can't be reached");
    throw unavailable(`${location}: ${code}, ${reason.replace(/\.$/, "")}.`);
  }
}
