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
