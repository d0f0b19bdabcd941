import type { Database } from "bun:sqlite";

/** Computes a value once per connection, when it is first needed. */
export function perConnection<D extends { $client: Database }, T extends object>(compute: (db: D) => T): (db: D) => T {
  const values = new WeakMap<Database, T>();
  return (db) => {
    const cached = values.get(db.$client);
    if (cached) return cached;
    const value = compute(db);
    values.set(db.$client, value);
    return value;
  };
}
