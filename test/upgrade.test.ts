import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { openData } from "../src/cli/data-directory.ts";
import { copyFromBackup } from "../src/db/backup-file.ts";
import { closeDb, lockData, type Migration, openDb, readMigrations } from "../src/db/open.ts";
import { AppError } from "../src/errors.ts";
import { testApp } from "./support/app.ts";
import { emptyFolder } from "./support/executable.ts";
import { keepDatabase, listReleasedDatabases, unpackDatabase } from "./support/released-databases.ts";
import { niceGrade, runWithReport } from "./support/reports.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A data folder with a run and its report, and a connection to its database. */
function usedFolder(): { folder: string; client: Database } {
  const folder = emptyFolder();
  folders.push(folder);
  const app = testApp({ dataDir: folder });
  runWithReport(app, niceGrade);
  closeDb(app.db);
  return { folder, client: new Database(join(folder, "evald.db")) };
}

/** The migrations of a later version: the current ones, and one with these statements. */
const withLater = (...statements: string[]): Migration[] => [
  ...readMigrations(),
  { sql: statements, hash: "later", folderMillis: 9_000_000_000_000 },
];
const addColumn = "alter table runs add later text";
const addIndex = "create index runs_later on runs (org_id, agent_version)";

const schemaOf = (client: Database) =>
  client.query("select type, name, sql from sqlite_master where name not like 'sqlite_stat%' order by name").all();
/** The rows of each table of the schema, except for the planner's statistics. */
const rowsIn = (client: Database) =>
  client
    .query<{ name: string }, []>(
      "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name not like '!_!_%' escape '!' order by name",
    )
    .all()
    .map(({ name }): [string, number | undefined] => [
      name,
      client.query<{ n: number }, []>(`select count(*) n from "${name}"`).get()?.n,
    ]);
const appliedIn = (client: Database) => client.query("select hash, created_at from __drizzle_migrations").all();

test("an upgrade applies the pending migrations, keeps every row and records what it applied", () => {
  const { folder, client } = usedFolder();
  const [rows, applied] = [rowsIn(client), appliedIn(client)];
  const migrations = withLater(addColumn, addIndex);
  closeDb(openDb(folder, { migrations }));
  expect(rowsIn(client)).toEqual(rows);
  expect(client.query("select later from runs").all()).toEqual([{ later: null }]);
  expect(appliedIn(client)).toEqual([...applied, { hash: "later", created_at: 9_000_000_000_000 }]);
  expect(client.query("pragma foreign_key_check").all()).toEqual([]);
  // Once it is applied, nothing is pending.
  closeDb(openDb(folder, { migrations, beforeMigration: () => expect.unreachable() }));
  client.close();
});

/** Upgrades a released database, and checks that it keeps every row and has the tables of a new one. */
function checkUpgrade(file: string, migrations = readMigrations()): void {
  const [folder, newFolder] = [emptyFolder(), emptyFolder()];
  folders.push(folder, newFolder);
  unpackDatabase(file, folder);
  const client = new Database(join(folder, "evald.db"));
  const rows = new Map(rowsIn(client));
  closeDb(openData(folder, { migrations }));
  const expected = openData(newFolder, { migrations });
  expect(schemaOf(client)).toEqual(schemaOf(expected.$client));
  expect(rowsIn(client).filter(([name, count]) => rows.has(name) && rows.get(name) !== count)).toEqual([]);
  expect(client.query("pragma foreign_key_check").all()).toEqual([]);
  closeDb(expected);
  client.close();
}

test("databases of released versions are upgraded, and so will be those of this one", () => {
  const folder = emptyFolder();
  folders.push(folder);
  const file = keepDatabase(folder);
  expect(() => keepDatabase(folder)).toThrow("EEXIST");
  expect(listReleasedDatabases(folder)).toEqual([file]);
  for (const each of listReleasedDatabases()) checkUpgrade(each);
  checkUpgrade(file, withLater(addColumn, addIndex));
  expect(() => checkUpgrade(file, withLater("delete from reports"))).toThrow();
});

test("a migration that fails leaves the database unchanged", () => {
  const { folder, client } = usedFolder();
  const before = [schemaOf(client), rowsIn(client), appliedIn(client)];
  const migrations = withLater(addColumn, "delete from score_days", "insert into orgs values ('too few columns')");
  expect(() => openDb(folder, { migrations })).toThrow();
  expect([schemaOf(client), rowsIn(client), appliedIn(client)]).toEqual(before);
  client.close();
});

test("an upgrade also gives the planner statistics of new indexes", () => {
  const { folder, client } = usedFolder();
  const db = openDb(folder, { migrations: withLater(addIndex) });
  const indexes = db.$client
    .query<{ name: string }, []>(
      "select name from sqlite_master where type = 'index' and tbl_name in ('reports', 'runs')",
    )
    .all()
    .map(({ name }) => name);
  expect(indexes).toContain("runs_later");
  const analyzed = db.$client.query<{ idx: string }, []>("select idx from sqlite_stat1").all();
  expect(indexes.filter((name) => !analyzed.some(({ idx }) => idx === name))).toEqual([]);
  closeDb(db);
  client.close();
});

test("before an upgrade, the database is backed up beside itself, as it was", () => {
  const { folder, client } = usedFolder();
  const before = [schemaOf(client), rowsIn(client), appliedIn(client)];
  const backups = () => readdirSync(folder).filter((name) => name.startsWith("evald.db.before-upgrade-"));
  closeDb(openData(folder));
  expect(backups()).toEqual([]);
  closeDb(openData(folder, { migrations: withLater(addColumn) }));
  expect(client.query("select later from runs").all()).toEqual([{ later: null }]);
  const [name = ""] = backups();
  expect(backups()).toEqual([name]);
  expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  expect(copyFromBackup(join(folder, name), join(folder, "copy"))).toMatchObject({ runs: 1 });
  const copy = new Database(join(folder, "copy"), { readonly: true });
  expect([schemaOf(copy), rowsIn(copy), appliedIn(copy)]).toEqual(before);
  copy.close();
  client.close();
});

test("without a backup there is no upgrade", () => {
  const { folder, client } = usedFolder();
  client.run("pragma foreign_keys = OFF");
  client.run("update runs set prompt_id = 'gone'");
  const before = [schemaOf(client), rowsIn(client), appliedIn(client)];
  expect(() => openData(folder, { migrations: withLater(addColumn) })).toThrow(
    expect.objectContaining({ code: "bad_request" }),
  );
  expect([schemaOf(client), rowsIn(client), appliedIn(client)]).toEqual(before);
  expect(readdirSync(folder).filter((name) => name.includes("before-upgrade"))).toEqual([]);
  client.close();
});

test("an upgrade by a command needs the lock of the data directory, and returns it", () => {
  const { folder, client } = usedFolder();
  const before = [schemaOf(client), rowsIn(client), appliedIn(client)];
  const upgrade = () => openData(folder, { migrations: withLater(addColumn), locksUpgrade: true });
  const holder = { pid: process.pid, since: "2026-11-27T09:00:00.000Z" };
  const lock = lockData(folder, holder);
  expect(upgrade).toThrow(expect.objectContaining({ code: "conflict" }));
  expect([schemaOf(client), rowsIn(client), appliedIn(client)]).toEqual(before);
  lock.release();
  const db = upgrade();
  expect(client.query("select later from runs").all()).toEqual([{ later: null }]);
  lockData(folder, holder).release();
  closeDb(db);
  client.close();
});

test("a database of a newer version is rejected and stays unchanged", () => {
  const { folder, client } = usedFolder();
  closeDb(openDb(folder, { migrations: withLater(addColumn) }));
  const before = [schemaOf(client), rowsIn(client), appliedIn(client)];
  expect(() => openDb(folder)).toThrow(expect.objectContaining({ code: "conflict" }));
  expect([schemaOf(client), rowsIn(client), appliedIn(client)]).toEqual(before);
  client.close();
});

test("a database of a development version is rejected with its path, and stays unchanged", () => {
  const { folder, client } = usedFolder();
  client.run("update __drizzle_migrations set hash = 'development', created_at = 1");
  const before = [schemaOf(client), rowsIn(client), appliedIn(client)];
  let refusal: unknown;
  try {
    openDb(folder, { beforeMigration: () => expect.unreachable() });
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(AppError);
  const { code, detail } = refusal as AppError;
  expect(code).toBe("conflict");
  expect(detail).toContain(join(folder, "evald.db"));
  expect([schemaOf(client), rowsIn(client), appliedIn(client)]).toEqual(before);
  client.close();
});

test("an upgrade reports its progress, and asks before it changes anything", () => {
  const { folder, client } = usedFolder();
  const before = schemaOf(client);
  const migrations = withLater(addColumn, addIndex);
  expect(() =>
    openDb(folder, {
      migrations,
      beforeMigration() {
        throw new Error("not now");
      },
    }),
  ).toThrow("not now");
  expect(schemaOf(client)).toEqual(before);
  const steps: { done: number; of: number }[] = [];
  closeDb(openDb(folder, { migrations, onProgress: (step) => steps.push(step) }));
  expect(steps).toEqual([
    { done: 1, of: 2 },
    { done: 2, of: 2 },
  ]);
  client.close();
});
