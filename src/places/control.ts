import { Redis } from "ioredis";
import { AppError, unavailable } from "../errors.ts";
import { fromWorkers, workerList } from "./messages.ts";
import type { WorkerStatus } from "./roster.ts";

const connectMs = 5_000;

/** What a service has published about its workers, and the Redis server in between. `list` null: no service is connected. */
type WorkerNews = {
  list: { version: string; workers: WorkerStatus[] } | null;
  redis: RedisState;
};

/** `ms`: how long it took to answer. Settings are "unknown" if the server doesn't show them. */
export type RedisState = {
  version: string;
  appendOnly: string;
  appendFsync: string;
  maxMemoryPolicy: string;
  ms: number;
};

const connection = {
  lazyConnect: true,
  connectTimeout: connectMs,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
};

/** Connects to the Redis server of a service, and closes the connection after `work`. Throws unavailable if it can't be reached. */
export async function withControl<T>(
  url: string,
  work: (control: ReturnType<typeof createControl>) => Promise<T>,
): Promise<T> {
  const redis = new Redis(url, connection);
  let problem = "the connection was closed";
  redis.on("error", (error: Error) => {
    problem = error.message || String(error);
  });
  try {
    await redis.connect();
    return await work(createControl(redis));
  } catch (error) {
    if (error instanceof AppError) throw error;
    const { host } = new URL(url);
    throw unavailable(
      `Cannot use the Redis server ${host}: ${problem.replace(/\.$/, "")}. Check the URL and its password.`,
    );
  } finally {
    redis.disconnect();
  }
}

/** Whether a Redis server shows messages to clients without a password. */
export async function isOpen(url: string): Promise<boolean> {
  const anonymous = new URL(url);
  anonymous.username = anonymous.password = "";
  // A server that asks for a password refuses the check as well.
  const redis = new Redis(anonymous.href, { ...connection, enableReadyCheck: false });
  redis.on("error", () => {});
  try {
    await redis.connect();
    await redis.xlen(fromWorkers);
    return true;
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

function createControl(redis: Redis) {
  const setting = async (name: string): Promise<string> => {
    try {
      return ((await redis.config("GET", name)) as string[])[1] ?? "unknown";
    } catch {
      // Hosted servers often forbid CONFIG.
      return "unknown";
    }
  };
  return {
    async read(): Promise<WorkerNews> {
      const from = performance.now();
      await redis.ping();
      const ms = Math.round(performance.now() - from);
      const text = await redis.get(workerList);
      const version = /redis_version:(\S+)/.exec(await redis.info("server"))?.[1] ?? "unknown";
      const [appendOnly, appendFsync, maxMemoryPolicy] = await Promise.all(
        ["appendonly", "appendfsync", "maxmemory-policy"].map(setting),
      );
      return {
        list: text === null ? null : JSON.parse(text),
        redis: {
          ...{ version, ms },
          appendOnly: appendOnly ?? "unknown",
          appendFsync: appendFsync ?? "unknown",
          maxMemoryPolicy: maxMemoryPolicy ?? "unknown",
        },
      };
    },
    /** Asks the service to drain or remove a worker. */
    async ask(kind: "drain" | "remove", worker: string): Promise<void> {
      await redis.xadd(fromWorkers, "*", "m", JSON.stringify({ kind, worker }));
    },
  };
}
