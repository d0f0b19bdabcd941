import type { Db } from "./open.ts";
import { perConnection } from "./per-connection.ts";

/** How long writes of another process may go unnoticed, in milliseconds: looking for them takes as long as a small query. */
const lookEveryMs = 1;
/** The same for values that are read with every request and that hardly any other process changes. */
const lookRarelyMs = 5;

/** Returns a number that changes with every write of another connection, within `everyMs` milliseconds. */
const versionOf = perConnection(({ $client: client }: Db) => {
  const others = client.prepare<{ data_version: number }, []>("pragma data_version");
  let version: number | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  return (everyMs: number) => {
    if (performance.now() - lookedAt >= everyMs) {
      version = others.get()?.data_version;
      lookedAt = performance.now();
    }
    return version;
  };
});

const changesOf = perConnection(({ $client }: Db) => $client.prepare<{ n: number }, []>("select total_changes() n"));

/** Returns a text that changes with every write: by this connection immediately, by another within a millisecond. */
export const changeMark = (db: Db): string => `${changesOf(db).get()?.n} ${versionOf(db)(lookEveryMs)}`;

/**
 * Caches up to `most` values computed from the database until it changes, by any process. Cached values are shared:
 * do not modify them. undefined is never cached.
 */
export const keptWhileUnchanged = <T>(db: Db, most: number) => keptWhileSame<T>(db, most, () => changeMark(db));

/**
 * Like `keptWhileUnchanged`, but writes of this process leave the values unless it calls `forget`. Writes of another process are noticed within
 * 5 milliseconds.
 */
export function keptUntilForgotten<T>(db: Db, most: number) {
  let writes = 0;
  return {
    keep: keptWhileSame<T | undefined>(db, most, () => `${writes} ${versionOf(db)(lookRarelyMs)}`),
    forget: (): void => void writes++,
  };
}

function keptWhileSame<T>(db: Db, most: number, markNow: () => string): (key: string, make: () => T) => T {
  const kept = new Map<string, T>();
  let mark = "";
  return (key, make) => {
    // A transaction may still be rolled back.
    if (db.$client.inTransaction) return make();
    const now = markNow();
    if (now !== mark) kept.clear();
    mark = now;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const made = make();
    if (made === undefined) return made;
    if (kept.size >= most) kept.clear();
    kept.set(key, made);
    return made;
  };
}

/** Results over many reports to keep per database. The largest take some 100 KB. */
const mostShared = 100;

const sharedOf = perConnection((db: Db) => keptWhileUnchanged<unknown>(db, mostShared));

/**
 * A result that is computed from the database, and computed again only once the database has changed. `question`: everything else that it
 * depends on. The result is shared: do not modify it.
 */
export function whileUnchanged<T>(db: Db, question: readonly unknown[], make: () => T): T {
  return sharedOf(db)(JSON.stringify(question), make) as T;
}
