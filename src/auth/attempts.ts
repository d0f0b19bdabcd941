import { eq, gt, lt, or } from "drizzle-orm";
import type { Context } from "../context.ts";
import { transaction } from "../db/open.ts";
import { signInFailures } from "../db/tables/people.ts";
import { AppError } from "../errors.ts";
import { isLoopback, networkOf } from "./address.ts";

const windowMs = 15 * 60_000;
const perAccount = 10;
const perNetwork = 50;

/** Counts an attempt before it is made, so that concurrent attempts count too. Throws rate_limited. */
export function countSignInAttempt(ctx: Context, account: string, address: string): void {
  transaction(ctx.db, (tx) => {
    const at = ctx.now();
    tx.delete(signInFailures)
      // Rows with a future time are from before the clock was set back.
      .where(or(lt(signInFailures.since, at - windowMs), gt(signInFailures.since, at)))
      .run();
    for (const { key, limit } of keysOf(account, address)) {
      const row = tx.select().from(signInFailures).where(eq(signInFailures.key, key)).get();
      const { count, since } = row ?? { count: 0, since: at };
      if (count >= limit)
        throw new AppError(
          "rate_limited",
          "Too many failed sign-in attempts. Wait 15 minutes, or ask an owner for a password reset link.",
          { retryAfterSeconds: Math.max(1, Math.ceil((since + windowMs - at) / 1000)) },
        );
      tx.insert(signInFailures)
        .values({ key, count: 1, since: at })
        .onConflictDoUpdate({ target: signInFailures.key, set: { count: count + 1 } })
        .run();
    }
  });
}

/** Uncounts an attempt that succeeded. */
export function uncountSignInAttempt(ctx: Context, account: string, address: string): void {
  transaction(ctx.db, (tx) => {
    const [own, network] = keysOf(account, address);
    if (own) tx.delete(signInFailures).where(eq(signInFailures.key, own.key)).run();
    if (!network) return;
    const row = tx.select().from(signInFailures).where(eq(signInFailures.key, network.key)).get();
    if (row)
      tx.update(signInFailures)
        .set({ count: Math.max(0, row.count - 1) })
        .where(eq(signInFailures.key, network.key))
        .run();
  });
}

// Hashed, since people may type their password into the email field.
const keysOf = (account: string, address: string) => [
  { key: `account ${new Bun.CryptoHasher("sha256").update(account).digest("base64url")}`, limit: perAccount },
  // Behind a proxy that doesn't forward addresses, all clients have this address, and nobody may lock out everybody.
  ...(isLoopback(address) ? [] : [{ key: `network ${networkOf(address)}`, limit: perNetwork }]),
];
