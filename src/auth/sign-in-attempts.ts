import { eq, gt, lt, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import { transaction } from "../db/open.ts";
import { signInFailures } from "../db/tables/people.ts";
import { AppError } from "../errors.ts";
import { isLoopback, networkOf } from "../http/address.ts";

const windowMs = 15 * 60_000;
const maxPerAccount = 10;
const maxPerNetwork = 50;

const signInRemedy = "Too many failed sign-in attempts. Wait 15 minutes, or ask an owner for a password reset link.";

/** Counts a sign-in before it is attempted, so that concurrent attempts count too. Throws rate_limited. */
export const countSignInAttempt = (ctx: Context, account: string, address: string): void =>
  countAttempt(ctx, [accountLimit(account), ...networkLimits("network", address)], signInRemedy);

/** Resets the failures of an account after a successful sign-in. The attempt no longer counts against its network. */
export const recordSignInSuccess = (ctx: Context, account: string, address: string): void =>
  recordSuccess(ctx, accountLimit(account), address);

/** Counts a code of a person's second factor before it is checked. A correct password doesn't reset this count. Throws rate_limited. */
export const countCodeAttempt = (ctx: Context, personId: string, address: string): void =>
  countAttempt(
    ctx,
    [codeLimit(personId), ...networkLimits("network", address)],
    "Too many incorrect codes. Wait 15 minutes.",
  );

/** Resets a person's count of incorrect codes. The attempt no longer counts against its network. */
export const recordCodeSuccess = (ctx: Context, personId: string, address: string): void =>
  recordSuccess(ctx, codeLimit(personId), address);

/** Counts a sign-in with a passkey before it is attempted. Nobody can guess a passkey, but each attempt stores a challenge. Throws rate_limited. */
export const countPasskeyAttempt = (ctx: Context, address: string): void =>
  countAttempt(ctx, networkLimits("passkey", address), "Too many attempts from this network. Wait 15 minutes.");

/** Takes back the count of a passkey sign-in, because it succeeded. */
export const recordPasskeySuccess = (ctx: Context, address: string): void =>
  subtractAttempt(ctx, networkLimits("passkey", address));

/** Counts an exchange of an ID token before it is attempted. Throws rate_limited. */
export const countExchangeAttempt = (ctx: Context, address: string): void =>
  countAttempt(
    ctx,
    networkLimits("exchange", address),
    "Too many ID tokens from this network were refused. Wait 15 minutes.",
  );

/** Takes back the count of an exchange, because it succeeded. */
export const recordExchangeSuccess = (ctx: Context, address: string): void =>
  subtractAttempt(ctx, networkLimits("exchange", address));

type Limit = { key: string; limit: number };

/** Counts an attempt for each limit. If a limit is already reached, it throws rate_limited with `detail` instead. */
function countAttempt(ctx: Context, limits: Limit[], detail: string): void {
  if (limits.length === 0) return;
  // In proven time, so that attempts still count if the clock jumps forward.
  const now = ctx.provenTime.now();
  const fullSince = transaction(ctx.db, (tx) => {
    tx.delete(signInFailures)
      .where(lt(signInFailures.since, now - windowMs))
      .run();
    // These attempts are from before the clock was set back.
    tx.update(signInFailures).set({ since: now }).where(gt(signInFailures.since, now)).run();
    for (const { key, limit } of limits) {
      const row = tx.select().from(signInFailures).where(eq(signInFailures.key, key)).get();
      if (row && row.count >= limit) return row.since;
    }
    for (const { key } of limits)
      tx.insert(signInFailures)
        .values({ key, count: 1, since: now })
        .onConflictDoUpdate({ target: signInFailures.key, set: { count: sql`${signInFailures.count} + 1` } })
        .run();
    return null;
  });
  if (fullSince !== null)
    throw new AppError("rate_limited", detail, {
      retryAfterSeconds: Math.max(1, Math.ceil((fullSince + windowMs - now) / 1000)),
    });
}

function recordSuccess(ctx: Context, { key }: Limit, address: string): void {
  transaction(ctx.db, (tx) => {
    tx.delete(signInFailures).where(eq(signInFailures.key, key)).run();
    subtractAttempt(ctx, networkLimits("network", address));
  });
}

function subtractAttempt(ctx: Context, limits: Limit[]): void {
  for (const { key } of limits)
    ctx.db
      .update(signInFailures)
      .set({ count: sql`max(0, ${signInFailures.count} - 1)` })
      .where(eq(signInFailures.key, key))
      .run();
}

/** The account is hashed, because people may type their password into the email field. */
const accountLimit = (account: string): Limit => ({
  key: `account ${new Bun.CryptoHasher("sha256").update(account).digest("base64url")}`,
  limit: maxPerAccount,
});

const codeLimit = (personId: string): Limit => ({ key: `code ${personId}`, limit: maxPerAccount });

/** Loopback has no limit. Behind a proxy that doesn't forward addresses, all clients have a loopback address, and nobody may lock out everybody. */
const networkLimits = (what: "network" | "exchange" | "passkey", address: string): Limit[] =>
  isLoopback(address) ? [] : [{ key: `${what} ${networkOf(address)}`, limit: maxPerNetwork }];
