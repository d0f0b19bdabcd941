import { Redis } from "ioredis";
import { AppError, ConfigError, unavailable } from "../errors.ts";
import { operatorRequests, type WorkerStatus, workerList } from "./messages.ts";
import { certificateRemedy } from "./redis.ts";
import { canCreateUsers } from "./redis-users.ts";

const connectMs = 5_000;

/** The Redis server between a service and its workers. `ms`: how long it took to answer. A setting is "unknown" if the server doesn't show it. */
export type RedisState = {
  version: string;
  appendOnly: string;
  appendFsync: string;
  maxMemoryPolicy: string;
  /** 0: no limit, or unknown. */
  maxMemoryBytes: number;
  usedMemoryBytes: number;
  /** Whether it creates a user for each worker. */
  createsUsers: boolean;
  ms: number;
};

const connection = {
  lazyConnect: true,
  connectTimeout: connectMs,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
};

/** Connects to the Redis server of a service, and closes the connection after `work`. Throws unavailable if it can't be reached. */
export async function withRedis<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, connection);
  let problem = "the connection was closed";
  redis.on("error", (error: Error) => {
    problem = error.message || String(error);
  });
  try {
    await redis.connect();
    return await work(redis);
  } catch (error) {
    if (error instanceof AppError || error instanceof ConfigError) throw error;
    const { host } = new URL(url);
    const remedy = certificateRemedy(problem) ?? "Check the URL and its password.";
    throw unavailable(`Cannot use the Redis server ${host}: ${problem.replace(/\.$/, "")}. ${remedy}`);
  } finally {
    redis.disconnect();
  }
}

/** Whether a Redis server shows messages to clients without a password. */
export async function isReadableByAnyone(url: string): Promise<boolean> {
  const anonymous = new URL(url);
  anonymous.username = anonymous.password = "";
  // A server that requires a password refuses the check, too.
  const redis = new Redis(anonymous.href, { ...connection, enableReadyCheck: false });
  redis.on("error", () => {});
  try {
    await redis.connect();
    await redis.get(workerList);
    return true;
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

/** Reads the list of workers that a service has published. Throws unavailable if no service is connected. */
export async function readWorkerList(redis: Redis): Promise<WorkerStatus[]> {
  const text = await redis.get(workerList);
  if (text === null) throw unavailable("No service is connected to this Redis server. Check EVALD_REDIS_URL.");
  return JSON.parse(text).workers;
}

/** Measures how fast the server answers, and reads its settings. */
export async function readRedisState(redis: Redis): Promise<RedisState> {
  const from = performance.now();
  await redis.ping();
  const ms = Math.round(performance.now() - from);
  const memory = await redis.info("memory");
  return {
    version: /redis_version:(\S+)/.exec(await redis.info("server"))?.[1] ?? "unknown",
    ms,
    appendOnly: await readSetting(redis, "appendonly"),
    appendFsync: await readSetting(redis, "appendfsync"),
    maxMemoryPolicy: await readSetting(redis, "maxmemory-policy"),
    maxMemoryBytes: numberOf(memory, "maxmemory"),
    usedMemoryBytes: numberOf(memory, "used_memory"),
    createsUsers: await canCreateUsers(redis),
  };
}

/** A number of the answer to INFO; 0 if it is missing. */
const numberOf = (info: string, name: string): number =>
  Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);

async function readSetting(redis: Redis, name: string): Promise<string> {
  try {
    return ((await redis.config("GET", name)) as string[])[1] ?? "unknown";
  } catch {
    // Hosted servers often forbid CONFIG.
    return "unknown";
  }
}

/** Asks the service to drain or to remove a worker. */
export async function requestDismissal(redis: Redis, how: "drain" | "remove", worker: string): Promise<void> {
  await redis.xadd(operatorRequests, "*", "m", JSON.stringify({ kind: how, worker }));
}
