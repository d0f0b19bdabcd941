import { Redis } from "ioredis";
import type { Logger } from "pino";

const retryMs = 500;
const blockMs = 5_000;

/**
 * Connections to one Redis server. `send` and `listen` may lose messages while it is away, so what they carry is repeated; `jobs` is for BullMQ,
 * which keeps its commands until the server is back. `onReady` is called each time that messages can be sent.
 */
export function connectRedis(url: string, log: Logger, onReady: () => void = () => {}) {
  const retryStrategy = (times: number) => Math.min(100 * times, 1_000);
  const passing = { enableOfflineQueue: false, maxRetriesPerRequest: 1, retryStrategy };
  const sender = new Redis(url, passing);
  const reader = new Redis(url, passing);
  const jobs = new Redis(url, { maxRetriesPerRequest: null, retryStrategy });
  const all = [sender, reader, jobs];
  let isClosed = false;
  let problem: string | null = null;
  sender.on("error", (error: Error) => {
    if (error.message !== problem) log.warn({ reason: error.message }, "Redis can't be reached");
    problem = error.message;
  });
  sender.on("ready", () => {
    if (problem !== null) log.info("Redis can be reached again");
    problem = null;
    onReady();
  });
  // The sender reports the same.
  for (const each of [reader, jobs]) each.on("error", () => {});
  const passively = async (work: Promise<unknown>) => {
    try {
      await work;
    } catch {
      // Sent again by the sender's next message.
    }
  };

  return {
    jobs,
    findProblem: () => problem,
    /** Adds a message to a stream that keeps about `atMost` messages. */
    send: (stream: string, message: object, atMost: number): Promise<void> =>
      passively(sender.xadd(stream, "MAXLEN", "~", atMost, "*", "m", JSON.stringify(message))),
    /** Replaces the only message of a stream, which the server forgets after `forMs`. */
    async sendOnly(stream: string, message: object, forMs: number): Promise<void> {
      const text = JSON.stringify(message);
      await passively(sender.multi().xadd(stream, "MAXLEN", "1", "*", "m", text).pexpire(stream, forMs).exec());
    },
    /** Stores a value, which the server forgets after `forMs`. */
    put: (key: string, value: unknown, forMs: number): Promise<void> =>
      passively(sender.set(key, JSON.stringify(value), "PX", forMs)),
    remove: (stream: string): Promise<void> => passively(sender.del(stream)),
    /** Removes the keys that begin so. Keeps trying until the server is there. */
    async removeAll(prefix: string): Promise<void> {
      for await (const keys of jobs.scanStream({ match: `${prefix}*`, count: 1_000 }) as AsyncIterable<string[]>)
        if (keys.length > 0) await jobs.unlink(keys);
    },
    /** Calls `onMessage` with each message of a stream and removes it. For its only reader. Resolves after `close`. */
    async listen(stream: string, onMessage: (message: unknown) => void): Promise<void> {
      let last = "0";
      while (!isClosed) {
        try {
          const read = await reader.xread("COUNT", 200, "BLOCK", blockMs, "STREAMS", stream, last);
          const entries = read?.[0]?.[1] ?? [];
          for (const [id, [, text]] of entries) {
            last = id;
            onMessage(JSON.parse(text ?? "null"));
          }
          if (entries.length > 0) await passively(sender.xtrim(stream, "MINID", last));
        } catch (error) {
          if (isClosed) return;
          log.debug({ err: error }, "could not read from Redis");
          await Bun.sleep(retryMs);
        }
      }
    },
    close(): void {
      isClosed = true;
      for (const each of all) each.disconnect();
    },
  };
}
