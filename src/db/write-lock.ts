import type { Database } from "bun:sqlite";
import { isBusy } from "./fault.ts";

type Db = { $client: Database };

/** How long a write waits for another process that is writing, in milliseconds. */
export const maxWaitMs = 5_000;
const retryMs = 20;
/** How long this thread may be blocked at a time. This allows a few tries if another process often writes for a moment. */
const blockMs = 10;

/** Runs transactions that throw SQLITE_BUSY after 10 milliseconds, instead of blocking this thread while another process is writing. */
export function withoutWaiting<T>(db: Db, work: () => T): T {
  const client = db.$client;
  // The statement is not prepared, because SQLite sets a timeout when it compiles it: the first run of a prepared one
  // would set none.
  client.run(`pragma busy_timeout = ${blockMs}`);
  try {
    return work();
  } finally {
    client.run(`pragma busy_timeout = ${maxWaitMs}`);
  }
}

/** Whether another process is writing at this moment. */
export function isLocked(db: Db): boolean {
  const client = db.$client;
  if (client.inTransaction) return false;
  try {
    withoutWaiting(db, () => client.query("begin immediate").run());
    client.query("rollback").run();
    return false;
  } catch (error) {
    // Any other error, such as of a full disk, is reported by the write itself.
    return isBusy(error);
  }
}

const waits = new WeakMap<Database, Promise<boolean>>();

/** Resolves with true when no other process is writing, with false after 5 seconds. In the meantime, this thread does other work. */
export function untilUnlocked(db: Db): Promise<boolean> {
  const current = waits.get(db.$client);
  if (current) return current;
  if (!isLocked(db)) return Promise.resolve(true);
  const wait = async () => {
    const startedAt = performance.now();
    let isFree = false;
    while (!isFree && performance.now() - startedAt < maxWaitMs) {
      await Bun.sleep(retryMs);
      isFree = !isLocked(db);
    }
    waits.delete(db.$client);
    return isFree;
  };
  const promise = wait();
  waits.set(db.$client, promise);
  return promise;
}
