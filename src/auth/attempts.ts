import { eq, lt } from "drizzle-orm";
import { tx } from "../db/open.ts";
import { signInFailures } from "../db/tables.ts";
import type { Deps } from "../deps.ts";
import { AppError } from "../errors.ts";
import { networkOf } from "./address.ts";

const windowMs = 15 * 60_000;
const perAccount = 10;
const perNetwork = 50;

export type Attempts = ReturnType<typeof createAttempts>;

/** Bounds how often a password can be guessed, for an account and for a network. Kept in the database: a restart forgets nothing. */
export function createAttempts({ db, now }: Pick<Deps, "db" | "now">) {
  // What is typed as an address may be anything, a password too.
  const keysOf = (account: string, address: string) => [
    { key: `account ${new Bun.CryptoHasher("sha256").update(account).digest("base64url")}`, limit: perAccount },
    { key: `network ${networkOf(address)}`, limit: perNetwork },
  ];

  return {
    /** Counts a try before it is made, so that tries at once count as well. Throws rate_limited. */
    begin(account: string, address: string): void {
      tx(db, (t) => {
        const at = now();
        t.delete(signInFailures)
          .where(lt(signInFailures.since, at - windowMs))
          .run();
        for (const { key, limit } of keysOf(account, address)) {
          const found = t.select().from(signInFailures).where(eq(signInFailures.key, key)).get();
          const { count, since } = found ?? { count: 0, since: at };
          if (count >= limit)
            throw new AppError(
              "rate_limited",
              "there were too many tries that failed; wait a quarter of an hour, or ask an owner for a new password",
              Math.max(1, Math.ceil((since + windowMs - at) / 1000)),
            );
          t.insert(signInFailures)
            .values({ key, count: 1, since: at })
            .onConflictDoUpdate({ target: signInFailures.key, set: { count: count + 1 } })
            .run();
        }
      });
    },

    /** The try was right: it is not held against anyone. */
    succeed(account: string, address: string): void {
      tx(db, (t) => {
        const [own, network] = keysOf(account, address);
        if (own) t.delete(signInFailures).where(eq(signInFailures.key, own.key)).run();
        if (!network) return;
        const found = t.select().from(signInFailures).where(eq(signInFailures.key, network.key)).get();
        if (found)
          t.update(signInFailures)
            .set({ count: Math.max(0, found.count - 1) })
            .where(eq(signInFailures.key, network.key))
            .run();
      });
    },
  };
}
