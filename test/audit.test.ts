import { expect, test } from "bun:test";
import { changesOf, recordAudit } from "../src/audit/entries.ts";
import { createKey, revokeKey } from "../src/auth/keys.ts";
import { auditEntries } from "../src/db/tables/audit.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";

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
