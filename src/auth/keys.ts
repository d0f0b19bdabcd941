import { randomInt } from "node:crypto";
import { and, desc, eq, gt, inArray, isNotNull, isNull, lt, notInArray, or, type SQL, sql } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import { type Context, type OrgId, perContext } from "../context.ts";
import { createForgettableCache } from "../db/cache.ts";
import { transaction } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { apiKeys } from "../db/tables/keys.ts";
import { members, people } from "../db/tables/people.ts";
import { AppError, badRequest, conflict, notFound } from "../errors.ts";
import type { Caller } from "../http/caller.ts";
import { type KeyScope, keyScopes } from "../http/operation.ts";
import { keyShape, toIso, toName } from "../schema.ts";
import type { ApiKey, Creator } from "./key-schema.ts";
import { isOperator } from "./operators.ts";
import { isNamedIn } from "./person.ts";

/** The digits of base62. */
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const base = alphabet.length;
const prefix = "evals_";
const secretChars = 30;
const checksumChars = 6;
const checksumAt = prefix.length + secretChars;
const wholeKey = new RegExp(`^${keyShape.source}$`);
const lastUsedIntervalMs = 60_000;

/**
 * Creates a key: `evals_`, 30 random characters (178 bits), and 6 characters with the CRC-32 of both. With the CRC-32, a typo never reaches the
 * database.
 */
function newKey(): string {
  const secret = Array.from({ length: secretChars }, () => alphabet[randomInt(base)]).join("");
  return prefix + secret + checksum(prefix + secret);
}

/** The CRC-32 of a text in base62. */
function checksum(text: string): string {
  let remainder = Bun.hash.crc32(text);
  let digits = "";
  while (digits.length < checksumChars) {
    digits = alphabet[remainder % base] + digits;
    remainder = Math.floor(remainder / base);
  }
  return digits;
}

/** Whether a text has the format of a key, including a correct checksum. The key may still be unknown. */
export const isKeyShaped = (text: string): boolean =>
  wholeKey.test(text) && checksum(text.slice(0, checksumAt)) === text.slice(checksumAt);

const hashOf = (key: string): Buffer => Bun.CryptoHasher.hash("sha256", key);

/**
 * `id`: reserved by a form that may be submitted twice. `createdBy`: ID of the person who creates the key. `trustId`: ID of the trust that the key
 * comes from.
 */
type KeyOptions = {
  lifeMs?: number | null;
  scopes?: readonly string[] | null;
  usesCompatibilityMode?: boolean;
  id?: string;
  createdBy?: string;
  trustId?: string;
};

type CachedKey = { caller: Caller; expiresAt: number | null };

/** Keys that are not revoked. They are cached when they are first used. Call `forget` after each change that must also affect cached keys. */
const cachedKeys = perContext((ctx) => createForgettableCache<CachedKey>(ctx.db, 1000));

/** Empties the cache of keys. Called after an organization was deleted or restored. */
export const forgetKeys = (ctx: Context): void => cachedKeys(ctx).forget();

/** When keys were last used, by ID: the times that are not stored yet, and the time of the last store. In epoch ms. */
const keyUses = perContext(() => ({ unstored: new Map<string, number>(), storedAt: new Map<string, number>() }));

const keyByHash = statement((db) =>
  db
    .select({
      id: apiKeys.id,
      orgId: apiKeys.orgId,
      name: apiKeys.name,
      scopes: apiKeys.scopes,
      expiresAt: apiKeys.expiresAt,
      createdBy: apiKeys.createdBy,
      trustId: apiKeys.trustId,
      usesCompatibilityMode: apiKeys.usesCompatibilityMode,
    })
    .from(apiKeys)
    .where(and(eq(apiKeys.hash, sql.placeholder("hash")), isNull(apiKeys.revokedAt))),
);

/**
 * Creates a key that expires after `lifeMs`, or never. It has `scopes`, or all scopes. `key` is the only copy, because the database stores only a
 * digest. Throws bad_request for a blank name or unknown scopes, forbidden for `operate` if the person is no operator, and conflict for an existing
 * ID.
 */
export function createKey(
  ctx: Context,
  org: OrgId,
  name: string,
  { lifeMs = null, scopes = null, usesCompatibilityMode = false, id, createdBy, trustId }: KeyOptions = {},
): { key: string; apiKey: ApiKey } {
  const trimmedName = toName(name);
  const isOfOperator = trustId === undefined && (createdBy === undefined || isOperator(ctx, createdBy));
  if (scopes) checkScopes(scopes, isOfOperator);
  const existing =
    id === undefined
      ? undefined
      : ctx.db.select({ orgId: apiKeys.orgId }).from(apiKeys).where(eq(apiKeys.id, id)).get();
  if (existing?.orgId === org)
    throw conflict(
      "This API key was already created and is shown only once. Create another one if you did not copy it.",
    );
  const key = newKey();
  const createdAt = ctx.now();
  const row = {
    hash: hashOf(key),
    // If a key of another organization has this ID, a new ID is used. Nobody may find out that the other key exists.
    id: existing || id === undefined ? ctx.newId(createdAt) : id,
    orgId: org,
    name: trimmedName,
    display: `${key.slice(0, 10)}…${key.slice(-4)}`,
    scopes: scopes && keyScopes.filter((scope) => scopes.includes(scope)),
    createdAt,
    expiresAt: lifeMs === null ? null : createdAt + lifeMs,
    createdBy,
    trustId,
    usesCompatibilityMode,
  };
  const apiKey = transaction(ctx.db, (tx) => {
    tx.insert(apiKeys).values(row).run();
    const created = getKey(ctx, org, row.id);
    const changes = changesOf(
      {},
      {
        scopes: row.scopes,
        expiresAt: created.expiresAt,
        usesCompatibilityMode: usesCompatibilityMode || undefined,
      },
    );
    recordAudit(ctx, org, trustId === undefined ? "key.created" : "key.exchanged", created, changes);
    return created;
  });
  return { key, apiKey };
}

/** `isOfOperator`: whether an operator or the command line creates the key. */
function checkScopes(scopes: readonly string[], isOfOperator: boolean): void {
  const unknownScope = scopes.find((scope) => !keyScopes.includes(scope as KeyScope));
  if (unknownScope !== undefined || scopes.length === 0)
    throw badRequest(
      `Invalid scope ${JSON.stringify(unknownScope ?? "")}. Use one or more of ${keyScopes.join(", ")}.`,
    );
  if (scopes.includes("report_friction") && scopes.length > 1)
    throw badRequest("The scope report_friction can't be combined with others: its keys may become public.");
  if (scopes.includes("operate") && !isOfOperator)
    throw new AppError("forbidden", "Only operators of this server can create keys with the scope operate.");
}

/** The caller with a valid key; null if the key is invalid. The use is recorded in memory, and `flushLastUsed` stores it. */
export function findKey(ctx: Context, key: string): Caller | null {
  const hash = hashOf(key);
  const cached = cachedKeys(ctx).get(hash.toString("latin1"), () =>
    isKeyShaped(key) ? readKey(ctx, hash) : undefined,
  );
  const now = ctx.now();
  if (!cached || (cached.expiresAt !== null && cached.expiresAt <= now)) return null;
  keyUses(ctx).unstored.set(cached.caller.keyId, now);
  return cached.caller;
}

function readKey(ctx: Context, hash: Buffer): CachedKey | undefined {
  const row = keyByHash(ctx.db).get({ hash });
  if (!row) return undefined;
  const { id: keyId, orgId, name, scopes, expiresAt, createdBy, trustId, usesCompatibilityMode } = row;
  const org = orgId as OrgId;
  return {
    caller: { keyId, org, name, scopes: scopes as KeyScope[] | null, createdBy, trustId, usesCompatibilityMode },
    expiresAt,
  };
}

/**
 * Which keys to list. `createdBy`: only keys that this person created. `isOfFormer`: only keys of people who left. `isActive`: only keys that are
 * neither revoked nor expired.
 */
type KeyFilter = { createdBy?: string; isOfFormer?: boolean; isActive?: boolean };

/** Newest first. */
export const listKeys = (
  ctx: Context,
  org: OrgId,
  { createdBy, isOfFormer = false, isActive = false }: KeyFilter = {},
): ApiKey[] =>
  selectKeys(
    ctx,
    and(
      eq(apiKeys.orgId, org),
      createdBy === undefined ? undefined : eq(apiKeys.createdBy, createdBy),
      isOfFormer ? whereOfFormer(ctx, org) : undefined,
      isActive ? whereActive(ctx) : undefined,
    ),
  );

/** The condition for keys that still work. */
const whereActive = (ctx: Context) =>
  and(isNull(apiKeys.revokedAt), or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, ctx.now())));

/** The condition for keys whose creator is no longer a member. The keys of a CI job come from the trust, no matter who added the trust. */
const whereOfFormer = ({ db }: Context, org: OrgId) =>
  and(
    isNotNull(apiKeys.createdBy),
    isNull(apiKeys.trustId),
    notInArray(apiKeys.createdBy, db.select({ id: members.personId }).from(members).where(eq(members.orgId, org))),
  );

const selectKeys = ({ db }: Context, where: SQL | undefined): ApiKey[] =>
  db
    .select({ key: apiKeys, name: people.name, memberId: members.id })
    .from(apiKeys)
    .leftJoin(people, and(eq(people.id, apiKeys.createdBy), isNamedIn(apiKeys.orgId, apiKeys.createdBy)))
    .leftJoin(members, and(eq(members.orgId, apiKeys.orgId), eq(members.personId, apiKeys.createdBy)))
    .where(where)
    .orderBy(desc(apiKeys.id))
    .all()
    .map(({ key, name, memberId }) =>
      toApiKey(key, key.createdBy === null ? null : { id: key.createdBy, name, isMember: memberId !== null }),
    );

/** Throws not_found. */
function getKey(ctx: Context, org: OrgId, id: string): ApiKey {
  const [key] = selectKeys(ctx, and(eq(apiKeys.orgId, org), eq(apiKeys.id, id)));
  if (!key) throw notFound(`No API key has the ID ${id}.`);
  return key;
}

/** Revokes a key, from the next request on. Throws not_found. Revoking it again changes nothing. */
export function revokeKey(ctx: Context, org: OrgId, id: string): ApiKey {
  revokeKeys(ctx, org, eq(apiKeys.id, id));
  return getKey(ctx, org, id);
}

/** Revokes the keys of everyone who left the organization. Returns them, newest first. */
export function revokeKeysOfFormerMembers(ctx: Context, org: OrgId): ApiKey[] {
  const ids = revokeKeys(ctx, org, whereOfFormer(ctx, org));
  return ids.length === 0 ? [] : selectKeys(ctx, and(eq(apiKeys.orgId, org), inArray(apiKeys.id, ids)));
}

/** Revokes all keys that a person created in the organization. */
export const revokeKeysOfPerson = (ctx: Context, org: OrgId, personId: string): void =>
  void revokeKeys(ctx, org, eq(apiKeys.createdBy, personId));

/** Revokes the keys of a trust. */
export const revokeKeysOfTrust = (ctx: Context, org: OrgId, trustId: string): void =>
  void revokeKeys(ctx, org, eq(apiKeys.trustId, trustId));

/** Revokes the keys of an organization that match and are not yet revoked. Returns their IDs. */
function revokeKeys(ctx: Context, org: OrgId, where: SQL | undefined): string[] {
  const revoked = transaction(ctx.db, (tx) => {
    const rows = tx
      .update(apiKeys)
      .set({ revokedAt: ctx.now() })
      .where(and(eq(apiKeys.orgId, org), where, isNull(apiKeys.revokedAt)))
      .returning({ id: apiKeys.id, name: apiKeys.name })
      .all();
    for (const key of rows) recordAudit(ctx, org, "key.revoked", key);
    return rows;
  });
  cachedKeys(ctx).forget();
  return revoked.map(({ id }) => id);
}

/** Deletes keys of trusts that expired before `beforeMs`, because a pipeline leaves many expired keys. */
export function deleteExpiredKeysOfTrusts(ctx: Context, org: OrgId, beforeMs: number): void {
  const where = and(eq(apiKeys.orgId, org), isNotNull(apiKeys.trustId), lt(apiKeys.expiresAt, beforeMs));
  ctx.db.delete(apiKeys).where(where).run();
  cachedKeys(ctx).forget();
}

/** Stores when keys were last used, at most once a minute for each key. `isStopping`: the process ends, so all times are stored. */
export function flushLastUsed(ctx: Context, { isStopping = false }: { isStopping?: boolean } = {}): void {
  const { unstored, storedAt } = keyUses(ctx);
  for (const [id, at] of unstored) {
    const isStoredRecently = at - (storedAt.get(id) ?? Number.NEGATIVE_INFINITY) < lastUsedIntervalMs;
    if (isStoredRecently && !isStopping) continue;
    ctx.db.update(apiKeys).set({ lastUsedAt: at }).where(eq(apiKeys.id, id)).run();
    storedAt.set(id, at);
    unstored.delete(id);
  }
}

const toApiKey = (row: typeof apiKeys.$inferSelect, createdBy: Creator | null): ApiKey => ({
  id: row.id,
  name: row.name,
  display: row.display,
  scopes: row.scopes as KeyScope[] | null,
  usesCompatibilityMode: row.usesCompatibilityMode,
  createdBy,
  trustId: row.trustId,
  createdAt: toIso(row.createdAt),
  expiresAt: toIso(row.expiresAt),
  revokedAt: toIso(row.revokedAt),
  lastUsedAt: toIso(row.lastUsedAt),
});
