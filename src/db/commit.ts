import { type Db, refusePromise, type Tx, tx } from "./open.ts";

/** Does `work` in a durable transaction, which it may share with others, and answers once that is on the disk. Throws what `work` throws. */
export type Commit = <T>(work: (tx: Tx) => T) => Promise<T>;

type Waiting = { work: (tx: Tx) => unknown; resolve: (value: unknown) => void; reject: (error: unknown) => void };

/**
 * Group commit: what is asked for in one turn of the event loop becomes one transaction, so that many callers wait for one write to the disk
 * instead of one each. Each work stands in a savepoint of its own: a throw undoes it alone. A commit that fails fails for all.
 */
export function createCommit(db: Db): Commit {
  let waiting: Waiting[] = [];
  const client = db.$client;
  const savepoint = client.query("savepoint work");
  const release = client.query("release work");
  const rollback = client.query("rollback to work");

  /** What is to be told to the caller once the transaction is on the disk. */
  function attempt({ work, resolve, reject }: Waiting, t: Tx): () => void {
    savepoint.run();
    try {
      const value = refusePromise(work(t));
      release.run();
      return () => resolve(value);
    } catch (error) {
      // A disk that fails or is full makes SQLite undo the whole transaction by itself.
      if (!client.inTransaction) throw error;
      rollback.run();
      release.run();
      return () => reject(error);
    }
  }

  function commitAll(): void {
    const batch = waiting;
    waiting = [];
    try {
      const [only] = batch;
      if (only && batch.length === 1) only.resolve(tx(db, only.work));
      else for (const answer of tx(db, (t) => batch.map((each) => attempt(each, t)))) answer();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  return <T>(work: (tx: Tx) => T) =>
    new Promise<T>((resolve, reject) => {
      if (waiting.length === 0) setImmediate(commitAll);
      waiting.push({ work, resolve: resolve as Waiting["resolve"], reject });
    });
}
