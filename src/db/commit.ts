import { AsyncLocalStorage } from "node:async_hooks";
import { isBusy } from "./fault.ts";
import { type Db, refusePromise, type Tx, transaction } from "./open.ts";
import { maxWaitMs, untilUnlocked, withoutWaiting } from "./write-lock.ts";

/** Runs `work` in a durable transaction, possibly shared with others, and resolves once it is on disk. Throws what `work` throws. */
export type Commit = <T>(work: (tx: Tx) => T) => Promise<T>;

type PendingWork = { work: (tx: Tx) => unknown; resolve: (value: unknown) => void; reject: (error: unknown) => void };

/**
 * A caller that was alone in its turn of the event loop is probably alone in the next one too. So for this long, callers are committed at once,
 * because waiting for the end of the turn would make a commit a tenth slower. A commit to a slow disk takes longer than this, so there all callers
 * wait and share.
 */
const aloneMs = 2;

/**
 * Group commit: all callers of one turn of the event loop share one transaction, and so wait for one disk write together. The `work` of each caller
 * has its own savepoint, so an error rolls back only that work. A failed commit fails all callers. While another process is writing, they wait up to
 * 5 seconds without blocking this thread.
 */
export function createCommit(db: Db): Commit {
  let pending: PendingWork[] = [];
  /** When another process was first found writing, by the monotonic clock. */
  let lockedSince: number | null = null;
  /** Until when a caller doesn't wait for the end of its turn, by the monotonic clock. */
  let aloneUntil = 0;
  const client = db.$client;
  const savepoint = client.query("savepoint work");
  const release = client.query("release work");
  const rollback = client.query("rollback to work");

  /** Returns what to call once the transaction is on disk. */
  function runInSavepoint({ work, resolve, reject }: PendingWork, tx: Tx): () => void {
    savepoint.run();
    try {
      const value = refusePromise(work(tx));
      release.run();
      return () => resolve(value);
    } catch (error) {
      // On a full or failing disk SQLite rolls back the whole transaction itself.
      if (!client.inTransaction) throw error;
      rollback.run();
      release.run();
      return () => reject(error);
    }
  }

  function commitAll(): void {
    const batch = pending;
    pending = [];
    try {
      const [onlyWork] = batch;
      if (onlyWork && batch.length === 1) onlyWork.resolve(withoutWaiting(db, () => transaction(db, onlyWork.work)));
      else {
        const runAll = (tx: Tx) => batch.map((each) => runInSavepoint(each, tx));
        for (const settle of withoutWaiting(db, () => transaction(db, runAll))) settle();
      }
      lockedSince = null;
    } catch (error) {
      const now = performance.now();
      lockedSince ??= now;
      if (isBusy(error) && now - lockedSince < maxWaitMs) {
        pending = [...batch, ...pending];
        void untilUnlocked(db).then(commitAll);
        return;
      }
      lockedSince = null;
      for (const { reject } of batch) reject(error);
    }
  }

  function endTurn(): void {
    if (pending.length === 1) aloneUntil = performance.now() + aloneMs;
    commitAll();
  }

  return <T>(work: (tx: Tx) => T) =>
    new Promise<T>((resolve, reject) => {
      if (pending.length === 0) {
        if (performance.now() < aloneUntil) queueMicrotask(commitAll);
        else setImmediate(endTurn);
      }
      // Callers may belong to different requests; the work of each still runs as a part of its own.
      pending.push({ work: AsyncLocalStorage.bind(work), resolve: resolve as PendingWork["resolve"], reject });
    });
}
