import { expect, test } from "bun:test";
import { closeSync, openSync, readdirSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import pino from "pino";
import { closeDb, openDb } from "../src/db/open.ts";
import { testApp } from "./support/app.ts";
import { emptyFolder } from "./support/executable.ts";
import { browse, signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

test("the log contains no link tokens", async () => {
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) });
  for (const base of ["", "/evals"]) {
    const app = testApp({ log, env: { EVALD_BASE_URL: `http://localhost:3000${base}` } });
    const owner = await signedIn(app, { email: "ada@example.com" });
    await owner.post(`${base}/settings/members/invite`, { email: "bea@example.com", role: "member" });
    const { people, shares, prompts } = app.service;
    const [report] = evaluation(app, prompts.createPrompt(app.a.org, { text: "Do it. https://docs.acme.dev" }).id, [
      niceGrade,
    ]);
    const links = [
      people.setupPath(app.b.org),
      people.listInvitations(app.a.org)[0]?.path ?? "",
      people.toResetPath(people.findPerson("ada@example.com")?.id ?? ""),
      new URL(shares.createShare(app.a.org, report?.slug ?? "", { days: 7, withSession: true }).url).pathname.slice(
        base.length,
      ),
    ];
    for (const link of links) {
      for (const path of [link, `${link}/session`]) await browse(app).get(base + path);
      await browse(app).post(base + link, { name: "Bea", password: "too short" });
      expect([link, lines.filter((line) => line.includes(link.split("/")[2] ?? "-"))]).toEqual([link, []]);
    }
  }
  expect(lines.filter((line) => line.includes("/[redacted]")).length).toBeGreaterThan(8);
});

test("database files are readable only for their owner, also those of an older version", () => {
  const folder = emptyFolder();
  const before = process.umask(0o022);
  try {
    for (const existing of [false, true]) {
      if (existing) writeFileSync(join(folder, "evald.db"), "", { mode: 0o644 });
      const db = openDb(folder);
      for (const name of readdirSync(folder))
        expect([name, statSync(join(folder, name)).mode & 0o77]).toEqual([name, 0]);
      expect(readdirSync(folder).sort()).toEqual(["evald.db", "evald.db-shm", "evald.db-wal"]);
      closeDb(db);
      rmSync(join(folder, "evald.db"));
    }
  } finally {
    process.umask(before);
    rmSync(folder, { recursive: true });
  }
});

test("a damaged database found by an export makes the service not ready", async () => {
  const folder = emptyFolder();
  const app = testApp({ dataDir: folder });
  const { db, service, a } = app;
  for (let i = 0; i < 50; i++)
    service.prompts.createPrompt(a.org, { text: `Do it. https://docs.acme.dev ${"x".repeat(3000)}` });
  await service.start();
  expect((await app.send("GET", "/readyz")).status).toBe(200);
  const [table] = db.$client
    .query<{ page: number }, []>("select rootpage page from sqlite_master where name = 'prompts'")
    .all();
  db.$client.run("pragma wal_checkpoint(truncate)");
  const file = openSync(join(folder, "evald.db"), "r+");
  writeSync(file, new Uint8Array(4096).fill(255), 0, 4096, ((table?.page ?? 0) - 1) * 4096);
  closeSync(file);
  db.$client.run("pragma shrink_memory");

  const exported = app.app.handle(
    new Request("http://localhost:3000/api/v1/export", { headers: { authorization: `Bearer ${a.key}` } }),
  );
  const { status, body } = await exported;
  expect(status).toBe(200);
  await expect(new Response(body).text()).rejects.toThrow();
  expect((await app.send("GET", "/readyz")).status).toBe(503);
  await service.stop(0);
  rmSync(folder, { recursive: true });
});

test("a form without a session is at most 64 KiB, with and without a length", async () => {
  const { app } = testApp();
  const send = (path: string, size: number, isChunked: boolean) => {
    const bytes = new TextEncoder().encode(`email=${"a".repeat(size)}`);
    const body = isChunked
      ? new ReadableStream({
          start(stream) {
            stream.enqueue(bytes);
            stream.close();
          },
        })
      : bytes;
    const headers = {
      accept: "text/html",
      origin: "http://localhost:3000",
      "content-type": "application/x-www-form-urlencoded",
    };
    return app.handle(new Request(`http://localhost:3000${path}`, { method: "POST", headers, body }));
  };
  for (const path of ["/sign-in", "/sign-in/forgotten", "/sign-out", "/invite/x", "/prompts"])
    for (const isChunked of [false, true])
      expect([path, (await send(path, 70_000, isChunked)).status]).toEqual([path, 413]);
  expect((await send("/sign-in", 1000, false)).status).toBe(401);
});
