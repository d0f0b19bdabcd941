import type { JSONWebKeySet, JWK } from "jose";
import { type Context, perContext } from "../context.ts";
import { unavailable } from "../errors.ts";
import { createGuard, GuardError } from "../net/guarded.ts";
import { userAgent } from "../net/user-agent.ts";
import { httpUrl } from "../schema.ts";

const keepMs = 3600_000;
/** Tokens with an unknown key make evald read the issuer's keys again at most this often. */
const cooldownMs = 30_000;
/** The keys of the issuers that were used last stay in memory. */
const maxIssuers = 100;
const maxKeys = 50;
const maxBytes = 256 * 1024;
/** A modulus of 16,384 bits has 2,731 characters. */
const maxFieldChars = 3000;

const keyTypes = new Set<unknown>(["RSA", "EC", "OKP"]);
/** The fields of a public key that verify a signature. */
const fields = ["kty", "kid", "alg", "use", "crv", "x", "y", "n", "e"] as const;

type Fields = Record<string, unknown>;
const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The fields of a published key that verify a signature; null if it can't verify the signature of a token. */
function toKey(value: unknown): JWK | null {
  if (!isObject(value) || !keyTypes.has(value.kty)) return null;
  if (value.key_ops !== undefined && !(Array.isArray(value.key_ops) && value.key_ops.includes("verify"))) return null;
  const entries = fields.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]] as const]));
  return entries.every(([, field]) => typeof field === "string" && field.length <= maxFieldChars)
    ? (Object.fromEntries(entries) as JWK)
    : null;
}

const stateOf = perContext(({ config, now }) => ({
  guard: createGuard({ allow: config.allowPrivate, userAgent, now, keepsAlive: false }),
  /** The keys that issuers publish, in the order of their last use. `readAt`: epoch ms. */
  issuers: new Map<string, { keys: JSONWebKeySet; readAt: number }>(),
}));

/**
 * The keys that an issuer of ID tokens publishes. They are read again after an hour, or with `isUnknown`, after a rotation. null: with
 * `isUnknown`, they were read a moment ago. Throws unavailable.
 */
export async function findIssuerKeys(ctx: Context, issuer: string, isUnknown: boolean): Promise<JSONWebKeySet | null> {
  const { issuers } = stateOf(ctx);
  const stored = issuers.get(issuer);
  const ageMs = stored === undefined ? Number.POSITIVE_INFINITY : Math.abs(ctx.now() - stored.readAt);
  const isFresh = ageMs < (isUnknown ? cooldownMs : keepMs);
  const current = stored && isFresh ? stored : { keys: await readKeys(ctx, issuer), readAt: ctx.now() };
  issuers.delete(issuer);
  issuers.set(issuer, current);
  const [oldest] = issuers.keys();
  if (oldest !== undefined && issuers.size > maxIssuers) issuers.delete(oldest);
  return current === stored && isUnknown ? null : current.keys;
}

/** Forgets the keys of an issuer that is no longer trusted. */
export const forgetIssuer = (ctx: Context, issuer: string): void => void stateOf(ctx).issuers.delete(issuer);

async function readKeys(ctx: Context, issuer: string): Promise<JSONWebKeySet> {
  const discovery = await readJson(ctx, `${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`);
  const url = discovery.jwks_uri;
  if (discovery.issuer !== issuer || typeof url !== "string" || !httpUrl(url))
    throw unavailable(
      `${issuer} is not an issuer of ID tokens: its discovery document names another issuer or no keys.`,
    );
  const { keys } = await readJson(ctx, url);
  if (!Array.isArray(keys)) throw unavailable(`${url} returned no keys. Check the issuer.`);
  if (keys.length > maxKeys) throw unavailable(`${url} returned more than ${maxKeys} keys. Check the issuer.`);
  return { keys: keys.map(toKey).filter((key) => key !== null) };
}

async function readJson(ctx: Context, url: string): Promise<Fields> {
  const { guard } = stateOf(ctx);
  try {
    const response = await guard.request(url, { timeoutMs: 10_000, maxBytes });
    if (response.status !== 200) throw unavailable(`${url} returned status ${response.status}. Try again later.`);
    const content: unknown = JSON.parse(guard.text(response));
    if (isObject(content)) return content;
    throw unavailable(`${url} returned no JSON object. Check the issuer.`);
  } catch (error) {
    if (error instanceof GuardError) throw unavailable(`Cannot read ${url}: ${error.message}.`);
    if (error instanceof SyntaxError) throw unavailable(`${url} returned no JSON. Check the issuer.`);
    throw error;
  }
}
