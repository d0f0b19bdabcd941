import { hostname } from "node:os";
import type { Redis } from "ioredis";
import { ConfigError } from "../errors.ts";
import type { Fleet } from "./fleet.ts";
import { serviceClaim } from "./messages.ts";

/** The claim of a service to the Redis server that it uses. `owner`: its host and data directory. `service`: the ID of its process. */
type Claim = { owner: string; service: string };

/** The owner in the claim of a service on this machine: its host name and data directory. */
export const serviceOwnerOf = (dataDir: string): string => `${hostname()}:${dataDir}`;

/**
 * Takes the claim, unless another service has it: then it returns the owner of that claim. ARGV: the new claim, its owner, its process, its life in
 * milliseconds, and `start` or `renew`. A service that starts also takes the claim of its own previous process. That process has ended, because the
 * data directory is locked.
 */
const claimScript = `
  local held = redis.call("GET", KEYS[1])
  if held then
    local claim = cjson.decode(held)
    if claim.service ~= ARGV[3] and not (ARGV[5] == "start" and claim.owner == ARGV[2]) then return claim.owner end
  end
  redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[4])
  return false`;

/**
 * Claims the Redis server for this service, or renews its claim. A claim expires after `goneMs` of the fleet. Returns whether this service has the
 * claim.
 */
export async function claimRedis(fleet: Fleet, owner: string, when: "start" | "renew"): Promise<boolean> {
  const { redis, service, goneMs, log } = fleet;
  const claim: Claim = { owner, service };
  try {
    const args = [JSON.stringify(claim), owner, service, goneMs, when];
    const other = (await redis.sender.eval(claimScript, 1, serviceClaim, ...args)) as string | null;
    if (other !== null && fleet.otherService !== other)
      log.error({ other }, "the Redis server is used by another service; sessions wait until it has stopped");
    else if (other === null && fleet.otherService !== null) log.info("the other service has stopped");
    fleet.otherService = other;
    if (other === null) fleet.isClaimed = true;
    return other === null;
  } catch {
    // The connection itself reports the error.
    return false;
  }
}

/** Ends the claim of this service, so that another one can start. */
export async function releaseRedis({ redis, isClaimed, otherService }: Fleet): Promise<void> {
  if (isClaimed && otherService === null) await redis.sender.del(serviceClaim).catch(() => {});
}

const pollMs = 500;

/** Waits until the claim of a crashed service expires. Throws ConfigError if another service renews its claim, because it uses the Redis server. */
export async function waitUntilUnclaimed(redis: Redis, owner: string): Promise<void> {
  for (let lifeMs = Number.POSITIVE_INFINITY; ; await Bun.sleep(pollMs)) {
    const text = await redis.get(serviceClaim);
    const claim: Claim | null = text === null ? null : JSON.parse(text);
    if (claim === null || claim.owner === owner) return;
    const leftMs = await redis.pttl(serviceClaim);
    const isRenewed = leftMs > lifeMs;
    if (isRenewed)
      throw new ConfigError(
        `The Redis server of EVALD_REDIS_URL is used by another service: ${claim.owner} (host and data directory). Stop that service, or use another Redis server.`,
      );
    lifeMs = leftMs;
  }
}
