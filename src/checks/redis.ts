import { describeRedisAccess } from "../config/worker-settings.ts";
import { reasonOf } from "../errors.ts";
import type { RedisState } from "../places/control.ts";
import { type CheckInput, type Finding, notApplicable, ok, problemFound } from "./finding.ts";

/** The oldest version with everything that evald and BullMQ use. */
const minVersion = [6, 2] as const;

/** The Redis server between the service and its workers. The code for Redis is loaded only here. */
export async function checkRedis({ config }: CheckInput): Promise<Finding[]> {
  const { redisUrl: url } = config.workers;
  if (url === null) return [notApplicable("EVALD_REDIS_URL is not set")];
  const { isReadableByAnyone, readRedisState, withRedis } = await import("../places/control.ts");
  try {
    const redis = await withRedis(url, readRedisState);
    return [
      checkVersion(redis),
      checkAccess(url, await isReadableByAnyone(url)),
      redis.createsUsers
        ? ok("each worker can have a credential of its own", "users")
        : problemFound("redis_no_users", "it refuses ACL SETUSER", "users"),
      checkPersistence(redis),
      checkMemory(redis),
    ];
  } catch (error) {
    return [problemFound("redis_unreachable", reasonOf(error), "connection")];
  }
}

function checkVersion({ version, ms }: RedisState): Finding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [minMajor, minMinor] = minVersion;
  if (major < minMajor || (major === minMajor && minor < minMinor))
    return problemFound("redis_old", `${version}; at least ${minVersion.join(".")} is needed`, "version");
  return ok(`${version}, answers in ${ms === 0 ? "less than 1" : ms} ms`, "version");
}

/** `isReadableByAnyone`: whether the server answers clients without a password, even if the URL has one. */
function checkAccess(url: string, isReadableByAnyone: boolean): Finding {
  const { isLocal, hasTls, hasPassword } = describeRedisAccess(url);
  if (isReadableByAnyone && (hasPassword || !isLocal))
    return problemFound("redis_open", "it shows messages without a password", "access");
  if (hasTls) return ok(`TLS${hasPassword ? " and a password" : ""}${isLocal ? ", on loopback" : ""}`, "access");
  // A URL without TLS and without a password is allowed only for loopback.
  if (!hasPassword) return ok("loopback, without a password", "access");
  return ok(isLocal ? "a password, on loopback" : "a password without TLS: use it only on a private network", "access");
}

/** A message that Redis loses is sent again, so a loss costs time, but no run. */
function checkPersistence({ appendOnly, appendFsync }: RedisState): Finding {
  if (appendOnly === "unknown") return problemFound("redis_settings_hidden", "appendonly is unknown", "persistence");
  if (appendOnly !== "yes") return problemFound("redis_not_persistent", `appendonly is ${appendOnly}`, "persistence");
  const losses: Record<string, string> = {
    always: "a power failure loses no message",
    everysec: "a power failure loses the messages of the last second",
    no: "a power failure loses the messages of about 30 seconds",
  };
  return ok(`appendfsync ${appendFsync}: ${losses[appendFsync] ?? "unknown loss"}`, "persistence");
}

/** From this share of its memory limit on, Redis is nearly full. */
const fullShare = 0.8;

function checkMemory({ maxMemoryPolicy, maxMemoryBytes, usedMemoryBytes }: RedisState): Finding {
  if (maxMemoryPolicy === "unknown")
    return problemFound("redis_settings_hidden", "maxmemory-policy is unknown", "memory");
  if (maxMemoryPolicy !== "noeviction")
    return problemFound("redis_evicts", `maxmemory-policy is ${maxMemoryPolicy}`, "memory");
  const used = `${Math.ceil(usedMemoryBytes / 1024 ** 2)} MiB in use`;
  if (maxMemoryBytes > 0 && usedMemoryBytes > fullShare * maxMemoryBytes)
    return problemFound("redis_memory_low", `${used}, at most ${Math.floor(maxMemoryBytes / 1024 ** 2)} MiB`, "memory");
  return ok(`maxmemory-policy noeviction, ${used}`, "memory");
}
