import { eq, gt, lt, or } from "drizzle-orm";
import type { Context } from "../context.ts";
import { transaction } from "../db/open.ts";
import { signInFailures } from "../db/tables/people.ts";
import { AppError } from "../errors.ts";
import { isLoopback, networkOf } from "./address.ts";

const windowMs = 15 * 60_000;
const maxPerAccount = 10;
const maxPerNetwork = 50;

/** Counts an attempt before it is made, so that concurrent attempts count too. Throws rate_limited. */
export function countSignInAttempt(ctx: Context, account: string, address: string): void {
  transaction(ctx.db, (tx) => {
    const now = ctx.now();
    tx.delete(signInFailures)
      // Rows with a future time are from before the clock was set back.
      .where(or(lt(signInFailures.since, now - windowMs), gt(signInFailures.since, now)))
      .run();
    for (const { key, limit } of keysOf(account, address)) {
      const row = tx.select().from(signInFailures).where(eq(signInFailures.key, key)).get();
      const { count, since } = row ?? { count: 0, since: now };
      if (count >= limit)
        throw new AppError(
          "rate_limited",
          "Too many failed sign-in attempts. Wait 15 minutes, or ask an owner for a password reset link.",
          { retryAfterSeconds: Math.max(1, Math.ceil((since + windowMs - now) / 1000)) },
        );
      tx.insert(signInFailures)
        .values({ key, count: 1, since: now })
        .onConflictDoUpdate({ target: signInFailures.key, set: { count: count + 1 } })
        .run();
    }
  });
}

/** Uncounts an attempt that succeeded. */
export function uncountSignInAttempt(ctx: Context, account: string, address: string): void {
  transaction(ctx.db, (tx) => {
    const [accountKey, networkKey] = keysOf(account, address);
    if (accountKey) tx.delete(signInFailures).where(eq(signInFailures.key, accountKey.key)).run();
    if (!networkKey) return;
    const row = tx.select().from(signInFailures).where(eq(signInFailures.key, networkKey.key)).get();
    if (row)
      tx.update(signInFailures)
        .set({ count: Math.max(0, row.count - 1) })
        .where(eq(signInFailures.key, networkKey.key))
        .run();
  });
}

// Hashed, since people may type their password into the email field.
const keysOf = (account: string, address: string) => [
  { key: `account ${new Bun.CryptoHasher("sha256").update(account).digest("base64url")}`, limit: maxPerAccount },
  // Behind a proxy that doesn't forward addresses, all clients have this address, and nobody may lock out everybody.
  ...(isLoopback(address) ? [] : [{ key: `network ${networkOf(address)}`, limit: maxPerNetwork }]),
];
