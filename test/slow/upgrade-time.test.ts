import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { closeDb, openDb, readMigrations } from "../../src/db/open.ts";
import { seed } from "../bench/seed.ts";
import { emptyFolder } from "../support/executable.ts";

const runCount = 100_000;

test("a database with 100,000 runs gets a new index and its statistics", () => {
  const folder = emptyFolder();
  seed(folder, runCount);
  const later = {
    ...{ hash: "later", folderMillis: 9_000_000_000_000 },
    sql: ["create index runs_later on runs (org_id, agent_version)"],
  };
  const start = performance.now();
  const db = openDb(folder, { migrations: [...readMigrations(), later] });
  console.log(`a migration over ${runCount} runs: ${Math.round(performance.now() - start)} ms`);
  const { n } = db.$client.query("select count(*) n from runs").get() as { n: number };
  expect(n).toBe(runCount);
  const analyzed = db.$client.query("select stat from sqlite_stat1 where idx = 'runs_later'").all();
  expect(analyzed).toHaveLength(1);
  closeDb(db);
  rmSync(folder, { recursive: true });
});
