import { randomBytes } from "node:crypto";
import { asc, eq } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import type { Context } from "../context.ts";
import { type Db, transaction } from "../db/open.ts";
import { workerCredentials } from "../db/tables/keys.ts";
import { badRequest, notFound } from "../errors.ts";
import { credentialName, sharedCredential, userPrefix } from "../places/messages.ts";
import type { WorkerCredential } from "../places/redis-users.ts";
import { toIso } from "../schema.ts";

/** A credential as it is listed. */
type ListedCredential = { name: string; createdAt: string };

/** The credentials of workers by name. The service gives them access to Redis. */
export const listCredentials = (db: Db): (WorkerCredential & { createdAt: number })[] =>
  db
    .select()
    .from(workerCredentials)
    .orderBy(asc(workerCredentials.name))
    .all()
    .map(({ digest, ...rest }) => ({ ...rest, digest: digest.toString("hex") }));

/** A credential as lists show it. */
export const toListed = ({ name, createdAt }: { name: string; createdAt: number }): ListedCredential => ({
  name,
  createdAt: toIso(createdAt),
});

/**
 * Creates the credential of a worker. `redisUrl`: the service's own Redis URL. Returns the URL with which the worker connects. Its password is not
 * stored. Throws bad_request for a name that is invalid or in use.
 */
export function createCredential(ctx: Context, redisUrl: string, name: string): ListedCredential & { url: string } {
  if (!credentialName.test(name) || name === sharedCredential)
    throw badRequest(
      `The name of a worker must have 1 to 63 lowercase letters, digits and -, start with a letter or digit, and not be ${sharedCredential}.`,
    );
  const password = randomBytes(32).toString("base64url");
  const createdAt = ctx.now();
  const row = { name, digest: new Bun.CryptoHasher("sha256").update(password).digest(), createdAt };
  const created = transaction(ctx.db, (tx) => {
    const [inserted] = tx.insert(workerCredentials).values(row).onConflictDoNothing().returning().all();
    if (inserted) recordAudit(ctx, null, "worker_credential.created", { name });
    return inserted;
  });
  if (!created)
    throw badRequest(`The worker ${name} already has a credential. Revoke it first, or choose another name.`);
  const url = new URL(redisUrl);
  url.username = userPrefix + name;
  url.password = password;
  return { ...toListed(row), url: url.href };
}

/** Revokes the credential of a worker, which loses its sessions within seconds. Throws not_found. */
export const revokeCredential = (ctx: Context, name: string): ListedCredential =>
  transaction(ctx.db, (tx) => {
    const [revoked] = tx.delete(workerCredentials).where(eq(workerCredentials.name, name)).returning().all();
    if (!revoked) throw notFound(`No worker has a credential with the name ${name}.`);
    recordAudit(ctx, null, "worker_credential.removed", { name });
    return toListed(revoked);
  });
