import { Database } from "bun:sqlite";
import { beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { lockData, readMigrations } from "../../src/db/open.ts";
import {
  buildExecutables,
  call,
  client,
  emptyFolder,
  furnish,
  instant,
  serve,
  untilRun,
} from "../support/executable.ts";

beforeAll(buildExecutables, 300_000);

/** The integrity of a database file, and the numbers of its runs and prompts. */
function look(file: string) {
  const db = new Database(file, { readonly: true });
  const count = (table: string) => db.query<{ n: number }, []>(`select count(*) as n from ${table}`).get()?.n ?? 0;
  try {
    const whole = db.query<{ integrity_check: string }, []>("pragma integrity_check").get()?.integrity_check ?? "";
    return [whole, count("runs"), count("prompts")];
  } finally {
    db.close();
  }
}

/** Ends the process at the given occurrence of a system call. */
const killedAt = (syscall: string, nth: number) => [
  ...["strace", "-f", "-qq", "-o", "/dev/null", "-e", `trace=${syscall}`],
  ...["-e", `inject=${syscall}:signal=KILL:when=${nth}`],
];

/** A data folder with a few runs, and a backup of it. */
async function makeBackup() {
  const cwd = emptyFolder();
  const { key, promptId } = await furnish(cwd);
  const service = await serve({ cwd, file: instant });
  const ask = client(service.url, key);
  for (let i = 0; i < 20; i++) {
    const { runId } = (await ask("POST", `/api/v1/prompts/${promptId}/run`, { urlMap: {} })).body;
    await untilRun(ask, runId, "completed");
  }
  await service.stop();
  expect((await call(["backup", "backup"], { cwd })).code).toBe(0);
  return { cwd, key };
}

let made: ReturnType<typeof makeBackup> | undefined;

/** A copy of that folder. */
async function backedUp() {
  made ??= makeBackup();
  const { cwd: original, key } = await made;
  const cwd = emptyFolder();
  cpSync(original, cwd, { recursive: true });
  return { cwd, key };
}

test("a backup of a busy service is complete, and a folder restored from it has every run that was acknowledged before", async () => {
  const cwd = emptyFolder();
  const { key, promptId } = await furnish(cwd);
  const service = await serve({ cwd, file: instant, env: { EVALD_CONCURRENCY: "16", EVALD_RUNS_PER_HOST: "16" } });
  const ask = client(service.url, key);
  const acknowledged: string[] = [];
  let worstMs = 0;
  let writing = true;
  const write = async () => {
    while (writing) {
      const began = performance.now();
      const { status, body } = await ask("POST", `/api/v1/prompts/${promptId}/run`, { urlMap: {} });
      expect(status).toBe(200);
      worstMs = Math.max(worstMs, performance.now() - began);
      acknowledged.push(body.runId);
    }
  };
  const writers = Array.from({ length: 8 }, write);
  while (acknowledged.length < 500) await Bun.sleep(0);
  const usualMs = worstMs;
  worstMs = 0;
  const before = acknowledged.slice();
  const { code, stdout, stderr } = await call(["backup", "copy", "--json"], { cwd });
  const duringMs = worstMs;
  writing = false;
  await Promise.all(writers);
  await service.stop("SIGKILL");
  const made = JSON.parse(stdout);
  console.log(
    `backup of ${(made.bytes / 1024 ** 2).toFixed(1)} MiB: worst write ${duringMs.toFixed(0)} ms, without it ${usualMs.toFixed(0)} ms`,
  );
  expect([code, made.file, stderr]).toEqual([0, "copy", expect.stringMatching(/\d+ runs, \d+\.\d MiB/)]);
  expect(look(join(cwd, "copy"))).toEqual(["ok", made.runs, 1]);
  expect(made.runs).toBeGreaterThanOrEqual(before.length);
  expect(statSync(join(cwd, "copy")).mode & 0o777).toBe(0o600);
  expect(readdirSync(cwd).sort()).toEqual(["copy", "data"]);

  const restored = await call(["--data", "new", "restore", "copy"], { cwd });
  expect(restored).toEqual({
    code: 0,
    stdout: "new/evald.db\n",
    stderr: expect.stringMatching(/\d+ runs \(\d+\.\d MiB\) from copy/),
  });
  const again = await serve({
    cwd,
    file: instant,
    env: { EVALD_DATA_DIR: "new", EVALD_CONCURRENCY: "64", EVALD_RUNS_PER_HOST: "64" },
  });
  const askAgain = client(again.url, key);
  for (const runId of before) expect((await untilRun(askAgain, runId, "completed", "failed")).status).toBe("completed");
  expect(await again.stop()).toBe(0);
}, 300_000);

test("a run that was active during the backup is executed again after the restore; the old database is kept", async () => {
  const cwd = emptyFolder();
  let asked = () => {};
  let release = () => {};
  const begun = new Promise<void>((resolve) => (asked = resolve));
  const hold = new Promise<void>((resolve) => (release = resolve));
  const site = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch() {
      asked();
      await hold;
      return new Response("<h1>Upload a file</h1>", { headers: { "content-type": "text/html" } });
    },
  });
  const env = { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` };
  const { key, promptId } = await furnish(cwd);
  const service = await serve({ cwd, env });
  const ask = client(service.url, key);
  const urlMap = { "docs.test": `http://127.0.0.1:${site.port}` };
  const { runId } = (await ask("POST", `/api/v1/prompts/${promptId}/run`, { urlMap })).body;
  await begun;
  expect((await call(["backup", "copy"], { cwd })).code).toBe(0);
  const late = (await ask("POST", `/api/v1/prompts/${promptId}/run`, { urlMap })).body.runId;

  const refused = await call(["restore", "copy"], { cwd });
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(new RegExp(`^error: .* ./data is in use by evald process ${service.pid}, `)),
  ]);
  // The service was killed, so the latest writes are only in the WAL.
  await service.stop("SIGKILL");
  release();
  const restored = await call(["restore", "copy", "--json"], { cwd });
  expect([restored.code, JSON.parse(restored.stdout)]).toEqual([
    0,
    {
      database: "data/evald.db",
      before: expect.stringMatching(/^data\/evald\.db\.before-restore-\S+Z$/),
      bytes: expect.any(Number),
      runs: 1,
      createdAt: expect.any(String),
    },
  ]);
  const { before } = JSON.parse(restored.stdout);
  expect(restored.stderr).toContain(before);
  expect(look(join(cwd, before))).toEqual(["ok", 2, 1]);
  const again = await serve({ cwd, env });
  const askAgain = client(again.url, key);
  expect(await untilRun(askAgain, runId, "completed", "failed")).toMatchObject({ status: "completed", attempt: 2 });
  expect((await askAgain("GET", `/api/v1/runs/${late}`)).status).toBe(404);
  await again.stop();

  expect((await call(["restore", before], { cwd })).code).toBe(0);
  const back = await serve({ cwd, env });
  expect((await client(back.url, key)("GET", `/api/v1/runs/${late}`)).status).toBe(200);
  await back.stop();
  site.stop(true);
});

test("a backup that would do harm is rejected with the remedy", async () => {
  const { cwd } = await backedUp();
  const refused = async (...args: string[]) => {
    const { code, stdout, stderr } = await call(args, { cwd });
    expect([args, code, stdout]).toEqual([args, 2, ""]);
    return stderr;
  };
  expect(await refused("backup", "backup")).toMatch(/^error: backup .*--force/);
  expect(await refused("backup", "missing/copy")).toStartWith(`error: The directory ${cwd}/missing `);
  expect(await refused("backup", "data", "--force")).toStartWith("error: data is a directory");
  Bun.spawnSync(["mkfifo", join(cwd, "pipe")]);
  expect(await refused("backup", "pipe", "--force")).toStartWith("error: pipe is not a regular file");
  expect(statSync(join(cwd, "pipe")).isFIFO()).toBe(true);
  rmSync(join(cwd, "pipe"));
  for (const name of ["evald.db", "evald.db-wal", "evald.lock"])
    expect(await refused("backup", `data/${name}`, "--force")).toStartWith(
      `error: data/${name} is a file of the data directory`,
    );
  expect(await refused("--data", "other", "backup", "copy")).toMatch(/^error: .* other\/evald\.db\. .*--data/);
  expect(existsSync(join(cwd, "other"))).toBe(false);
  expect((await call(["backup", "backup", "--force"], { cwd })).code).toBe(0);

  // Only the check of the copy finds this row, which refers to a missing one.
  const db = new Database(join(cwd, "data", "evald.db"));
  db.run("pragma foreign_keys = off");
  db.run("delete from prompts");
  db.close();
  expect(await refused("backup", "copy")).toMatch(/^error: data\/evald\.db is damaged \(/);
  expect(readdirSync(cwd).sort()).toEqual(["backup", "data"]);
});

test("a database of an older version is copied unchanged", async () => {
  const { cwd } = await backedUp();
  const path = join(cwd, "data", "evald.db");
  const db = new Database(path);
  db.run("update __drizzle_migrations set created_at = 1");
  const applied = db.query("select hash from __drizzle_migrations").all();
  db.close();
  expect((await call(["backup", "copy"], { cwd })).code).toBe(0);
  for (const file of [path, join(cwd, "copy")])
    expect(new Database(file).query("select hash from __drizzle_migrations").all()).toEqual(applied);
});

test("a command of a newer version leaves the database unchanged while a service of an older one runs", async () => {
  const cwd = emptyFolder();
  const data = join(cwd, "data");
  const lock = lockData(data, { pid: process.pid, since: "now" });
  const db = new Database(join(data, "evald.db"));
  db.run("create table __drizzle_migrations (id serial primary key, hash text not null, created_at numeric)");
  // The first migration is recorded as an earlier one without tables, so that all are pending.
  db.run("insert into __drizzle_migrations (hash, created_at) values (?, 1)", [readMigrations()[0]?.hash ?? ""]);
  const applied = () => db.query("select hash from __drizzle_migrations").all().length;
  expect(await call(["org", "create", "Acme"], { cwd })).toEqual({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^error: /),
  });
  expect(applied()).toBe(1);
  lock.release();
  expect((await call(["org", "create", "Acme"], { cwd })).code).toBe(0);
  expect(applied()).toBe(readMigrations().length + 1);
  db.close();
});

/** Removes the manifest of a backup, changes its database and writes a valid manifest again, as the docs describe it. */
function forge(file: string, change: (db: Database) => void) {
  const text = readFileSync(file, "latin1");
  const [end = "", json = ""] = /\n(\{"type":"evald backup",.*\})\n[0-9a-f]{64}\n$/.exec(text) ?? [];
  truncateSync(file, text.length - end.length);
  const db = new Database(file);
  change(db);
  db.close();
  const manifest = { ...JSON.parse(json), bytes: statSync(file).size };
  const sealed = Buffer.concat([readFileSync(file), Buffer.from(`\n${JSON.stringify(manifest)}\n`)]);
  writeFileSync(file, `${sealed.toString("latin1")}${createHash("sha256").update(sealed).digest("hex")}\n`, "latin1");
}

describe("a restore changes nothing if the backup is", () => {
  let cwd = "";
  beforeAll(async () => {
    ({ cwd } = await backedUp());
  });
  const change = (sql: string) => (file: string) => forge(file, (db) => db.run(sql));
  /** Changes a stored definition in place, as only a program other than evald does. */
  const redefine = (from: string, to: string) => (file: string) => {
    const text = readFileSync(file, "latin1");
    expect([text.includes(from), from.length]).toEqual([true, to.length]);
    // Other places can be the unused rest of a page.
    writeFileSync(file, text.replaceAll(from, to), "latin1");
    forge(file, () => {});
  };
  const overwrite = (file: string) => {
    const bytes = new Uint8Array(statSync(file).size - 8192).fill(7);
    const whole = readFileSync(file);
    writeFileSync(file, Buffer.concat([whole.subarray(0, 8192), bytes]));
  };
  const cases: [name: string, damage: (file: string) => void, says: RegExp][] = [
    ["damaged", overwrite, /^error: wrong doesn't end with the manifest/],
    [
      "damaged before it was made",
      (file) =>
        forge(file, (db) => {
          db.run("pragma foreign_keys = off");
          db.run("delete from prompts");
        }),
      /^error: wrong is damaged \(foreign key violations\)/,
    ],
    ["cut short", (file) => truncateSync(file, 40_000), /^error: wrong doesn't end with the manifest/],
    ["longer", (file) => appendFileSync(file, "\n"), /^error: wrong doesn't end with the manifest/],
    ["a text file", (file) => writeFileSync(file, "hello\n"), /^error: wrong doesn't end with the manifest/],
    ["empty", (file) => truncateSync(file, 0), /^error: wrong doesn't end with the manifest/],
    [
      "a copy of a database",
      (file) => copyFileSync(join(cwd, "data", "evald.db"), file),
      /^error: wrong doesn't end with the manifest/,
    ],
    [
      "from a development version",
      change("update __drizzle_migrations set hash = 'other'"),
      /^error: wrong .* development version/,
    ],
    [
      "with a foreign trigger",
      change("create trigger evil after insert on api_keys begin update members set role = 'owner'; end"),
      /^error: wrong was changed .* trigger evil\./,
    ],
    ["with a foreign view", change("create view v as select 1"), /^error: wrong was changed .* view v\./],
    ["with a foreign table", change("create table t (a)"), /^error: wrong was changed .* table t\./],
    ["with a foreign index", change("create index i on runs (id)"), /^error: wrong was changed .* index i\./],
    ["without an index", change("drop index runs_by_prompt"), /^error: wrong was changed .* index runs_by_prompt\./],
    [
      "with a changed constraint",
      redefine("`inviter_id` text NOT NULL", "`inviter_id` text         "),
      /^error: wrong was changed .* table invitations\./,
    ],
    [
      "the database of another program",
      change("drop table __drizzle_migrations"),
      /^error: wrong is not an evald database/,
    ],
    [
      "from a newer version",
      change("insert into __drizzle_migrations (hash, created_at) values ('new', 9999999999999)"),
      /^error: wrong .* newer version of evald/,
    ],
  ];
  test.each(cases)("%s", async (_, damage, says) => {
    copyFileSync(join(cwd, "backup"), join(cwd, "wrong"));
    damage(join(cwd, "wrong"));
    expect(await call(["restore", "wrong"], { cwd })).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(says),
    });
    expect(look(join(cwd, "data", "evald.db"))).toEqual(["ok", 20, 1]);
    expect(readdirSync(join(cwd, "data")).filter((name) => /restor/.test(name))).toEqual([]);
  });

  test("changed in a single byte, or in 64", async () => {
    const original = readFileSync(join(cwd, "backup"));
    // The same places in each run, all over the file and in the manifest.
    let state = 1;
    const place = () => {
      state = (state * 48271) % 2147483647;
      return state % original.length;
    };
    const changes = [
      ...Array.from({ length: 24 }, () => Array.from({ length: 64 }, place)),
      ...Array.from({ length: 20 }, () => [place()]),
      ...[-1, -40, -66, -150].map((at) => [original.length + at]),
    ];
    const accepted = [];
    for (const places of changes) {
      const bytes = Buffer.from(original);
      for (const at of places) bytes[at] = (bytes[at] ?? 0) ^ 0x10;
      writeFileSync(join(cwd, "wrong"), bytes);
      const { code, stderr } = await call(["restore", "wrong"], { cwd });
      if (code !== 2 || !stderr.startsWith("error: wrong ")) accepted.push({ places, code, stderr });
    }
    expect([changes.length, accepted]).toEqual([48, []]);
    expect(look(join(cwd, "data", "evald.db"))).toEqual(["ok", 20, 1]);
  }, 60_000);

  test("missing, a folder, or the database itself", async () => {
    const says = async (file: string) => (await call(["restore", file], { cwd })).stderr;
    expect(await says("missing/copy")).toStartWith("error: missing/copy ");
    expect(await says("data")).toStartWith("error: data is not a file");
    for (const name of ["evald.db", "evald.db.restoring"]) {
      copyFileSync(join(cwd, "backup"), join(cwd, "data", name));
      expect(await says(`data/${name}`)).toStartWith(`error: data/${name} is a file of the data directory`);
      expect(look(join(cwd, "data", name))).toEqual(["ok", 20, 1]);
    }
  });

  test("opened while another command uses the database", async () => {
    const db = new Database(join(cwd, "data", "evald.db"));
    db.run("pragma journal_mode = wal");
    db.run("begin");
    db.query("select * from orgs").all();
    expect((await call(["restore", "backup"], { cwd })).stderr).toStartWith("error: data/evald.db is in use");
    db.run("commit");
    db.close();
    expect(look(join(cwd, "data", "evald.db"))).toEqual(["ok", 20, 1]);
  });
});

test.each([
  ["pwrite64", 5],
  ["pwrite64", 40],
  ["fsync", 3],
  ["fsync", 5],
  ["rename", 1],
  ["fsync", 6],
])(
  "a backup killed at %s number %d leaves a complete file or none, and the next one cleans up",
  async (syscall, nth) => {
    const { cwd } = await backedUp();
    const killed = await call(["backup", "copy"], { cwd, under: killedAt(syscall, nth) });
    expect([killed.code, killed.stdout]).not.toEqual([0, "copy\n"]);
    if (existsSync(join(cwd, "copy"))) expect(look(join(cwd, "copy"))).toEqual(["ok", 20, 1]);
    expect((await call(["backup", "copy", "--force"], { cwd })).code).toBe(0);
    expect(look(join(cwd, "copy"))).toEqual(["ok", 20, 1]);
    expect(readdirSync(cwd).sort()).toEqual(["backup", "copy", "data"]);
  },
);

test.each([
  ["pwrite64", 12],
  ["ftruncate", 1],
  ["fsync", 5],
  ["link", 1],
  ["rename", 1],
  ["fsync", 13],
  ["fsync", 14],
])(
  "a restore killed at %s number %d leaves the old or the new database, and the next one works",
  async (syscall, nth) => {
    const { cwd, key } = await backedUp();
    // The row is in a WAL that a killed process left behind.
    const service = await serve({ cwd });
    expect((await client(service.url, key)("POST", "/api/v1/prompts", { text: "Not in the backup" })).status).toBe(201);
    await service.stop("SIGKILL");
    const database = join(cwd, "data", "evald.db");
    expect(statSync(`${database}-wal`).size).toBeGreaterThan(0);
    const killed = await call(["restore", "backup"], { cwd, under: killedAt(syscall, nth) });
    expect([killed.code, killed.stdout]).not.toEqual([0, "data/evald.db\n"]);
    expect([
      ["ok", 20, 2],
      ["ok", 20, 1],
    ]).toContainEqual(look(database));
    expect((await call(["restore", "backup"], { cwd })).code).toBe(0);
    expect(look(database)).toEqual(["ok", 20, 1]);
    const left = readdirSync(join(cwd, "data"));
    expect(left.filter((name) => name.includes("restoring"))).toEqual([]);
    expect(left.filter((name) => statSync(join(cwd, "data", name)).nlink > 1)).toEqual([]);
    const again = await serve({ cwd });
    expect((await client(again.url, key)("GET", "/api/v1/runs")).headers.get("x-total-count")).toBe("20");
    await again.stop();
  },
);

test("a backup in the data folder can be restored and is kept, whatever its name", async () => {
  const { cwd } = await backedUp();
  const data = join(cwd, "data");
  const names: [string, (file: string) => void][] = [
    ["evald.db.restoring-2026-11-20", (file) => copyFileSync(join(cwd, "backup"), file)],
    // The name of a previous database, which a restore removes if it is the current one.
    ["evald.db.before-restore-2026-11-20", (file) => copyFileSync(join(cwd, "backup"), file)],
  ];
  for (const [name, make] of names) {
    make(join(data, name));
    const { code, stderr } = await call(["restore", `data/${name}`], { cwd });
    expect([code, stderr]).toEqual([0, expect.stringContaining(`data/${name}`)]);
    expect(look(join(data, name))).toEqual(["ok", 20, 1]);
    expect(look(join(data, "evald.db"))).toEqual(["ok", 20, 1]);
  }
});

test.skipIf(process.getuid?.() !== 0)(
  "files that root restores into a service user's folder belong to that user",
  async () => {
    const { cwd } = await backedUp();
    mkdirSync(join(cwd, "new"));
    chownSync(join(cwd, "new"), 65534, 65534);
    expect((await call(["--data", "new", "restore", "backup"], { cwd })).code).toBe(0);
    const owners = readdirSync(join(cwd, "new")).map((name) => [name, statSync(join(cwd, "new", name)).uid]);
    expect(owners.sort()).toEqual([
      ["evald.db", 65534],
      ["evald.lock", 65534],
    ]);
  },
);

test("a damaged database is kept with its WAL, which doesn't affect the new one", async () => {
  const { cwd } = await backedUp();
  const data = join(cwd, "data");
  const db = new Database(join(data, "evald.db"));
  db.run("pragma journal_mode = wal");
  db.run("update orgs set name = 'Later'");
  copyFileSync(join(data, "evald.db-wal"), join(cwd, "wal"));
  db.close();
  writeFileSync(join(data, "evald.db"), "no database ".repeat(1000));
  copyFileSync(join(cwd, "wal"), join(data, "evald.db-wal"));
  const restored = await call(["restore", "backup", "--json"], { cwd });
  expect(restored.code).toBe(0);
  const { before } = JSON.parse(restored.stdout);
  expect(existsSync(join(cwd, `${before}-wal`))).toBe(true);
  expect(look(join(data, "evald.db"))).toEqual(["ok", 20, 1]);
  expect((await call(["org", "list"], { cwd })).stdout).not.toContain("Later");
  mkdirSync(join(cwd, "lost"));
  copyFileSync(join(cwd, "wal"), join(cwd, "lost", "evald.db-wal"));
  expect((await call(["--data", "lost", "restore", "backup"], { cwd })).code).toBe(0);
  expect((await call(["--data", "lost", "org", "list"], { cwd })).stdout).not.toContain("Later");
});
