import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { migrate } from "drizzle-orm/bun-sqlite/migrator";
import { openDb } from "../src/db/open.ts";
import { testApp } from "./support/app.ts";

const migrations = join(import.meta.dir, "..", "drizzle");

/** A database as the version with so many migrations left it. */
async function oldDatabase(steps: number): Promise<{ folder: string; client: Database }> {
  const folder = mkdtempSync(join(tmpdir(), "evald-upgrade-"));
  const old = join(folder, "migrations");
  cpSync(migrations, old, { recursive: true });
  const journal = await Bun.file(join(old, "meta", "_journal.json")).json();
  await Bun.write(
    join(old, "meta", "_journal.json"),
    JSON.stringify({ ...journal, entries: journal.entries.slice(0, steps) }),
  );
  const client = new Database(join(folder, "evald.db"), { create: true });
  migrate(drizzle({ client }), { migrationsFolder: old });
  client.run("pragma foreign_keys = on");
  return { folder, client };
}

test("runs that an older version accepted, began and finished are whole after the upgrade, and the unfinished ones run", async () => {
  const { folder, client } = await oldDatabase(2);
  const task = {
    title: null,
    text: "See https://docs.test/",
    endGoal: null,
    startUrls: ["https://docs.test/"],
    declaredChecks: [],
    reviewBeforePublishing: false,
  };
  const id = (n: number) => `0199f3a2-11b0-7c64-8a0e-00000000000${n}`;
  client.run("insert into orgs values (?, 'Old', 'UTC', 1)", [id(0)]);
  client.run(
    "insert into prompts (id, org_id, text, status, frequency, review_before_publishing, created_at) values (?, ?, 'See https://docs.test/', 'active', 'daily', 0, 1)",
    [id(1), id(0)],
  );
  client.run("insert into eval_requests values (?, ?, ?, 'api', 1)", [id(2), id(0), id(1)]);
  const states = [
    ["pending", "queued", null, 2, 0],
    ["running", "running", 5, 3, 2],
    ["failed", "failed", null, 1, 1],
  ] as const;
  for (const [i, [status, state, leaseUntil, fence, attempt]] of states.entries()) {
    const endedAt = status === "failed" ? 9 : null;
    client.run(
      "insert into runs (id, org_id, prompt_id, eval_request_id, status, url_map, task, agent, attempt, failure_reason, created_at, started_at, completed_at) values (?, ?, ?, ?, ?, '{}', ?, 'explorer', ?, ?, 1, 2, ?)",
      [
        id(3 + i),
        id(0),
        id(1),
        id(2),
        status,
        JSON.stringify(task),
        attempt,
        endedAt && "infrastructure: gone",
        endedAt,
      ],
    );
    client.run(
      "insert into jobs (id, kind, subject, state, available_at, attempt, max_attempts, fence, lease_until, created_at, ended_at) values (?, 'run', ?, ?, 0, ?, 3, ?, ?, 1, ?)",
      [id(6 + i), id(3 + i), state, attempt, fence, leaseUntil, endedAt],
    );
  }
  client.close();

  const { db, service, runJobs } = testApp({ dataDir: folder });
  const jobs = db.$client
    .query("select org_id, host, state, attempt, spent, faults, deaths, first_begun_at from jobs order by id")
    .all();
  const common = { org_id: id(0), host: "", spent: 0, faults: 0, deaths: 0, first_begun_at: 2 };
  // The number of an attempt never comes twice, so neither do the rows of its session.
  expect(jobs).toEqual([
    { ...common, state: "queued", attempt: 2 },
    { ...common, state: "running", attempt: 3 },
    { ...common, state: "failed", attempt: 1 },
  ]);
  await runJobs();
  const runs = service.runs.listRuns(id(0) as never, {}, { limit: 10, offset: 0 }).items;
  expect(runs.map(({ status }) => status)).toEqual(["failed", "completed", "completed"]);
  await service.slots.start();
  await service.slots.stop();
  const [prompt] = db.$client
    .query<{ next_slot_at: number }, []>("select next_slot_at from prompts where frequency = 'daily'")
    .all();
  expect(prompt?.next_slot_at).toBeGreaterThan(Date.now());
  expect(db.$client.query("pragma foreign_key_check").all()).toEqual([]);
  db.$client.close();
  rmSync(folder, { recursive: true });
});

test("the steps to the present are as many as there are files", async () => {
  const journal = await Bun.file(join(migrations, "meta", "_journal.json")).json();
  const files = readdirSync(migrations)
    .filter((name) => name.endsWith(".sql"))
    .sort();
  expect(journal.entries.map(({ tag }: { tag: string }) => `${tag}.sql`)).toEqual(files);
});

test("what a newer version has written is left alone", async () => {
  const { folder, client } = await oldDatabase(2);
  client.run("insert into __drizzle_migrations (hash, created_at) values ('later', 9999999999999)");
  const schema = () => client.query("select sql from sqlite_master").all();
  const before = schema();
  expect(() => openDb(folder)).toThrow("written by a newer evald");
  expect(schema()).toEqual(before);
  client.close();
  rmSync(folder, { recursive: true });
});
