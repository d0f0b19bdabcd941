import { expect, test } from "bun:test";
import { chmodSync, closeSync, openSync, readdirSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import pino from "pino";
import { listInvitations } from "../../src/auth/invitations.ts";
import { createKey } from "../../src/auth/keys.ts";
import { findPerson } from "../../src/auth/people.ts";
import { toResetPath } from "../../src/auth/resets.ts";
import { setupPath } from "../../src/auth/setup.ts";
import { publishService } from "../../src/cli/running.ts";
import { recordBackup } from "../../src/db/backup-record.ts";
import { closeDb, lockData } from "../../src/db/open.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { createShare } from "../../src/shares/shares.ts";
import { testApp } from "../support/app.ts";
import { emptyFolder } from "../support/executable.ts";
import { browse, signedIn } from "../support/people.ts";
import { evaluation, niceGrade } from "../support/reports.ts";

/** What another process that takes the lock of a data directory gets. */
function lockIn(folder: string): string {
  const program = `const { lockData } = await import(${JSON.stringify(join(import.meta.dir, "../../src/db/open.ts"))});
    try { lockData(${JSON.stringify(folder)}, { pid: 1, since: "now" }); console.log("locked"); }
    catch (error) { console.log(error.code); }`;
  return Bun.spawnSync([process.execPath, "-e", program], { env: process.env }).stdout.toString().trim();
}

test("the log contains no link tokens", async () => {
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) });
  for (const base of ["", "/evals"]) {
    const app = testApp({ log, env: { EVALD_BASE_URL: `http://localhost:3000${base}` } });
    const owner = await signedIn(app, { email: "ada@example.com" });
    await owner.post(`${base}/settings/members/invite`, { email: "bea@example.com", role: "member" });
    const { ctx } = app.service;
    const [report] = evaluation(app, createPrompt(ctx, app.a.org, { text: "Do it. https://docs.acme.dev" }).id, [
      niceGrade,
    ]);
    const links = [
      setupPath(ctx, app.b.org),
      listInvitations(ctx, app.a.org)[0]?.path ?? "",
      toResetPath(ctx, findPerson(ctx, "ada@example.com") ?? { id: "", name: "" }),
      new URL(createShare(ctx, app.a.org, report?.slug ?? "", { days: 7, withSession: true }).url).pathname.slice(
        base.length,
      ),
    ];
    links.push(`/account/email/${"l1nk".repeat(8)}`);
    links.push(`/badges/${"b4dge".repeat(5)}.svg`, `/results/${"r3sult".repeat(4)}`);
    // Every secret in a path is a parameter of one of these names.
    const secretRoutes = (await app.app.loadRoutes())
      .filter(({ path }) => /:(token|badge)\b/.test(path))
      .map(({ path }) => path);
    for (const path of secretRoutes.map((each) => each.slice(base.length).split("/")[1]))
      expect([path, links.some((link) => link.startsWith(`/${path}/`))]).toEqual([path, true]);
    for (const link of links) {
      const encoded = link.replace(/^\/(.)/, (_, first: string) => `/%${first.charCodeAt(0).toString(16)}`);
      for (const path of [link, `${link}/session`, encoded, link.replace(/\/([^/]+)$/, "%2f$1")])
        await browse(app).get(base + path);
      await browse(app).post(base + link, { name: "Bea", password: "too short" });
      expect([link, lines.filter((line) => line.includes(link.split("/").at(-1) ?? "-"))]).toEqual([link, []]);
    }
  }
  expect(lines.filter((line) => line.includes("/[redacted]")).length).toBeGreaterThan(8);
});

test("the files of the data directory are accessible only to their owner, even if an older version created them", async () => {
  const folder = emptyFolder();
  chmodSync(folder, 0o755);
  const before = process.umask(0o022);
  try {
    for (const existing of [false, true]) {
      if (existing)
        for (const name of ["evald.db", "evald.lock"]) writeFileSync(join(folder, name), "", { mode: 0o644 });
      const lock = lockData(folder, { pid: process.pid, since: "now" });
      const app = testApp({ dataDir: folder });
      await signedIn(app);
      recordBackup(folder);
      const unpublishUrl = publishService(folder, { url: app.baseUrl, ownUrl: app.baseUrl, allowPrivate: [] });
      const names = readdirSync(folder).sort();
      expect(names.filter((name) => statSync(join(folder, name)).mode & 0o77)).toEqual([]);
      expect(names).toEqual(expect.arrayContaining(["evald.db", "evald.lock", "evald.secret", "evald.url"]));
      // The files that were opened meanwhile haven't released the lock.
      expect(lockIn(folder)).toBe("conflict");
      lock.release();
      expect(lockIn(folder)).toBe("locked");
      unpublishUrl();
      closeDb(app.db);
      for (const name of readdirSync(folder)) rmSync(join(folder, name));
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
    createPrompt(service.ctx, a.org, { text: `Do it. https://docs.acme.dev ${"x".repeat(3000)}` });
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

test("IDs of another organization's keys and share links are not revealed", async () => {
  const app = testApp();
  const { ctx } = app.service;
  const reportOf = (org: typeof app.a.org) =>
    evaluation({ ...app, a: { ...app.a, org } }, createPrompt(ctx, org, { text: "Do it. https://docs.acme.dev" }).id, [
      niceGrade,
    ])[0]?.slug ?? "";
  const options = { days: 7, withSession: false };
  const foreign = [app.b.apiKey.id, createShare(ctx, app.b.org, reportOf(app.b.org), options).id];
  const slug = reportOf(app.a.org);
  for (const id of [...foreign, crypto.randomUUID()]) {
    expect(createKey(ctx, app.a.org, "x", { id }).apiKey.name).toBe("x");
    expect(createShare(ctx, app.a.org, slug, { ...options, id }).state).toBe("active");
  }
  const { id } = createKey(ctx, app.a.org, "x").apiKey;
  expect(() => createKey(ctx, app.a.org, "x", { id })).toThrow(expect.objectContaining({ code: "conflict" }));
});

test("a mail server's echo of what it was sent is not logged", async () => {
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => void socket.write("220 mail.test\r\n"),
      data(socket, bytes) {
        const line = bytes.toString().trim();
        socket.write(line.startsWith("EHLO") ? "250-mail.test\r\n250 AUTH PLAIN LOGIN\r\n" : `535 no: ${line}\r\n`);
      },
    },
  });
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) });
  const app = testApp({
    log,
    env: {
      EVALD_SMTP_URL: `smtp://evald:mail-secret-1@127.0.0.1:${server.port}`,
      EVALD_MAIL_FROM: "evald@example.com",
    },
  });
  const owner = await signedIn(app);
  const { location } = await owner.post("/settings/members/invite", { email: "bea@example.com", role: "member" });
  server.stop(true);
  expect(location).toBe("/settings/members?done=unmailed");
  const secrets = ["mail-secret-1", Buffer.from("\0evald\0mail-secret-1").toString("base64")];
  expect(lines.filter((line) => line.includes("could not send email")).length).toBe(1);
  expect(lines.filter((line) => secrets.some((secret) => line.includes(secret)))).toEqual([]);
});

test("signing out fails when the session can't be deleted", async () => {
  const app = testApp();
  const person = await signedIn(app);
  app.db.$client.run("pragma query_only = on");
  expect((await person.post("/sign-out")).status).toBe(503);
  app.db.$client.run("pragma query_only = off");
  expect((await person.get("/account")).status).toBe(200);
  expect((await person.post("/sign-out")).status).toBe(303);
  expect((await person.get("/account")).status).toBe(303);
});

test("an organization invites 50 people an hour", async () => {
  let at = Date.now();
  const app = testApp({ now: () => at });
  const owner = await signedIn(app);
  const invite = async (i: number) =>
    (await owner.post("/settings/members/invite", { email: `p${i}@example.com`, role: "member" })).status;
  const statuses: number[] = [];
  for (let i = 0; i < 51; i++) statuses.push(await invite(i));
  expect(statuses).toEqual([...Array(50).fill(303), 429]);
  at += 3660_000;
  expect(await invite(52)).toBe(303);
});
