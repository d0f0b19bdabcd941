import { Queue } from "bullmq/dist/esm/classes/queue";
import type { Redis } from "ioredis";
import { keyPatternsOf, queuePrefixOf, sharedCredential, userPrefix } from "./messages.ts";
import type { RedisConnections } from "./redis.ts";

/** A worker's own access to Redis. `digest`: the SHA-256 of its password, in hex. */
export type WorkerCredential = { name: string; digest: string };

/**
 * The commands that a worker may use, and only on its own keys. It can't look for keys, empty the database or send a script. It can only run the
 * scripts of BullMQ that the service loads.
 */
const permissions = [
  "-@all +@stream +@hash +@list +@set +@sortedset +@string",
  "+del +unlink +exists +type +expire +pexpire +ttl +pttl +persist",
  "+evalsha +multi +exec +discard",
  "+time +ping +info +hello +auth +select +reset +quit +client|setname +client|id",
].flatMap((commands) => commands.split(" "));

/** The rule of a credential, as in `ACL SETUSER`. */
const ruleOf = ({ name, digest }: WorkerCredential): string[] => [
  "reset",
  "on",
  `#${digest}`,
  ...keyPatternsOf(name).map((pattern) => `~${pattern}`),
  ...permissions,
];

/**
 * Creates the Redis users of these credentials, and removes the users of all other credentials. `applied`: by user, the digests of the credentials
 * that this connection has created. Throws if the server doesn't allow it.
 */
export async function applyCredentials(
  { sender }: RedisConnections,
  credentials: WorkerCredential[],
  applied: Map<string, string>,
): Promise<void> {
  const credentialsByUser = new Map(credentials.map((each) => [userPrefix + each.name, each]));
  const users = ((await sender.acl("USERS")) as string[]).filter((name) => name.startsWith(userPrefix));
  // This ends the connections of the user.
  for (const user of users) if (!credentialsByUser.has(user)) await sender.acl("DELUSER", user);
  for (const [user, credential] of credentialsByUser) {
    if (users.includes(user) && applied.get(user) === credential.digest) continue;
    await sender.acl("SETUSER", user, ...ruleOf(credential));
    applied.set(user, credential.digest);
  }
}

/** Whether an error of `applyCredentials` means that the server lets this service create no users. Hosted servers often forbid ACL. */
export const isUserRefused = (error: unknown): boolean => /unknown command|NOPERM/i.test(String(error));

/**
 * Whether the server lets this connection create users. To find out, it creates a user that can do nothing, and removes it. Throws if the server is
 * away.
 */
export async function canCreateUsers(redis: Redis): Promise<boolean> {
  try {
    await redis.acl("SETUSER", "evald-doctor", "reset");
    await redis.acl("DELUSER", "evald-doctor");
    return true;
  } catch (error) {
    if (isUserRefused(error)) return false;
    throw error;
  }
}

type ScriptDefinition = { lua: string; numberOfKeys?: number };
type Scripts = Record<string, { lua: string; sha: string }>;

/** Makes BullMQ define its scripts on the connection, as its first queue would. */
export async function defineScripts({ jobs }: RedisConnections): Promise<void> {
  const queue = new Queue("unused", { connection: jobs, prefix: queuePrefixOf(sharedCredential) });
  queue.on("error", () => {});
  await queue.waitUntilReady();
  await queue.close();
}

/** Loads the scripts of BullMQ that the server doesn't have. */
export async function loadScripts({ jobs, sender }: RedisConnections): Promise<void> {
  const scripts = Object.values((jobs as unknown as { scriptsSet: Scripts }).scriptsSet);
  if (scripts.length === 0) return;
  const exist = (await sender.script("EXISTS", ...scripts.map(({ sha }) => sha))) as number[];
  for (const [i, { lua }] of scripts.entries()) if (exist[i] !== 1) await sender.script("LOAD", lua);
}

/** Makes BullMQ call its scripts only by their digest. Otherwise ioredis would send the scripts, which a worker may not do. */
export function callScriptsByDigest({ jobs }: RedisConnections): void {
  const { duplicate } = jobs;
  const change = (connection: Redis): Redis =>
    Object.assign(connection, {
      defineCommand(name: string, { lua, numberOfKeys = 0 }: ScriptDefinition) {
        const digest = new Bun.CryptoHasher("sha1").update(lua).digest("hex");
        Object.assign(connection, {
          [name]: (...args: unknown[]) =>
            connection.call("EVALSHA", digest, numberOfKeys, ...(args.flat() as (string | Buffer | number)[])),
        });
      },
      // BullMQ duplicates this connection for connections on which it waits.
      duplicate: (...options: Parameters<typeof duplicate>) => change(duplicate.apply(connection, options)),
    });
  change(jobs);
}
