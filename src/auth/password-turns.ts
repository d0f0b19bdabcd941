import { availableParallelism } from "node:os";
import { type Context, perContext } from "../context.ts";
import { AppError } from "../errors.ts";
import { networkOf } from "../http/address.ts";
import { createFairQueue } from "../http/fair-queue.ts";

/**
 * How many passwords are hashed or verified at the same time. Each occupies a core for a tenth of a second. It also occupies a thread that
 * compression and signatures need.
 */
const maxAtOnce = Math.max(1, Math.min(4, availableParallelism() - 1));
/** Maximum waiting clients of one network, and of all networks together. They are five and thirty seconds of work for one core. */
const maxWaitingOfNetwork = 50;
const maxWaiting = 300;

const turnsOfPasswords = perContext(() => ({
  queue: createFairQueue<() => void>(maxWaitingOfNetwork, maxWaiting),
  free: maxAtOnce,
}));

/** Runs work with a password when it is the turn of the client's network. Throws rate_limited if too many clients of the network wait. */
export async function withPasswordTurn<T>(ctx: Context, address: string, work: () => Promise<T>): Promise<T> {
  const turns = turnsOfPasswords(ctx);
  if (turns.free > 0) turns.free--;
  else {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (!turns.queue.add({ group: "", member: networkOf(address) }, resolve))
      throw new AppError("rate_limited", "Too many people are signing in at the same time. Try again in a moment.", {
        retryAfterSeconds: 5,
      });
    await promise;
  }
  try {
    return await work();
  } finally {
    const next = turns.queue.take();
    if (next) next();
    else turns.free++;
  }
}
