import { Redis } from "ioredis";
import type { Logger } from "pino";

const retryMs = 500;
const blockMs = 5_000;

/**
 * Connections to one Redis server. Messages may be lost while it is away, so what they carry is repeated; `jobs` is for BullMQ, which keeps its
 * commands until the server is back.
 */
export type RedisConnections = ReturnType<typeof connectRedis>;

/** Opens the connections to a Redis server. */
export function connectRedis(url: string, log: Logger) {
  const retryStrategy = (times: number) => Math.min(100 * times, 1_000);
  const lossyOptions = { enableOfflineQueue: false, maxRetriesPerRequest: 1, retryStrategy };
  const redis = {
    sender: new Redis(url, lossyOptions),
    reader: new Redis(url, lossyOptions),
    jobs: new Redis(url, { maxRetriesPerRequest: null, retryStrategy }),
    log,
    /** Why the server can't be reached; null if it can. */
    problem: null as string | null,
    isClosed: false,
  };
  redis.sender.on("error", (error: Error) => {
    if (error.message !== redis.problem) log.warn({ reason: error.message }, "Redis can't be reached");
    redis.problem = error.message;
  });
  redis.sender.on("ready", () => {
    if (redis.problem !== null) log.info("Redis can be reached again");
    redis.problem = null;
  });
  // The sender reports the same.
  for (const connection of [redis.reader, redis.jobs]) connection.on("error", () => {});
  return redis;
}

/** Ignores a failure, because the sender's next message repeats this one. */
async function ignoreFailure(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch {}
}

/** Adds a message to a stream that keeps about `maxMessages` messages. */
export const sendMessage = (
  { sender }: RedisConnections,
  stream: string,
  message: object,
  maxMessages: number,
): Promise<void> => ignoreFailure(sender.xadd(stream, "MAXLEN", "~", maxMessages, "*", "m", JSON.stringify(message)));

/** Replaces the only message of a stream, which the server forgets after `lifeMs`. */
export function replaceMessage(
  { sender }: RedisConnections,
  stream: string,
  message: object,
  lifeMs: number,
): Promise<void> {
  const text = JSON.stringify(message);
  return ignoreFailure(sender.multi().xadd(stream, "MAXLEN", "1", "*", "m", text).pexpire(stream, lifeMs).exec());
}

/** Stores a value, which the server forgets after `lifeMs`. */
export const putValue = ({ sender }: RedisConnections, key: string, value: unknown, lifeMs: number): Promise<void> =>
  ignoreFailure(sender.set(key, JSON.stringify(value), "PX", lifeMs));

/** Removes a stream or a value. */
export const removeKey = ({ sender }: RedisConnections, key: string): Promise<void> => ignoreFailure(sender.del(key));

/** Removes the keys that begin so. Keeps trying until the server is there. */
export async function removeKeys({ jobs }: RedisConnections, prefix: string): Promise<void> {
  for await (const keys of jobs.scanStream({ match: `${prefix}*`, count: 1_000 }) as AsyncIterable<string[]>)
    if (keys.length > 0) await jobs.unlink(keys);
}

/** Calls `onMessage` with each message of a stream and removes it: the stream has no other reader. Resolves when the connections are closed. */
export async function readMessages<Message>(
  redis: RedisConnections,
  stream: string,
  onMessage: (message: Message) => void,
): Promise<void> {
  let last = "0";
  while (!redis.isClosed) {
    try {
      const read = await redis.reader.xread("COUNT", 200, "BLOCK", blockMs, "STREAMS", stream, last);
      const entries = read?.[0]?.[1] ?? [];
      for (const [id, [, text]] of entries) {
        last = id;
        onMessage(JSON.parse(text ?? "null"));
      }
      if (entries.length > 0) await ignoreFailure(redis.sender.xtrim(stream, "MINID", last));
    } catch (error) {
      if (redis.isClosed) return;
      redis.log.debug({ err: error }, "could not read from Redis");
      await Bun.sleep(retryMs);
    }
  }
}

/** Closes all connections. */
export function closeRedis(redis: RedisConnections): void {
  redis.isClosed = true;
  for (const connection of [redis.sender, redis.reader, redis.jobs]) connection.disconnect();
}
