import type { JSONWebKeySet, JWTPayload } from "jose";
import { type Context, perContext } from "../context.ts";
import { AppError, reasonOf } from "../errors.ts";
import { loadJose } from "../lazy-packages.ts";
import { createGuard } from "../net/guarded.ts";
import { createIssuerKeys } from "./issuer-keys.ts";

/** Only asymmetric signatures. Neither `none` nor a secret that an issuer shares with others proves anything. */
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const toleranceSeconds = 30;

export type Claims = JWTPayload & { iss: string; jti: string; exp: number };

/** The error of an ID token that is not accepted. */
export const tokenRefused = (detail: string): AppError => new AppError("unauthorized", detail);

/** The claims of a token. Only its audience and its time are verified. Throws unauthorized, with the reason, if the token itself is wrong. */
export function readIdToken(ctx: Context, token: string, audience: string): Claims {
  const { decodeJwt, decodeProtectedHeader } = loadJose();
  let claims: JWTPayload;
  try {
    const { alg } = decodeProtectedHeader(token);
    if (!algorithms.includes(alg ?? ""))
      throw tokenRefused(
        "The ID token isn't signed with a public key. Send the ID token as the CI provider issued it.",
      );
    claims = decodeJwt(token);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw tokenRefused("The token is not an ID token. Send the ID token of the CI job.");
  }
  const { iss, aud, exp, iat, nbf, jti } = claims;
  // Times are in seconds. In milliseconds, they must still be exact.
  const isTime = (value: unknown): value is number =>
    typeof value === "number" && Math.abs(value) < Number.MAX_SAFE_INTEGER / 1000;
  const check = (claim: string, isValid: boolean): void => {
    if (!isValid) throw tokenRefused(`The ID token has no valid claim ${claim}. Request a new one.`);
  };
  check("iss", typeof iss === "string");
  check("jti", typeof jti === "string" && jti !== "");
  check("exp", isTime(exp));
  check("iat", isTime(iat));
  const now = ctx.now() / 1000;
  check("nbf", nbf === undefined || (isTime(nbf) && nbf <= now + toleranceSeconds));
  if ((exp as number) <= now - toleranceSeconds) throw tokenRefused("The ID token has expired. Request a new one.");
  const isForUs = [aud].flat().some((each) => each === audience || each === `${audience}/`);
  if (!isForUs)
    throw tokenRefused(
      `The ID token is for the audience ${JSON.stringify(aud)?.slice(0, 200)}. Request it for the audience ${audience}.`,
    );
  return claims as Claims;
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

/** Why `issuer` has not signed a token; null: it has. */
export async function findForgery(ctx: Context, token: string, issuer: string): Promise<string | null> {
  const options = { issuer, algorithms, currentDate: new Date(ctx.now()), clockTolerance: toleranceSeconds };
  const { createLocalJWKSet, errors, jwtVerify } = loadJose();
  const verify = async (keys: JSONWebKeySet | null): Promise<unknown> => {
    try {
      await jwtVerify(token, createLocalJWKSet(keys ?? { keys: [] }), options);
      return null;
    } catch (error) {
      // This covers not only errors of the library. With an unusable key of the issuer, the cryptography itself fails.
      return error;
    }
  };
  try {
    let failure = await verify(await issuerKeys(ctx).keysOf(issuer, { isKeyUnknown: false }));
    if (failure instanceof errors.JWKSNoMatchingKey) {
      const newKeys = await issuerKeys(ctx).keysOf(issuer, { isKeyUnknown: true });
      if (newKeys) failure = await verify(newKeys);
    }
    return failure === null ? null : `The issuer didn't sign the token: ${reasonOf(failure)}`;
  } catch (error) {
    if (error instanceof AppError && error.code === "unavailable") return error.detail;
    throw error;
  }
}
