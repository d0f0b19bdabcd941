import { createLocalJWKSet, decodeJwt, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from "jose";
import { AppError, unavailable } from "../errors.ts";
import { type Guard, GuardError } from "../net/guarded.ts";
import { httpUrl } from "../schema.ts";

/** Asymmetric signatures only: `none`, and a secret that an issuer shares with others, prove nothing. */
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const keepMs = 3600_000;
/** Tokens with an unknown key make evald read the issuer's keys again at most this often. */
const cooldownMs = 30_000;
const toleranceSeconds = 30;

export type Claims = JWTPayload & { iss: string; jti: string; exp: number };

export const refused = (detail: string): AppError => new AppError("unauthorized", detail);

/** The issuer that a token names; nothing is verified yet. Throws unauthorized. */
export function issuerOf(token: string): string {
  try {
    const { iss } = decodeJwt(token);
    if (typeof iss === "string") return iss;
  } catch {
    // Not a token.
  }
  throw refused("The token is not an ID token: it has no issuer. Send the ID token of the CI job.");
}

/** Verifies ID tokens with the keys that their issuers publish, read through `guard` and kept for an hour. */
export function createIdTokens({ guard, now }: { guard: Pick<Guard, "request" | "text">; now: () => number }) {
  const kept = new Map<string, { keys: JSONWebKeySet; at: number }>();

  async function readJson(url: string): Promise<Record<string, unknown>> {
    try {
      const response = await guard.request(url, { timeoutMs: 10_000, maxBytes: 1024 * 1024 });
      if (response.status === 200) return JSON.parse(guard.text(response));
      throw unavailable(`${url} returned status ${response.status}. Try again later.`);
    } catch (error) {
      if (error instanceof GuardError) throw unavailable(`Cannot read ${url}: ${error.message}.`);
      if (error instanceof SyntaxError) throw unavailable(`${url} returned no JSON. Check the issuer.`);
      throw error;
    }
  }

  async function readKeys(issuer: string): Promise<JSONWebKeySet> {
    const { issuer: named, jwks_uri: at } = await readJson(
      `${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`,
    );
    if (named !== issuer || typeof at !== "string" || !httpUrl(at))
      throw unavailable(
        `${issuer} is not an issuer of ID tokens: its discovery document names another issuer or no keys.`,
      );
    return (await readJson(at)) as unknown as JSONWebKeySet;
  }

  /** The keys of an issuer: read again if they are old, or older than the cooldown and `isUnknown`, after a rotation. */
  async function keysOf(issuer: string, isUnknown: boolean): Promise<JSONWebKeySet | null> {
    const known = kept.get(issuer);
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : Math.abs(now() - known.at);
    if (known && ageMs < (isUnknown ? cooldownMs : keepMs)) return isUnknown ? null : known.keys;
    const keys = await readKeys(issuer);
    kept.set(issuer, { keys, at: now() });
    return keys;
  }

  /**
   * The claims of a token that `issuer` signed for this audience and that hasn't expired. Throws unauthorized with the reason, and
   * unavailable if the issuer's keys can't be read.
   */
  return async function verify(
    token: string,
    { issuer, audience }: { issuer: string; audience: string },
  ): Promise<Claims> {
    const options = {
      issuer,
      audience: [audience, `${audience}/`],
      algorithms,
      currentDate: new Date(now()),
      clockTolerance: toleranceSeconds,
      requiredClaims: ["exp", "iat", "jti"],
    };
    const check = async (keys: JSONWebKeySet): Promise<Claims> =>
      (await jwtVerify<Claims>(token, createLocalJWKSet(keys), options)).payload;
    try {
      const keys = (await keysOf(issuer, false)) as JSONWebKeySet;
      return await check(keys).catch(async (error) => {
        const fresh = error instanceof errors.JWKSNoMatchingKey ? await keysOf(issuer, true) : null;
        if (fresh === null) throw error;
        return await check(fresh);
      });
    } catch (error) {
      if (error instanceof errors.JOSEError) throw refused(reasonOf(error, token, options));
      throw error;
    }
  };
}

function reasonOf(
  error: InstanceType<typeof errors.JOSEError>,
  token: string,
  { issuer, audience: [audience] }: { issuer: string; audience: string[] },
): string {
  if (error instanceof errors.JWTExpired) return "The ID token has expired. Request a new one.";
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === "aud")
    return `The ID token is for the audience ${JSON.stringify(decodeJwt(token).aud)}. Request it for the audience ${audience}.`;
  if (error instanceof errors.JWTClaimValidationFailed)
    return `The ID token has no valid claim ${error.claim}. Request a new one.`;
  if (error instanceof errors.JOSEAlgNotAllowed)
    return "The ID token isn't signed with a public key. Send the ID token as the CI provider issued it.";
  return `The ID token isn't signed by ${issuer}. Send the ID token as the CI provider issued it.`;
}
