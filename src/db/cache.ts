import type { Db } from "./open.ts";
import { perConnection } from "./per-connection.ts";

/** How long writes of another process may go unnoticed, in milliseconds: looking for them takes as long as a small query. */
const checkIntervalMs = 1;
/** The same for values that are read with every request and that hardly any other process changes. */
const rareCheckIntervalMs = 5;

/** Returns a number that changes with every write of another connection, within `intervalMs` milliseconds. */
const versionOf = perConnection(({ $client: client }: Db) => {
  const otherWrites = client.prepare<{ data_version: number }, []>("pragma data_version");
  let version: number | undefined;
  let checkedAt = Number.NEGATIVE_INFINITY;
  return (intervalMs: number) => {
    if (performance.now() - checkedAt >= intervalMs) {
      version = otherWrites.get()?.data_version;
      checkedAt = performance.now();
    }
    return version;
  };
});

const ownWrites = perConnection(({ $client }: Db) => $client.prepare<{ n: number }, []>("select total_changes() n"));

/** Returns a text that changes with every write: by this connection immediately, by another within a millisecond. */
export const changeMark = (db: Db): string => `${ownWrites(db).get()?.n} ${versionOf(db)(checkIntervalMs)}`;

/**
 * Caches up to `maxValues` values computed from the database until it changes, by any process. Cached values are shared:
 * do not modify them. undefined is never cached.
 */
export const createCache = <T>(db: Db, maxValues: number) => createMarkedCache<T>(db, maxValues, () => changeMark(db));

/**
 * Like `createCache`, but writes of this process leave the values unless it calls `forget`. Writes of another process are noticed within
 * 5 milliseconds.
 */
export function createForgettableCache<T>(db: Db, maxValues: number) {
  let writes = 0;
  return {
    get: createMarkedCache<T | undefined>(db, maxValues, () => `${writes} ${versionOf(db)(rareCheckIntervalMs)}`),
    forget: (): void => void writes++,
  };
}

function createMarkedCache<T>(db: Db, maxValues: number, readMark: () => string): (key: string, compute: () => T) => T {
  const values = new Map<string, T>();
  let lastMark = "";
  return (key, compute) => {
    // A transaction may still be rolled back.
    if (db.$client.inTransaction) return compute();
    const mark = readMark();
    if (mark !== lastMark) values.clear();
    lastMark = mark;
    const cached = values.get(key);
    if (cached !== undefined) return cached;
    const value = compute();
    if (value === undefined) return value;
    if (values.size >= maxValues) values.clear();
    values.set(key, value);
    return value;
  };
}

/** Results over many reports to keep per database. The largest take some 100 KB. */
const maxShared = 100;

const sharedCache = perConnection((db: Db) => createCache<unknown>(db, maxShared));

/**
 * A result that is computed from the database, and computed again only once the database has changed. `key`: everything else that it
 * depends on. The result is shared: do not modify it.
 */
export function cachedResult<T>(db: Db, key: readonly unknown[], compute: () => T): T {
  return sharedCache(db)(JSON.stringify(key), compute) as T;
}
