import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { openDb, readMigrations } from "../src/db/open.ts";
import { AppError } from "../src/errors.ts";
import { testApp } from "./support/app.ts";
import { emptyFolder } from "./support/executable.ts";
import { firstRelease } from "./support/first-release.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A data folder as the first release left it. */
async function oldFolder(): Promise<{ folder: string; client: Database }> {
  const folder = emptyFolder();
  folders.push(folder);
  const client = new Database(join(folder, "evald.db"), { create: true });
  client.run(await Bun.file(firstRelease).text());
  return { folder, client };
}

const tablesIn = (client: Database) =>
  client
    .query<{ name: string }, []>(
      "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name not like '!_!_%' escape '!' order by name",
    )
    .all()
    .map(({ name }) => name);
/** Without `completed_at`, which could be a millisecond later than that of the job. */
const attemptsIn = (client: Database) =>
  client
    .query(
      "select job_id, attempt, owner, started_at, outcome, reason, cost_usd from attempts order by job_id, attempt",
    )
    .all();
const countOf = (client: Database, table: string) =>
  client.query<{ n: number }, []>(`select count(*) n from "${table}"`).get()?.n ?? 0;

test("a database of the first release keeps every row, and its unfinished runs complete", async () => {
  const { folder, client } = await oldFolder();
  const before = new Map(tablesIn(client).map((name) => [name, countOf(client, name)]));
  const [org] = client.query<{ id: string }, []>("select org_id id from runs limit 1").all();
  const unfinished = client.query<{ id: string }, []>("select id from runs where completed_at is null").all();
  expect(unfinished.length).toBeGreaterThan(0);
  const attempts = attemptsIn(client);
  expect(attempts.length).toBeGreaterThan(unfinished.length);
  client.close();

  const { db, service, runJobs } = testApp({ dataDir: folder });
  const added = new Map([
    ["orgs", 2],
    ["api_keys", 2],
  ]);
  for (const [name, count] of before)
    if (tablesIn(db.$client).includes(name))
      expect([name, countOf(db.$client, name)]).toEqual([name, count + (added.get(name) ?? 0)]);
  expect(attemptsIn(db.$client)).toEqual(attempts);
  expect(db.$client.query("pragma foreign_key_check").all()).toEqual([]);
  const id = org?.id as never;
  const reports = service.reports.listReports(id, {}, { limit: 100, offset: 0 });
  expect(reports.items.length).toBe(before.get("reports") ?? 0);
  for (const { slug } of reports.items) expect(service.reports.getReport(id, slug).slug).toBe(slug);
  await runJobs();
  const open = db.$client.query("select id from runs where completed_at is null").all();
  expect(open).toEqual([]);
  db.$client.close();
});

test("after an upgrade, the planner has statistics of new indexes too", async () => {
  const { folder, client } = await oldFolder();
  const indexes = (of: Database) =>
    of
      .query<{ name: string }, []>(
        "select name from sqlite_master where type = 'index' and tbl_name in ('reports', 'runs')",
      )
      .all()
      .map(({ name }) => name);
  const before = indexes(client);
  client.close();
  const db = openDb(folder);
  const after = indexes(db.$client);
  expect(after.filter((name) => !before.includes(name)).length).toBeGreaterThan(2);
  const known = db.$client.query<{ idx: string }, []>("select idx from sqlite_stat1").all();
  expect(after.filter((name) => !known.some(({ idx }) => idx === name))).toEqual([]);
  db.$client.close();
});

test("reports of an older methodology are regraded with the newest one, and keep their old grading", async () => {
  const { folder, client } = await oldFolder();
  const isOld = "json_extract(methodology, '$.id') = '2'";
  const [old] = client
    .query<{ orgId: string; slug: string }, []>(`select org_id orgId, slug from reports where ${isOld}`)
    .all();
  client.close();
  const { db, service, runJobs } = testApp({ dataDir: folder });
  const org = old?.orgId as never;
  const slug = old?.slug ?? "";
  const { regradeId } = await service.regrades.requestRegrade(org, { since: "2020-01-01" });
  await runJobs();
  expect(service.regrades.getRegrade(org, regradeId ?? "")).toMatchObject({ status: "completed", failed: 0 });
  expect(service.reports.getReport(org, slug).methodology.id).toBe("3");
  expect(service.gradings.getGraded(org, slug, "2").methodology.id).toBe("2");
  db.$client.close();
});

test("after an upgrade, email addresses of people with a password count as unproven", async () => {
  const { folder, client } = await oldFolder();
  for (const [id, provider] of [
    ["by-password", "credential"],
    ["by-provider", "oidc"],
  ] as const) {
    client.run("insert into people values (?, ?, ?, 1, null, 0, 0)", [id, id, `${id}@example.com`]);
    client.run("insert into accounts values (?, ?, ?, ?, null, 0, 0)", [id, id, provider, id]);
  }
  client.close();
  const db = openDb(folder);
  expect(
    db.$client.query("select id, email_verified as verified from people where id like 'by-%' order by id").all(),
  ).toEqual([
    { id: "by-password", verified: 0 },
    { id: "by-provider", verified: 1 },
  ]);
  db.$client.close();
});

test("the migration of the first release never changes", async () => {
  const { client } = await oldFolder();
  const [first] = client.query<{ hash: string }, []>("select hash from __drizzle_migrations order by created_at").all();
  expect(readMigrations()[0]?.hash).toBe(first?.hash ?? "");
  client.close();
});

test("a database of a newer version is rejected and unchanged", async () => {
  const { folder, client } = await oldFolder();
  client.run("insert into __drizzle_migrations (hash, created_at) values ('later', 9999999999999)");
  const schema = () => client.query("select sql from sqlite_master").all();
  const before = schema();
  expect(() => openDb(folder)).toThrow(expect.objectContaining({ code: "conflict" }));
  expect(schema()).toEqual(before);
  client.close();
});

test("a database of a development version is rejected with its path, and unchanged", async () => {
  const { folder, client } = await oldFolder();
  client.run("update __drizzle_migrations set hash = 'development', created_at = 1");
  const contents = () => [
    client.query("select sql from sqlite_master").all(),
    client.query("select * from __drizzle_migrations").all(),
    countOf(client, "runs"),
  ];
  const before = contents();
  let refusal: unknown;
  try {
    openDb(folder, { mayMigrate: () => expect.unreachable() });
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(AppError);
  const { code, detail } = refusal as AppError;
  expect(code).toBe("conflict");
  expect(detail).toContain(join(folder, "evald.db"));
  expect(contents()).toEqual(before);
  client.close();
});

test("an upgrade reports its progress, and asks before it changes anything", async () => {
  const { folder, client } = await oldFolder();
  // As if the first release had come before the only migration there is: everything in it is done again.
  for (const { type, name } of client
    .query<{ type: string; name: string }, []>(
      "select type, name from sqlite_master where name not like 'sqlite_%' and name not like '!_!_%' escape '!' and type = 'table'",
    )
    .all())
    client.run(`drop ${type} "${name}"`);
  client.run("update __drizzle_migrations set created_at = 1");
  expect(() =>
    openDb(folder, {
      mayMigrate() {
        throw new Error("not now");
      },
    }),
  ).toThrow("not now");
  expect(tablesIn(client)).toEqual([]);
  const steps: number[] = [];
  const db = openDb(folder, { onProgress: ({ done, of }) => steps.push(done / of) });
  expect(steps.at(-1)).toBe(1);
  expect(steps).toEqual(steps.toSorted((a, b) => a - b));
  db.$client.close();
  client.close();
});
