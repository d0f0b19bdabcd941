import type { JSONWebKeySet, JWK } from "jose";
import { type Fields, isObject } from "../agents/fields.ts";
import { unavailable } from "../errors.ts";
import { type Guard, GuardError } from "../net/guarded.ts";
import { httpUrl } from "../schema.ts";

const maxAgeMs = 3600_000;
/** After a token with an unknown key, or a failure of the issuer, evald reads the issuer's keys again, but at most this often. */
const cooldownMs = 30_000;
/** With more issuers, evald forgets the issuer whose keys were used longest ago. */
const maxIssuers = 100;
const maxKeys = 50;
const maxBytes = 256 * 1024;
/** A modulus of 16,384 bits has 2,731 characters. */
const maxFieldChars = 3000;

const keyTypes = new Set<unknown>(["RSA", "EC", "OKP"]);
/** The fields of a public key that verify a signature. */
const keyFieldNames = ["kty", "kid", "alg", "use", "crv", "x", "y", "n", "e"] as const;

/** The fields of a key that are needed; null if the key can't verify the signature of a token. */
function toKey(value: unknown): JWK | null {
  if (!isObject(value) || !keyTypes.has(value.kty)) return null;
  if (value.key_ops !== undefined && !(Array.isArray(value.key_ops) && value.key_ops.includes("verify"))) return null;
  const keyFields = keyFieldNames.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]] as const]));
  return keyFields.every(([, value]) => typeof value === "string" && value.length <= maxFieldChars)
    ? (Object.fromEntries(keyFields) as JWK)
    : null;
}

/** The keys that issuers of ID tokens publish, read through `guard` and kept for an hour. */
export function createIssuerKeys({ guard, now }: { guard: Guard; now: () => number }) {
  /** The entries are in the order of their last use. */
  const cache = new Map<string, { keys: Promise<JSONWebKeySet>; readAt: number; hasFailed: boolean }>();

  async function readJson(url: string): Promise<Fields> {
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

  async function readKeys(issuer: string): Promise<JSONWebKeySet> {
    const { issuer: declaredIssuer, jwks_uri: keysUrl } = await readJson(
      `${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`,
    );
    if (declaredIssuer !== issuer || typeof keysUrl !== "string" || !httpUrl(keysUrl))
      throw unavailable(
        `${issuer} is not an issuer of ID tokens: its discovery document names another issuer or no keys.`,
      );
    const { keys } = await readJson(keysUrl);
    if (!Array.isArray(keys)) throw unavailable(`${keysUrl} returned no keys. Check the issuer.`);
    if (keys.length > maxKeys) throw unavailable(`${keysUrl} returned more than ${maxKeys} keys. Check the issuer.`);
    return { keys: keys.map(toKey).filter((key) => key !== null) };
  }

  /** Starts reading keys. Requests at the same time share the result, and a failure lasts for the cooldown. */
  function startReading(issuer: string) {
    const entry = { keys: readKeys(issuer), readAt: now(), hasFailed: false };
    entry.keys.catch(() => {
      entry.hasFailed = true;
    });
    return entry;
  }

  return {
    /**
     * The keys of an issuer. They are read again if they are old. `isKeyUnknown`: a token was signed with an unknown key, as after a rotation. Then
     * they are also read again if they are older than the cooldown. If they aren't that old, it returns null. Throws unavailable.
     */
    async keysOf(issuer: string, { isKeyUnknown }: { isKeyUnknown: boolean }): Promise<JSONWebKeySet | null> {
      const cached = cache.get(issuer);
      const lifeMs = isKeyUnknown || cached?.hasFailed ? cooldownMs : maxAgeMs;
      // The clock may have been set back since.
      const isFresh = cached !== undefined && Math.abs(now() - cached.readAt) < lifeMs;
      const entry = isFresh ? cached : startReading(issuer);
      cache.delete(issuer);
      cache.set(issuer, entry);
      const [oldest] = cache.keys();
      if (oldest !== undefined && cache.size > maxIssuers) cache.delete(oldest);
      const keys = await entry.keys;
      return isFresh && isKeyUnknown ? null : keys;
    },

    forget: (issuer: string): void => void cache.delete(issuer),
  };
}
