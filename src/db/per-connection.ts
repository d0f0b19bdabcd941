import type { Database } from "bun:sqlite";

/** Computes a value once per connection, when it is first needed. */
export function perConnection<D extends { $client: Database }, T extends object>(make: (db: D) => T): (db: D) => T {
  const made = new WeakMap<Database, T>();
  return (db) => {
    const known = made.get(db.$client);
    if (known) return known;
    const value = make(db);
    made.set(db.$client, value);
    return value;
  };
}
