import { createLocalJWKSet, decodeJwt, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from "jose";
import type { Context } from "../context.ts";
import { perContext } from "../context.ts";
import { AppError } from "../errors.ts";
import { createGuard } from "../net/guarded.ts";
import { createIssuerKeys } from "./issuer-keys.ts";

/** Asymmetric signatures only: `none`, and a secret that an issuer shares with others, prove nothing. */
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const toleranceSeconds = 30;

export type Claims = JWTPayload & { iss: string; jti: string; exp: number };

export const tokenRefused = (detail: string): AppError => new AppError("unauthorized", detail);

/** The issuer that a token names; nothing is verified yet. Throws unauthorized. */
export function issuerOf(token: string): string {
  try {
    const { iss } = decodeJwt(token);
    if (typeof iss === "string") return iss;
  } catch {
    // Not a token.
  }
  throw tokenRefused("The token is not an ID token: it has no issuer. Send the ID token of the CI job.");
}

const issuerKeys = perContext((ctx) => {
  const { now } = ctx;
  return createIssuerKeys({
    guard: createGuard({ allow: ctx.config.allowPrivate, now, keepsAlive: false }),
    now,
  });
});

/** Forgets the keys of an issuer that is no longer trusted. */
export const forgetIssuer = (ctx: Context, issuer: string): void => issuerKeys(ctx).forget(issuer);

/**
 * The claims of a token that `issuer` signed for this audience and that hasn't expired. Throws unauthorized with the reason, and
 * unavailable if the issuer's keys can't be read.
 */
export async function verifyIdToken(
  ctx: Context,
  token: string,
  { issuer, audience }: { issuer: string; audience: string },
): Promise<Claims> {
  const options = {
    issuer,
    audience: [audience, `${audience}/`],
    algorithms,
    currentDate: new Date(ctx.now()),
    clockTolerance: toleranceSeconds,
    requiredClaims: ["exp", "iat", "jti"],
  };
  const check = async (keys: JSONWebKeySet | null): Promise<Claims | Error> => {
    try {
      return (await jwtVerify<Claims>(token, createLocalJWKSet(keys ?? { keys: [] }), options)).payload;
    } catch (error) {
      // Not only errors of the library: an unusable key of the issuer makes the cryptography fail.
      return error instanceof Error ? error : new Error(String(error));
    }
  };
  let result = await check(await issuerKeys(ctx).keysOf(issuer, false));
  if (result instanceof errors.JWKSNoMatchingKey) {
    const newKeys = await issuerKeys(ctx).keysOf(issuer, true);
    if (newKeys) result = await check(newKeys);
  }
  if (result instanceof Error) throw tokenRefused(describeFault(result, token, options));
  return result;
}

function describeFault(
  error: Error,
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
