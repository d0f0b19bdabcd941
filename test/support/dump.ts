import type { Database } from "bun:sqlite";

const quoted = (value: unknown): string => {
  if (value === null) return "NULL";
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (value instanceof Uint8Array) return `X'${Buffer.from(value).toString("hex")}'`;
  return `'${String(value).replaceAll("'", "''")}'`;
};

type Schema = { type: string; name: string; sql: string };

/** A database as SQL that recreates it: tables, their rows, then views, indexes and triggers, so that no trigger counts a row twice. */
export function dumpDatabase(client: Database): string {
  const schema = client
    .query<Schema, []>("select type, name, sql from sqlite_master where sql is not null and name not like 'sqlite_%'")
    .all();
  const of = (type: string) => schema.filter((each) => each.type === type).map(({ sql }) => `${sql};`);
  const rows = schema
    .filter(({ type }) => type === "table")
    .flatMap(({ name }) =>
      client
        .query(`select * from "${name}"`)
        .values()
        .map((row) => `insert into "${name}" values (${row.map(quoted).join(", ")});`),
    );
  return ["begin;", ...of("table"), ...rows, ...of("view"), ...of("index"), ...of("trigger"), "commit;", ""].join("\n");
}
