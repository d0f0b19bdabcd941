import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listBackups, requestBackup } from "../../src/backups/backups.ts";
import { restoreFile } from "../../src/cli/restore.ts";
import { testApp } from "../support/app.ts";
import { startProxy, startStore } from "../support/s3.ts";

// Each backup is a process.
setDefaultTimeout(60_000);

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const start = Date.UTC(2026, 10, 2, 12);

let store: Awaited<ReturnType<typeof startStore>>;
beforeAll(async () => {
  store = await startStore();
});
afterAll(() => store.close());

const emptyFolder = () => mkdtempSync(join(tmpdir(), "evald-test-"));

/** A service on a database in a folder, with one organization and a clock. */
function backedUpApp(env: Record<string, string>, dataDir = emptyFolder()) {
  let now = start;
  const { service, db, a, send } = testApp({
    dataDir,
    env: { EVALD_DATA_DIR: dataDir, ...env },
    now: () => now,
    monotonicNow: performance.now.bind(performance),
  });
  db.$client.run("delete from api_keys where org_id = (select id from orgs where name = 'B')");
  db.$client.run("delete from orgs where name = 'B'");
  return {
    ...{ ctx: service.ctx, db, a, send, dataDir, service },
    /** Sets the clock, and makes what is due then. */
    async at(ms: number) {
      now = ms;
      await service.backupLoop.tick();
      return listBackups(service.ctx, 1)[0];
    },
    setClock: (ms: number) => (now = ms),
    /** The lines of the inbox about backups. */
    async problems() {
      const { body } = await send("GET", "/api/v1/inbox");
      return body.problems.filter(({ kind }: { kind: string }) => kind === "backup_failing");
    },
  };
}

/** All rows of a database, except those about its backups. */
function rowsOf(file: string) {
  const db = new Database(file, { readonly: true });
  try {
    const tables = db.query<{ name: string }, []>("select name from sqlite_schema where type = 'table' order by name");
    const names = tables.all().flatMap(({ name }) => (name === "backups" || name.startsWith("sqlite_") ? [] : name));
    return Object.fromEntries(names.map((name) => [name, db.query(`select * from "${name}"`).values()]));
  } finally {
    db.close();
  }
}

test.each([
  [
    "a directory",
    () => {
      const folder = emptyFolder();
      return { env: { EVALD_BACKUP_TO: folder }, fileOf: (name: string) => join(folder, name) };
    },
  ],
  ["a store", () => store.newPlace()],
])("a backup to %s, restored elsewhere, has every row", async (_, toPlace) => {
  const { env, fileOf } = toPlace();
  const app = backedUpApp(env);
  // Several parts of an upload.
  const insert = app.db.$client.prepare("insert into orgs (id, name, time_zone, created_at) values (?, ?, 'UTC', 0)");
  app.db.$client.transaction(() => {
    for (let i = 0; i < 60_000; i++) insert.run(crypto.randomUUID(), `${i} ${"x".repeat(90)}`);
  })();
  const backup = await app.at(start);
  expect(backup).toMatchObject({ status: "completed", failure: null, requestedBy: null, runs: 0 });
  expect(backup?.bytes).toBeGreaterThan(16 * 1024 ** 2);
  // Its folders are gone.
  expect(readdirSync(app.dataDir).sort()).toEqual(["evald.db", "evald.db-shm", "evald.db-wal", "evald.last-backup"]);

  const elsewhere = emptyFolder();
  const name = backup?.location?.split("/").at(-1) ?? "";
  restoreFile(elsewhere, fileOf(name));
  const restored = rowsOf(join(elsewhere, "evald.db"));
  expect(Object.keys(restored).length).toBeGreaterThan(30);
  expect(restored).toEqual(rowsOf(join(app.dataDir, "evald.db")));
});

test("a backup has what it says was deleted since, and the next one doesn't", async () => {
  const folder = emptyFolder();
  const app = backedUpApp({ EVALD_BACKUP_TO: folder });
  const prompt = async (text: string) => (await app.send("POST", "/api/v1/prompts", { body: { text } })).body.id;
  const gone = await prompt("Read about zanzibar at https://docs.test/");
  app.setClock(start + minuteMs);
  await app.at(start + minuteMs);
  app.setClock(start + 2 * minuteMs);
  const { body: deletion } = await app.send("DELETE", `/api/v1/prompts/${gone}`);
  await app.send("POST", `/api/v1/deletions/${deletion.id}/erase`);
  await app.service.upkeep.runOnce();
  app.setClock(start + dayMs);
  requestBackup(app.ctx);
  await app.at(start + dayMs);
  const backups = listBackups(app.ctx, 2).map(({ location, deletedSince }) => [
    deletedSince?.prompts,
    readFileSync(location ?? "").includes("zanzibar"),
  ]);
  expect(backups).toEqual([
    [0, false],
    [1, true],
  ]);
});

test("a backup is made at the start, then on schedule, once after a downtime, and on request", async () => {
  const folder = emptyFolder();
  const app = backedUpApp({ EVALD_BACKUP_TO: folder, EVALD_BACKUP_SCHEDULE: "03:00" });
  const tomorrow = Date.UTC(2026, 10, 3, 3);
  await app.at(start);
  await app.at(tomorrow - 1);
  expect(readdirSync(folder)).toEqual(["evald-2026-11-02T12-00-00Z.backup"]);
  await app.at(tomorrow);
  await app.at(tomorrow + minuteMs);
  expect(readdirSync(folder)).toHaveLength(2);
  // Three are missed.
  await app.at(tomorrow + 3 * dayMs + 5 * 60 * minuteMs);
  await app.at(tomorrow + 3 * dayMs + 6 * 60 * minuteMs);
  expect(readdirSync(folder)).toHaveLength(3);
  const { id } = requestBackup({ ...app.ctx, operator: "olga" });
  expect(await app.at(tomorrow + 3 * dayMs + 7 * 60 * minuteMs)).toMatchObject({
    ...{ id, requestedBy: "olga", status: "completed" },
  });
  expect(
    app.db.$client
      .query("select actor_kind, actor_name, action, target_id from audit_entries where action like 'backup.%'")
      .values(),
  ).toEqual([["operator", "olga", "backup.created", id]]);
  // It replaces the other one of that day.
  expect(readdirSync(folder).sort()).toEqual([
    ...["evald-2026-11-02T12-00-00Z.backup", "evald-2026-11-03T03-00-00Z.backup", "evald-2026-11-06T10-00-00Z.backup"],
  ]);
});

test("a store that fails is in the inbox within a minute, tried again after longer and longer, and gone from it afterwards", async () => {
  const folder = join(emptyFolder(), "mounted");
  const app = backedUpApp({ EVALD_BACKUP_TO: folder });
  await app.service.runner.start();
  expect(await app.problems()).toEqual([]);
  const before = performance.now();
  expect(await app.at(start)).toMatchObject({ status: "failed", failure: expect.stringContaining(folder) });
  expect(performance.now() - before).toBeLessThan(minuteMs);
  expect(await app.problems()).toMatchObject([
    { since: new Date(start).toISOString(), failures: 1, failure: expect.stringContaining(folder), lastBackupAt: null },
  ]);
  expect((await app.send("GET", "/readyz")).body).toMatchObject({
    status: "ready",
    detail: expect.stringContaining(folder),
  });

  const tries: number[] = [];
  for (let minute = 1; minute <= 8; minute++) {
    const known = listBackups(app.ctx, 100).length;
    await app.at(start + minute * minuteMs);
    if (listBackups(app.ctx, 100).length > known) tries.push(minute);
  }
  expect(tries).toEqual([1, 3, 7]);
  expect(await app.problems()).toMatchObject([{ since: new Date(start).toISOString(), failures: 4 }]);

  mkdirSync(folder);
  await app.at(start + 15 * minuteMs);
  expect(await app.problems()).toEqual([]);
  expect(readdirSync(folder)).toHaveLength(1);
  expect((await app.send("GET", "/readyz")).body).toEqual({ status: "ready" });

  await app.service.runner.stop(0);

  // The service hangs, or its clock was set.
  app.setClock(Date.UTC(2026, 10, 3, 4));
  expect(await app.problems()).toEqual([]);
  app.setClock(Date.UTC(2026, 10, 3, 4) + 1);
  expect(await app.problems()).toMatchObject([{ failures: 0, failure: null, since: "2026-11-03T03:00:00.000Z" }]);
});

test.each([
  ["refuses connections", () => ({ AWS_ENDPOINT_URL: "http://127.0.0.1:1" }), "ConnectionRefused"],
  ["refuses the key", () => ({ AWS_ACCESS_KEY_ID: "unknown" }), "InvalidAccessKeyId"],
  ["has no such bucket", () => ({ EVALD_BACKUP_TO: "s3://missing/evald" }), "NoSuchBucket"],
])("a store that %s is named", async (_, toEnv, reason) => {
  const app = backedUpApp({ ...store.newPlace().env, ...toEnv() });
  expect(await app.at(start)).toMatchObject({ status: "failed", failure: expect.stringContaining(reason) });
});

test("one changed byte in the store is noticed, when the backup is made and when it is restored", async () => {
  const flip = (body: Uint8Array, { method }: Request) => {
    const middle = body.length >> 1;
    if (method === "GET" && body.length > 100_000) body[middle] = (body[middle] ?? 0) ^ 1;
    return body;
  };
  const { env, fileOf } = store.newPlace();
  const proxy = startProxy(store.endpoint, flip);
  try {
    const app = backedUpApp({ ...env, AWS_ENDPOINT_URL: proxy.endpoint });
    const failed = await app.at(start + dayMs);
    expect(failed).toMatchObject({ status: "failed", failure: expect.stringContaining("checksum") });
    expect(await app.problems()).toMatchObject([{ failures: 1 }]);
    // It isn't kept: nobody could restore it.
    expect(() => readFileSync(fileOf("evald-2026-11-03T12-00-00Z.backup"))).toThrow("ENOENT");
  } finally {
    await proxy.close();
  }
  const app = backedUpApp(env);
  const backup = await app.at(start + 2 * dayMs);
  expect(backup?.status).toBe("completed");
  const file = fileOf(backup?.location?.split("/").at(-1) ?? "");
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  writeFileSync(file, bytes);
  expect(() => restoreFile(emptyFolder(), file)).toThrow("checksum");
});

test("only own backups are deleted, and only after a newer one is checked", async () => {
  const folder = emptyFolder();
  const app = backedUpApp({ EVALD_BACKUP_TO: folder, EVALD_BACKUP_KEEP_DAILY: "2", EVALD_BACKUP_KEEP_WEEKLY: "0" });
  const others = ["evald-2020-01-01T00-00-00Z.backup", "evald-2026-11-02.backup", "notes.txt"];
  const own = () =>
    readdirSync(folder)
      .filter((name) => !others.includes(name))
      .sort();
  for (const day of [0, 1]) await app.at(start + day * dayMs);
  for (const name of others) writeFileSync(join(folder, name), name);
  expect(own()).toEqual(["evald-2026-11-02T12-00-00Z.backup", "evald-2026-11-03T12-00-00Z.backup"]);
  // This one can't be checked.
  writeFileSync(join(app.dataDir, "backup.unfinished"), "");
  mkdirSync(join(folder, "evald-2026-11-04T12-00-00Z.backup"));
  expect((await app.at(start + 2 * dayMs))?.status).toBe("failed");
  rmdirSync(join(folder, "evald-2026-11-04T12-00-00Z.backup"));
  expect(own()).toHaveLength(2);
  expect((await app.at(start + 3 * dayMs))?.status).toBe("completed");
  expect(own()).toEqual(["evald-2026-11-03T12-00-00Z.backup", "evald-2026-11-05T12-00-00Z.backup"]);
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(others));
  expect(listBackups(app.ctx, 10).filter(({ removedAt }) => removedAt !== null)).toMatchObject([
    { startedAt: new Date(start).toISOString(), status: "completed" },
  ]);
});

test("a new database adds nothing to the backups of another one, unless someone asks; a restored one goes on", async () => {
  const folder = emptyFolder();
  const first = backedUpApp({ EVALD_BACKUP_TO: folder });
  const backup = await first.at(start);
  const second = backedUpApp({ EVALD_BACKUP_TO: folder });
  const name = "evald-2026-11-02T12-00-00Z.backup";
  expect(await second.at(start + dayMs)).toMatchObject({ status: "failed", failure: expect.stringContaining(name) });
  expect(readdirSync(folder)).toEqual([name]);

  const dataDir = emptyFolder();
  restoreFile(dataDir, backup?.location ?? "");
  // The next app creates another organization with that name.
  const db = new Database(join(dataDir, "evald.db"));
  db.run("update orgs set name = 'restored'");
  db.close();
  const restored = backedUpApp({ EVALD_BACKUP_TO: folder }, dataDir);
  // The backup was in progress when it was made.
  expect(await restored.at(start + dayMs)).toMatchObject({ status: "failed" });
  expect(await restored.at(start + dayMs + minuteMs)).toMatchObject({ status: "completed" });

  // Backups of one millisecond have no order.
  second.setClock(start + dayMs + 1);
  requestBackup(second.ctx);
  expect(await second.at(start + 2 * dayMs)).toMatchObject({ status: "completed" });
  expect(await second.at(start + 3 * dayMs)).toMatchObject({ status: "completed", requestedBy: null });
});

test("metrics tell when the last backup was checked, its size, and failures", async () => {
  const folder = join(emptyFolder(), "missing");
  const app = backedUpApp({ EVALD_BACKUP_TO: folder, EVALD_METRICS_ADDRESS: "127.0.0.1:0" });
  const scrape = async () => {
    const { metrics } = app.service.telemetry;
    metrics?.readGauges();
    const text = (await metrics?.registry.metrics()) ?? "";
    const sampleOf = (name: string) => Number(new RegExp(`^evald_backup_${name} (\\S+)$`, "m").exec(text)?.[1]);
    return [sampleOf("last_success_timestamp_seconds"), sampleOf("failures_total"), sampleOf("bytes") > 0];
  };
  expect(await scrape()).toEqual([0, 0, false]);
  await app.at(start);
  expect(await scrape()).toEqual([0, 1, false]);
  mkdirSync(folder);
  await app.at(start + minuteMs);
  expect(await scrape()).toEqual([(start + minuteMs) / 1000, 1, true]);
});
