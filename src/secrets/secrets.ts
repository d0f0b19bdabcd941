import { and, asc, count, eq, inArray } from "drizzle-orm";
import type { CheckSecrets } from "../agents/check-secrets.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { checkSecrets } from "../db/tables/keys.ts";
import { badRequest, conflict, invalidField, notFound } from "../errors.ts";
import { seal, unseal } from "../models/seal.ts";
import { toIso } from "../schema.ts";
import {
  type CheckSecret,
  type CheckSecretInput,
  maxSecretChars,
  maxSecrets,
  minSecretChars,
  secretName,
} from "./schema.ts";

type CheckSecretRow = typeof checkSecrets.$inferSelect;

/** The secrets of an organization, by name, without their values. */
export const listSecrets = (ctx: Context, org: OrgId): CheckSecret[] =>
  ctx.db
    .select()
    .from(checkSecrets)
    .where(eq(checkSecrets.orgId, org))
    .orderBy(asc(checkSecrets.name))
    .all()
    .map((row) => toSecret(ctx, row));

/**
 * Stores a secret, encrypted. It replaces an earlier secret of the same name. `hosts`: the only hosts that may get it; null: the host of each check;
 * undefined: unchanged. Throws bad_request for an invalid name, value or host, and conflict for too many secrets. No error quotes the value.
 */
export function setSecret(
  ctx: Context,
  org: OrgId,
  name: string,
  { value, hosts: requestedHosts }: CheckSecretInput,
): CheckSecret {
  const { secretKey } = ctx.config;
  if (!secretKey)
    throw badRequest("Set EVALD_SECRET_KEY before storing secrets. Generate one with: openssl rand -base64 32");
  if (!new RegExp(secretName.pattern).test(name))
    throw invalidField("name", "must be 1 to 100 letters, digits and _, starting with a letter or _");
  checkValue(value);
  const sealed = seal(value, secretKey, sealContext(org, name));
  return transaction(ctx.db, (tx) => {
    const earlier = tx.select().from(checkSecrets).where(whereSecret(org, name)).get();
    const isNew = earlier === undefined;
    const earlierHosts = earlier?.hosts ?? null;
    const hosts = requestedHosts === undefined ? earlierHosts : (requestedHosts?.map(toHost) ?? null);
    const row = { sealed, hosts, updatedAt: ctx.now() };
    const total = tx.select({ n: count() }).from(checkSecrets).where(eq(checkSecrets.orgId, org)).get()?.n ?? 0;
    if (isNew && total >= maxSecrets)
      throw conflict(`The organization has ${maxSecrets} secrets, which is the maximum. Delete one first.`);
    tx.insert(checkSecrets)
      .values({ orgId: org, name, ...row })
      .onConflictDoUpdate({ target: [checkSecrets.orgId, checkSecrets.name], set: row })
      .run();
    recordAudit(ctx, org, "secret.stored", { name }, changesOf({ hosts: earlierHosts }, { hosts }));
    return toSecret(ctx, { orgId: org, name, ...row });
  });
}

/** A host as URLs have it. Throws bad_request. */
function toHost(text: string, i: number): string {
  const url = URL.parse(`https://${text}/`);
  if (url?.pathname !== "/" || url.username || url.password)
    throw invalidField(`hosts.${i}`, "must be a host, such as api.acme.example or localhost:8080");
  return url.host;
}

/** Deletes a secret. Checks that refer to it can't run afterwards. Throws not_found. */
export const deleteSecret = (ctx: Context, org: OrgId, name: string): CheckSecret =>
  transaction(ctx.db, (tx) => {
    const [deleted] = tx.delete(checkSecrets).where(whereSecret(org, name)).returning().all();
    if (!deleted) throw notFound(`The organization has no secret named ${name}.`);
    recordAudit(ctx, org, "secret.deleted", { name });
    return toSecret(ctx, deleted);
  });

/** Secrets by name. Secrets that don't exist or can't be decrypted are left out. */
export function readSecrets(ctx: Context, org: OrgId, names: readonly string[]): CheckSecrets {
  if (names.length === 0) return {};
  const where = and(eq(checkSecrets.orgId, org), inArray(checkSecrets.name, [...names]));
  const rows = ctx.db.select().from(checkSecrets).where(where).all();
  return Object.fromEntries(
    rows.flatMap((row) => {
      const value = unsealRow(ctx, row);
      return value === null ? [] : [[row.name, { value, hosts: row.hosts }]];
    }),
  );
}

/** The hosts to which a secret may be sent; null: the host of each check; undefined: there is no secret of this name. */
export const findSecretHosts = ({ db }: Context, org: OrgId, name: string): string[] | null | undefined =>
  db.select({ hosts: checkSecrets.hosts }).from(checkSecrets).where(whereSecret(org, name)).get()?.hosts;

/** Throws bad_request without quoting the value. */
function checkValue(value: string): void {
  if (value.length < minSecretChars || value.length > maxSecretChars)
    throw invalidField("value", `must have ${minSecretChars} to ${maxSecretChars} characters`);
  // Headers can't contain any other characters.
  if (!/^[\x20-\x7e]*$/.test(value)) throw invalidField("value", "must be one line of printable ASCII characters");
}

const whereSecret = (org: OrgId, name: string) => and(eq(checkSecrets.orgId, org), eq(checkSecrets.name, name));

/** null: it can't be decrypted. */
const unsealRow = ({ config: { secretKey } }: Context, { orgId, name, sealed }: CheckSecretRow): string | null =>
  secretKey ? unseal(sealed, secretKey, sealContext(orgId, name)) : null;

const toSecret = (ctx: Context, row: CheckSecretRow): CheckSecret => ({
  name: row.name,
  hosts: row.hosts,
  state: unsealRow(ctx, row) === null ? "unreadable" : "usable",
  updatedAt: toIso(row.updatedAt),
});

/** What a sealed secret belongs to. */
const sealContext = (org: string, name: string) => `${org} secret ${name}`;
