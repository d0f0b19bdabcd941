import type { Db } from "./open.ts";

/**
 * Keeps what was worked out from the database as long as nothing in it has changed, whoever changed it; at most `most` things. What it gives
 * belongs to everyone who asks: it must not be changed.
 */
export function keptWhileUnchanged<T>({ $client }: Db, most: number): (key: string, make: () => T) => T {
  const own = $client.prepare<{ n: number }, []>("select total_changes() n");
  const others = $client.prepare<{ data_version: number }, []>("pragma data_version");
  const kept = new Map<string, T>();
  let stamp = "";
  return (key, make) => {
    // What a transaction has written may be taken back.
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
