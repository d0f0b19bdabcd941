import type { Db } from "./open.ts";

/**
 * Caches up to `most` values computed from the database until it changes, by any process. Cached values are shared:
 * do not modify them.
 */
export function keptWhileUnchanged<T>({ $client }: Db, most: number): (key: string, make: () => T) => T {
  const own = $client.prepare<{ n: number }, []>("select total_changes() n");
  const others = $client.prepare<{ data_version: number }, []>("pragma data_version");
  const kept = new Map<string, T>();
  let stamp = "";
  return (key, make) => {
    // A transaction may still be rolled back.
    if ($client.inTransaction) return make();
    const now = `${own.get()?.n} ${others.get()?.data_version}`;
    if (now !== stamp) kept.clear();
    stamp = now;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const made = make();
    if (kept.size >= most) kept.clear();
    kept.set(key, made);
    return made;
  };
}

const shared = new WeakMap<Db["$client"], (key: string, make: () => unknown) => unknown>();

/** Results over many reports to keep per database. The largest take some 100 KB. */
const mostShared = 100;

/**
 * A result that is computed from the database, and computed again only once the database has changed. `question`: all that it depends on
 * besides the database. The result is shared: do not modify it.
 */
export function whileUnchanged<T>(db: Db, question: readonly unknown[], make: () => T): T {
  const kept = shared.get(db.$client) ?? keptWhileUnchanged<unknown>(db, mostShared);
  shared.set(db.$client, kept);
  return kept(JSON.stringify(question), make) as T;
}
