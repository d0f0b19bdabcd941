import { expect, test } from "bun:test";
import { readdirSync, rmSync } from "node:fs";
import { openData } from "../../src/cli/data-directory.ts";
import { closeDb, readMigrations } from "../../src/db/open.ts";
import { seed } from "../bench/seed.ts";
import { emptyFolder } from "../support/executable.ts";

const runCount = 100_000;
const maxMs = 60_000;

test("a database with 100,000 runs is backed up, and gets a new table, a new index and its statistics, within a minute", () => {
  const folder = emptyFolder();
  seed(folder, runCount);
  // How SQLite changes a table in other ways than by a new column.
  const copyTable = ["create table runs_copy as select * from runs", "drop table runs_copy"];
  const later = {
    ...{ hash: "later", folderMillis: 9_000_000_000_000 },
    sql: [...copyTable, "create index runs_later on runs (org_id, agent_version)"],
  };
  const steps: number[] = [];
  const start = performance.now();
  const db = openData(folder, {
    migrations: [...readMigrations(), later],
    onProgress: ({ done }) => void steps.push(done),
  });
  const ms = Math.round(performance.now() - start);
  console.log(`an upgrade of ${runCount} runs: ${ms} ms`);
  expect(ms).toBeLessThan(maxMs);
  expect(steps).toEqual([1, 2, 3]);
  expect(readdirSync(folder).filter((name) => name.includes("before-upgrade"))).toHaveLength(1);
  const { n } = db.$client.query("select count(*) n from runs").get() as { n: number };
  expect(n).toBe(runCount);
  const analyzed = db.$client.query("select stat from sqlite_stat1 where idx = 'runs_later'").all();
  expect(analyzed).toHaveLength(1);
  closeDb(db);
  rmSync(folder, { recursive: true });
});
