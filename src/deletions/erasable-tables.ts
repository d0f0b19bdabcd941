import type { Db } from "../db/open.ts";
import { perConnection } from "../db/per-connection.ts";

/** A table, and the columns that say what its rows belong to. */
type ErasableTable = { name: string; columns: Set<string>; isIndexedByOrg: boolean };

/** Tables that store the deletions themselves, or outlive what was deleted. */
const neverErased = new Set(["deletions", "deleted_prompts", "deleted_orgs", "erased_slugs"]);

/**
 * The tables of a database in the order in which rows are erased: each table comes before the tables that it refers to. They are read from the
 * schema, so that a new table is erased too. If a table is not indexed by the organization, its rows belong to a run, a report or a delivery.
 */
export const erasableTables = perConnection(({ $client }: Db): ErasableTable[] => {
  // Tables of migrations have two underscores in their names.
  const names = $client
    .query<{ name: string }, []>(
      "select name from sqlite_master where type = 'table' and name not like '%\\_\\_%' escape '\\' and name not like 'sqlite%'",
    )
    .all()
    .map(({ name }) => name)
    .filter((name) => !neverErased.has(name));
  const parentsOf = (name: string) =>
    $client
      .query<{ table: string }, []>(`pragma foreign_key_list("${name}")`)
      .all()
      .map(({ table }) => table);
  const sorted: string[] = [];
  const addAfterChildren = (name: string) => {
    if (sorted.includes(name)) return;
    for (const child of names) if (child !== name && parentsOf(child).includes(name)) addAfterChildren(child);
    sorted.push(name);
  };
  for (const name of names) addAfterChildren(name);
  const isIndexedByOrg = (name: string) =>
    $client
      .query<{ name: string }, [string]>("select name from pragma_index_list(?) where partial = 0")
      .all(name)
      .some((index) => {
        const first = $client.query<{ name: string }, [string]>(
          "select name from pragma_index_info(?) where seqno = 0",
        );
        return first.get(index.name)?.name === "org_id";
      });
  return sorted.map((name) => ({
    name,
    isIndexedByOrg: isIndexedByOrg(name),
    columns: new Set(
      $client
        .query<{ name: string }, []>(`pragma table_info("${name}")`)
        .all()
        .map((column) => column.name),
    ),
  }));
});
