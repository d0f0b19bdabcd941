import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as pathJoin } from "node:path";
import { changesOf, recordAudit } from "../src/audit/entries.ts";
import { createKey, revokeKey } from "../src/auth/keys.ts";
import { auditEntries } from "../src/db/tables/audit.ts";
import { importFile } from "../src/exchange/import.ts";
import { testApp } from "./support/app.ts";
import { password, signedIn } from "./support/people.ts";

type App = ReturnType<typeof testApp>;

const entriesOf = ({ db }: App) => db.select().from(auditEntries).orderBy(auditEntries.id).all();

test("work that shares a transaction keeps the request that it belongs to", async () => {
  const app = testApp();
  const { ctx } = app.service;
  const keys = Array.from({ length: 3 }, (_, i) => createKey(ctx, app.a.org, `key ${i}`));
  const prompt = await app.send("POST", "/api/v1/prompts", { body: { text: "Install it" } });
  await Promise.all(
    keys.map(({ key, apiKey }) =>
      app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, {
        body: { urlMap: {} },
        headers: { authorization: `Bearer ${key}`, "user-agent": apiKey.name },
      }),
    ),
  );
  const created = entriesOf(app).filter(({ action }) => action === "evaluation.requested");
  expect(created.map((entry) => [entry.actorKind, entry.actorId, entry.actorName, entry.userAgent]).sort()).toEqual(
    keys.map(({ apiKey: { id, name } }) => ["key", id, name, name]).sort(),
  );
  expect(new Set(created.map(({ requestId }) => requestId)).size).toBe(3);
});

test("without a request, the operator or the service did it", () => {
  const app = testApp();
  const { ctx } = app.service;
  revokeKey({ ...ctx, operator: "root" }, app.a.org, app.a.apiKey.id);
  const [last] = entriesOf(app).slice(-1);
  expect(last).toMatchObject({
    orgId: app.a.org,
    actorKind: "operator",
    actorName: "root",
    action: "key.revoked",
    targetId: app.a.apiKey.id,
    ipAddress: null,
    requestId: null,
  });
  expect(entriesOf(app)[0]).toMatchObject({ actorKind: "service", actorId: null });
});

test("an entry on a page names the person, and where they are", async () => {
  const app = testApp();
  const browser = await signedIn(app, { email: "ada@acme.example" });
  await browser.post(`/settings/keys/${app.a.apiKey.id}/revoke`, { confirmed: "1" }, { "user-agent": "Firefox" });
  const [entry] = entriesOf(app).filter(({ action }) => action === "key.revoked");
  expect(entry).toMatchObject({
    actorKind: "person",
    actorName: "A owner",
    ipAddress: "127.0.0.1",
    userAgent: "Firefox",
    targetId: app.a.apiKey.id,
  });
});

test("no entry changes, and none is deleted before its retention ends or its organization is gone", () => {
  const { service, db, b } = testApp();
  const { ctx } = service;
  recordAudit(ctx, null, "worker.drained", { id: "w" });
  const client = db.$client;
  const count = () => client.query("select count(*) n from audit_entries").get() as { n: number };
  const { n } = count();
  expect(() => client.run("update audit_entries set actor_name = 'x'")).toThrow("never changes");
  expect(() => client.run("delete from audit_entries where org_id is null")).toThrow("kept until");
  expect(() => client.run("delete from audit_entries")).toThrow("kept until");
  expect(count().n).toBe(n);
  client.run("delete from api_keys where org_id = ?", [b.org]);
  client.run("delete from orgs where id = ?", [b.org]);
  client.run("delete from audit_entries where org_id = ?", [b.org]);
  expect(count().n).toBeLessThan(n);
  client.run("insert into audit_retention values (1, ?)", [ctx.now() + 1]);
  client.run("delete from audit_entries");
  expect(count().n).toBe(0);
});

test("changes are those of plain fields, without secrets, and long texts are shortened", () => {
  const before = { name: "a", url: "https://x.example", secret: "s1", tags: ["a"], updatedAt: 1, kept: null };
  const after = { ...before, name: "b", secret: "s2", tags: ["a", "b"], updatedAt: 2, other: undefined };
  expect(changesOf(before, after, { secrets: ["secret"] })).toEqual([
    { field: "name", before: "a", after: "b" },
    { field: "secret" },
    { field: "tags", before: ["a"], after: ["a", "b"] },
  ]);
  const [text, url] = changesOf({}, { text: "x".repeat(600), url: "https://ada:correct-horse@docs.example/" }) as {
    after: string;
  }[];
  expect(text?.after.length).toBe(501);
  expect(url?.after).not.toContain("correct-horse");
});

describe("the log of an organization", () => {
  const app = testApp();
  const { ctx } = app.service;
  const { key } = createKey(ctx, app.a.org, "auditor", { scopes: ["audit"] });
  const read = async (query = "") => {
    const headers = { authorization: `Bearer ${key}` };
    return await app.send("GET", `/api/v1/audit-log${query}`, { headers });
  };

  test("is read page by page, newest first, without those of others", async () => {
    for (let i = 0; i < 5; i++) createKey(ctx, app.b.org, `b${i}`);
    for (let i = 0; i < 25; i++) createKey(ctx, app.a.org, `a${i}`);
    const names: string[] = [];
    for (let before = ""; ; ) {
      const { status, body } = await read(`?action=key.created&limit=10${before && `&before=${before}`}`);
      expect(status).toBe(200);
      names.push(...body.entries.map(({ target }: { target: { name: string } }) => target.name));
      if (body.nextBefore === null) break;
      before = body.nextBefore;
    }
    expect(names).toEqual([...Array.from({ length: 25 }, (_, i) => `a${24 - i}`), "auditor", "test"]);
  });

  test("is filtered by who, what and when", async () => {
    const created = (await app.send("POST", "/api/v1/providers", { body: { name: "Acme" } })).body;
    await app.send("PATCH", `/api/v1/providers/${created.id}`, { body: { name: "Acme 2" } });
    const { body } = await read(`?actor=${app.a.apiKey.id}&action=provider.updated`);
    expect(body.entries).toMatchObject([
      {
        actor: { kind: "key", id: app.a.apiKey.id, name: "test" },
        target: { kind: "provider", id: created.id, name: "Acme 2" },
        changes: [{ field: "name", before: "Acme", after: "Acme 2" }],
        ipAddress: "127.0.0.1",
      },
    ]);
    const [day, tomorrow] = [0, 1].map((days) => new Date(ctx.now() + days * 86_400_000).toISOString().slice(0, 10));
    expect((await read(`?since=${day}&limit=1000`)).body.entries.length).toBeGreaterThan(20);
    expect((await read(`?since=${tomorrow}`)).body.entries).toEqual([]);
    expect((await read(`?until=${day}`)).body.entries).toEqual([]);
    expect((await read("?since=yesterday")).status).toBe(400);
    expect((await read("?action=key.eaten")).status).toBe(400);
    expect((await read("?since=yesterday&format=csv")).status).toBe(400);
  });

  test("is downloaded whole, which is an entry too", async () => {
    const lines = (await read("?format=jsonl")).body
      .trim()
      .split("\n")
      .map((line: string) => JSON.parse(line));
    const rows = (await read("?format=csv")).body.trim().split("\r\n");
    expect(lines[0]).toMatchObject({ action: "audit_log.downloaded", actor: { name: "auditor" } });
    expect(rows.length).toBe(lines.length + 2);
    expect(rows[0]).toStartWith("id,createdAt,actorKind");
  });

  test("needs a key with the scope audit, or an admin", async () => {
    expect((await app.send("GET", "/api/v1/audit-log")).status).toBe(403);
    const headers = { authorization: `Bearer ${key}` };
    expect((await app.send("GET", "/api/v1/prompts", { headers })).status).toBe(403);
    const paths = ["/settings/audit-log", "/settings/audit-log/export?format=jsonl"];
    const admin = await signedIn(app, { role: "admin", email: "admin@acme.example" });
    const member = await signedIn(app, { role: "member", email: "member@acme.example" });
    for (const path of paths) {
      expect((await admin.get(path)).status).toBe(200);
      expect((await member.get(path)).status).toBe(403);
    }
    const tab = 'href="/settings/audit-log"';
    expect((await admin.get("/settings/keys")).body).toContain(tab);
    expect((await member.get("/settings/keys")).body).not.toContain(tab);
  });

  test("is shown with its actors to choose from", async () => {
    const browser = await signedIn(app, { email: "owner@acme.example" });
    const { body } = await browser.get("/settings/audit-log?action=key.created");
    expect(body.match(/data-action="key.created"/g)?.length).toBe(27);
    expect(body).toContain(`<option value="${app.a.apiKey.id}">test</option>`);
    const ofNobody = await browser.get("/settings/audit-log?actor=nobody");
    expect(ofNobody.body).not.toContain("data-action");
  });
});

test("moves with an export that asks for it", async () => {
  const [source, copy] = [testApp(), testApp()];
  const { ctx } = source.service;
  const read = async (scopes: string[], query: string) => {
    const headers = { authorization: `Bearer ${createKey(ctx, source.a.org, "export", { scopes }).key}` };
    return await source.send("GET", `/api/v1/export${query}`, { headers });
  };
  expect((await read(["read"], "?auditLog=1")).status).toBe(403);
  expect((await read(["audit"], "?auditLog=1")).status).toBe(403);
  expect((await read(["read"], "")).body).not.toContain("audit_entry");
  const { body } = await read(["read", "audit"], "?auditLog=1");
  const folder = mkdtempSync(pathJoin(tmpdir(), "evald-audit-"));
  const file = pathJoin(folder, "a.jsonl");
  writeFileSync(file, body);
  const result = importFile(copy.service.ctx, copy.a.org, file);
  rmSync(folder, { recursive: true });
  const withoutOrg = ({ orgId: _, ...entry }: typeof auditEntries.$inferSelect) => entry;
  const exported = entriesOf(source).filter(({ orgId }) => orgId === source.a.org);
  // The export itself is an entry, made before the file begins.
  expect(result.rows.audit_entry).toBe(exported.length);
  const moved = entriesOf(copy).filter(({ id }) => exported.some((entry) => entry.id === id));
  expect(moved.map(withoutOrg)).toEqual(exported.map(withoutOrg));
  expect(new Set(moved.map(({ orgId }) => orgId))).toEqual(new Set([copy.a.org]));
});

test("entries are deleted when they are old, and no earlier", async () => {
  const dayMs = 86_400_000;
  const clock = { now: Date.now() };
  const app = testApp({
    now: () => clock.now,
    monotonicNow: () => clock.now,
    env: { EVALD_KEEP_AUDIT_LOG_DAYS: "30" },
  });
  const { ctx, upkeep } = app.service;
  const first = entriesOf(app).length;
  clock.now += 20 * dayMs;
  createKey(ctx, app.a.org, "later");
  await upkeep.runOnce();
  expect(entriesOf(app).length).toBe(first + 1);
  clock.now += 11 * dayMs;
  await upkeep.runOnce();
  expect(entriesOf(app).map(({ targetName }) => targetName)).toEqual(["later"]);
});

test("sign-ins are recorded for each organization, also those that fail", async () => {
  const app = testApp();
  const browser = await signedIn(app, { email: "ada@acme.example" });
  await browser.post("/sign-out");
  await browser.post("/sign-in", { email: "ada@acme.example", password: "wrong" });
  await browser.post("/sign-in", { email: "hunter2@acme.example", password: "wrong" });
  await browser.post("/sign-in", { email: "ada@acme.example", password });
  // `signedIn` signs in without a request.
  const rows = entriesOf(app)
    .filter(({ action }) => /^sign_/.test(action))
    .slice(1);
  expect(rows.map(({ action, actorKind, actorName, orgId }) => [action, actorKind, actorName, orgId])).toEqual([
    ["sign_out.completed", "person", "A owner", app.a.org],
    ["sign_in.failed", "anonymous", "", app.a.org],
    ["sign_in.failed", "anonymous", "", null],
    ["sign_in.succeeded", "person", "A owner", app.a.org],
  ]);
  expect(JSON.stringify(rows)).not.toContain("hunter2");
});

test("no list of the log scans it or sorts it", () => {
  const { db } = testApp();
  const org = "org_id = 'x' and";
  for (const where of ["", "actor_id = 'a' and", "action = 'key.created' and", "actor_id = 'a' and action = 'b' and"]) {
    const sql = `select * from audit_entries where ${org} ${where} id < 'z' and id >= 'a' order by id desc limit 51`;
    const plan = db.$client.query<{ detail: string }, []>(`explain query plan ${sql}`).all();
    expect(plan.map(({ detail }) => detail)).toEqual([expect.stringMatching(/^SEARCH .* USING INDEX/)]);
  }
});
