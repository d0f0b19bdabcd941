import { Redis } from "ioredis";
import type { Logger } from "pino";

/** Wait after a read that failed. */
const retryMs = 500;
/** How long one read waits for messages, and how many it returns at most. */
const blockMs = 2_000;
const messagesAtOnce = 200;
/** How long a key isn't read if it is no stream. Only a faulty or hostile worker makes such a key. */
const suspendedMs = 60_000;

/**
 * Connections to one Redis server. Messages may be lost while the server is away, so their content is sent again later. `jobs` is for BullMQ, which
 * keeps its commands until the server is back.
 */
export type RedisConnections = ReturnType<typeof connectRedis>;

/** What to do if a connection failed because of the server's certificate; undefined: another message says why it failed. */
export const certificateRemedy = (problem: string): string | undefined =>
  /certificate|self.signed/i.test(problem)
    ? "If your own authority signed its certificate, set NODE_EXTRA_CA_CERTS to the file of that authority."
    : undefined;

/** Opens the connections to a Redis server. */
export function connectRedis(url: string, log: Logger) {
  const retryStrategy = (times: number) => Math.min(100 * times, 1_000);
  const lossyOptions = { enableOfflineQueue: false, maxRetriesPerRequest: 1, retryStrategy };
  const redis = {
    sender: new Redis(url, lossyOptions),
    reader: new Redis(url, lossyOptions),
    jobs: new Redis(url, { maxRetriesPerRequest: null, retryStrategy }),
    log,
    /** Why the server can't be used; null if it can. */
    problem: null as string | null,
    isClosed: false,
  };
  redis.sender.on("error", (error: Error) => {
    if (error.message !== redis.problem)
      log.warn({ reason: error.message, remedy: certificateRemedy(error.message) }, "Redis can't be reached");
    redis.problem = error.message;
  });
  redis.sender.on("ready", () => {
    if (redis.problem !== null) log.info("Redis can be reached again");
    redis.problem = null;
  });
  // The sender reports the same errors.
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

/** Removes all keys with a prefix, except for one. Keeps trying until the server is there. */
export async function removeKeys({ jobs }: RedisConnections, prefix: string, exceptKey: string): Promise<void> {
  for await (const keys of jobs.scanStream({ match: `${prefix}*`, count: 1_000 }) as AsyncIterable<string[]>) {
    const unwanted = keys.filter((key) => key !== exceptKey);
    if (unwanted.length > 0) await jobs.unlink(unwanted);
  }
}

/**
 * Reads the messages of some streams until the connections are closed. Removes what it has read, because there is no other reader. `streams` is
 * called before each read. `onMessage` gets each message; undefined: the message isn't JSON.
 */
export async function readMessages(
  redis: RedisConnections,
  streams: () => string[],
  onMessage: (message: unknown, stream: string, bytes: number) => void,
): Promise<void> {
  const { reader, log } = redis;
  const suspendedUntil = new Map<string, number>();
  while (!redis.isClosed) {
    const names = streams().filter((name) => (suspendedUntil.get(name) ?? 0) <= performance.now());
    try {
      // Each read begins at the start. Messages that were read are gone, and their IDs don't tell which ones are new, because a server that took over
      // may have another clock.
      const streamEntries = await reader.xread(
        ...(["COUNT", messagesAtOnce, "BLOCK", blockMs, "STREAMS"] as const),
        ...names,
        ...names.map(() => "0"),
      );
      for (const [stream, entries] of streamEntries ?? []) {
        // The entry has one field: its name and its value.
        for (const [, fields] of entries) deliver(redis, fields?.[1], stream, onMessage);
        await reader.xdel(stream, ...entries.map(([id]) => id));
      }
    } catch (error) {
      if (redis.isClosed) return;
      log.debug({ err: error }, "could not read from Redis");
      if (!String(error).includes("WRONGTYPE")) await Bun.sleep(retryMs);
      else
        for (const name of await findOtherTypes(redis, names)) {
          log.warn({ key: name }, "ignoring a key that is no stream of messages");
          suspendedUntil.set(name, performance.now() + suspendedMs);
          await removeKey(redis, name);
        }
    }
  }
}

function deliver(
  { log }: RedisConnections,
  text: string | undefined,
  stream: string,
  onMessage: (message: unknown, stream: string, bytes: number) => void,
): void {
  let message: unknown;
  try {
    message = JSON.parse(text ?? "");
  } catch {}
  try {
    onMessage(message, stream, text?.length ?? 0);
  } catch (error) {
    log.error({ err: error, stream }, "could not process a message");
  }
}

/** Returns the keys that exist and are no streams. */
async function findOtherTypes({ reader }: RedisConnections, names: string[]): Promise<string[]> {
  const types = await Promise.all(names.map((name) => reader.type(name).catch(() => "none")));
  return names.filter((_, i) => types[i] !== "stream" && types[i] !== "none");
}

/** Closes all connections. */
export function closeRedis(redis: RedisConnections): void {
  redis.isClosed = true;
  for (const connection of [redis.sender, redis.reader, redis.jobs]) connection.disconnect();
}
