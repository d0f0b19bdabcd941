import type { Database } from "bun:sqlite";
import { closeDb, openDb, readMigrations } from "./open.ts";

type SchemaEntry = { type: string; name: string; sql: string | null };

// The statistics of the planner are left out, because SQLite adds and removes them itself.
const selectSchema =
  "select type, name, sql from sqlite_schema where not (type = 'table' and name in ('sqlite_stat1', 'sqlite_stat4'))";

/**
 * The tables, indexes, triggers and views of a database, such as `trigger t`, that are not as its own migrations create them: foreign, changed or
 * missing ones. All migrations of the database must be known.
 */
export function listForeignSchema(db: Database): string[] {
  const applied = db.query<{ hash: string }, []>("select hash from __drizzle_migrations").all();
  const hashes = new Set(applied.map(({ hash }) => hash));
  const created = openDb(":memory:", { migrations: readMigrations().filter(({ hash }) => hashes.has(hash)) });
  try {
    const keyOf = ({ type, name, sql }: SchemaEntry) => JSON.stringify([type, name, sql]);
    const read = (client: Database) =>
      new Map(
        client
          .query<SchemaEntry, []>(selectSchema)
          .all()
          .map((entry) => [keyOf(entry), entry]),
      );
    const [actual, expected] = [read(db), read(created.$client)];
    const differing = [...actual, ...expected].filter(([key]) => !(actual.has(key) && expected.has(key)));
    return [...new Set(differing.map(([, { type, name }]) => `${type} ${name}`))];
  } finally {
    closeDb(created);
  }
}
