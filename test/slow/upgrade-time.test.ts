import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { closeDb, openDb, readMigrations } from "../../src/db/open.ts";
import { emptyFolder } from "../support/executable.ts";
import { firstRelease } from "../support/first-release.ts";

const runCount = 100_000;

test("a database of the first release with 100,000 runs is upgraded", async () => {
  const folder = emptyFolder();
  const client = new Database(join(folder, "evald.db"), { create: true });
  client.run(await Bun.file(firstRelease).text());
  const columns = (table: string) =>
    client
      .query<{ name: string }, []>(`select name from pragma_table_info('${table}')`)
      .all()
      .map(({ name }) => name);
  /** Copies the rows of a table with new IDs until there are enough runs. */
  const multiply = (table: string, fresh: string[]) => {
    const names = columns(table);
    const values = names.map((name) => (fresh.includes(name) ? `${name} || '-' || n` : `"${name}"`));
    client.run(
      `with recursive copies(n) as (select 1 union all select n + 1 from copies where n < ?)
       insert into "${table}" select ${values.join(", ")} from copies cross join (select * from "${table}" where ${table === "runs" ? "completed_at is not null" : "true"} limit 1)`,
      [runCount],
    );
  };
  client.run("pragma foreign_keys = off");
  multiply("eval_requests", ["id"]);
  multiply("runs", ["id", "idempotency_key"]);
  multiply("reports", ["id", "run_id", "slug"]);
  client.close();

  const start = performance.now();
  closeDb(openDb(folder));
  const ms = performance.now() - start;
  console.log(`${readMigrations().length - 1} migrations over ${runCount} runs: ${Math.round(ms)} ms`);
  const upgraded = new Database(join(folder, "evald.db"));
  expect(upgraded.query<{ n: number }, []>("select count(*) n from runs").get()?.n).toBeGreaterThan(runCount);
  upgraded.close();
  rmSync(folder, { recursive: true });
});
