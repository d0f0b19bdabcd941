import { expect, test } from "bun:test";
import { createKey } from "../src/auth/keys.ts";
import { auditEntries } from "../src/db/tables/audit.ts";
import { checkSecrets } from "../src/db/tables/keys.ts";
import { maxSecrets } from "../src/secrets/schema.ts";
import { readSecrets } from "../src/secrets/secrets.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";

const secretKey = Buffer.alloc(32, 7).toString("base64");
const openApp = (env: Record<string, string> = { EVALD_SECRET_KEY: secretKey }) => testApp({ env });
type App = ReturnType<typeof openApp>;
const value = 'tok/en "of" the+product';
const set = ({ send }: App, name: string, value: unknown, headers = {}) =>
  send("PUT", `/api/v1/secrets/${name}`, { body: { value }, headers });

test("secrets are stored, listed without their values, replaced and deleted, and the audit log says so", async () => {
  const app = openApp();
  const stored = await set(app, "TOKEN", value);
  expect([stored.status, Object.keys(stored.body)]).toEqual([200, ["name", "hosts", "state", "updatedAt"]]);
  expect(stored.body).toMatchObject({ name: "TOKEN", hosts: null, state: "usable" });
  await set(app, "A_TOKEN", value);
  await set(app, "TOKEN", "another value");
  const list = await app.send("GET", "/api/v1/secrets");
  expect(list.body.map(({ name }: { name: string }) => name)).toEqual(["A_TOKEN", "TOKEN"]);
  expect(readSecrets(app.service.ctx, app.a.org, ["TOKEN", "NONE"])).toEqual({
    TOKEN: { value: "another value", hosts: null },
  });
  expect((await app.send("DELETE", "/api/v1/secrets/TOKEN")).status).toBe(200);
  expect((await app.send("DELETE", "/api/v1/secrets/TOKEN")).status).toBe(404);
  const entries = app.db.select().from(auditEntries).all();
  const secrets = entries.filter(({ action }) => action.startsWith("secret."));
  expect(secrets.map(({ action, targetName }) => `${action} ${targetName}`)).toEqual([
    ...["secret.stored TOKEN", "secret.stored A_TOKEN", "secret.stored TOKEN", "secret.deleted TOKEN"],
  ]);
  expect(JSON.stringify([list.body, entries])).not.toContain("the+product");
});

test("secrets need EVALD_SECRET_KEY and the scope write, and belong to one organization", async () => {
  expect((await set(openApp({}), "TOKEN", value)).status).toBe(400);
  const app = openApp();
  const { key } = createKey(app.service.ctx, app.a.org, "ci", { scopes: ["read", "run"] });
  expect((await set(app, "TOKEN", value, { authorization: `Bearer ${key}` })).status).toBe(403);
  await set(app, "TOKEN", value);
  const asB = { headers: { authorization: `Bearer ${app.b.key}` } };
  expect((await app.send("GET", "/api/v1/secrets", asB)).body).toEqual([]);
  expect((await app.send("DELETE", "/api/v1/secrets/TOKEN", asB)).status).toBe(404);
  const prompt = { text: "x", declaredChecks: [{ command: "true", env: { TOKEN: "{{secret.TOKEN}}" } }] };
  expect((await app.send("POST", "/api/v1/prompts", { body: prompt, ...asB })).status).toBe(400);
  // Sealed for its organization and its name.
  app.db.update(checkSecrets).set({ name: "OTHER" }).run();
  expect((await app.send("GET", "/api/v1/secrets")).body).toMatchObject([{ name: "OTHER", state: "unreadable" }]);
  app.db.update(checkSecrets).set({ name: "TOKEN", orgId: app.b.org }).run();
  expect(readSecrets(app.service.ctx, app.b.org, ["TOKEN"])).toEqual({});
});

test.each([
  ["name", "a-b", value],
  ["value", "TOKEN", "short"],
  ["value", "TOKEN", "two lines\nof a secret"],
  ["value", "TOKEN", "schlüssel"],
  ["value", "TOKEN", `${value}${"x".repeat(4096)}`],
  ["value", "TOKEN", 12345678],
])("a secret with an invalid %s is rejected without quoting it: %s, %j", async (field, name, text) => {
  const { status, body } = await set(openApp(), name, text);
  expect([status, body.detail]).toEqual([400, expect.stringContaining(`Invalid ${field}: `)]);
  expect(JSON.stringify(body)).not.toContain(String(text));
});

test("an organization has a limited number of secrets, and can still replace one", async () => {
  const app = openApp();
  for (let i = 0; i < maxSecrets; i++) await set(app, `TOKEN_${i}`, value);
  expect((await set(app, "TOKEN_0", "another value")).status).toBe(200);
  expect((await set(app, "ONE_MORE", value)).status).toBe(409);
});

const url = "https://api.test/";
test.each([
  ["declaredChecks.0.headers", { url, headers: { Authorization: "Bearer {{secret.NONE}}" } }],
  ["declaredChecks.0.headers", { url, headers: { Authorization: "Bearer {{ secret.TOKEN }}" } }],
  ["declaredChecks.0.body", { url, method: "POST", body: "{{secret.NONE}}" }],
  ["declaredChecks.0.env", { command: "true", env: { A: "{{secret.NONE}}" } }],
  ["declaredChecks.0.url", { url: `${url}?key={{secret.NONE}}` }],
  ["declaredChecks.0.url", { url: "https://{{secret.TOKEN}}.test/" }],
  ["declaredChecks.0.url", { url: `${url}{{secret.TOKEN}}?a` }],
  ["declaredChecks.0.url", { url: `${url}?a#{{secret.TOKEN}}` }],
  ["declaredChecks.0.command", { command: "curl {{secret.TOKEN}}" }],
  ["declaredChecks.0.contains", { url, contains: "{{secret.TOKEN}}" }],
  ["declaredChecks.0.json", { url, json: { pointer: "/a", equals: "{{secret.TOKEN}}" } }],
])("a check whose %s has an unknown secret, or one that can't be there, is rejected: %j", async (field, check) => {
  const app = openApp();
  await set(app, "TOKEN", value);
  const { status, body } = await app.send("POST", "/api/v1/prompts", {
    body: { text: "x", declaredChecks: [check] },
  });
  expect([status, body.detail]).toEqual([400, expect.stringContaining(`Invalid ${field}: `)]);
});

test("a secret with hosts is kept from checks of others, also when it is replaced", async () => {
  const app = openApp();
  const hosts = ["API.test", "localhost:8080"];
  const store = (fields: object) => app.send("PUT", "/api/v1/secrets/TOKEN", { body: { value, ...fields } });
  expect((await store({ hosts })).body.hosts).toEqual(["api.test", "localhost:8080"]);
  const create = async (checkUrl: string) => {
    const check = { url: checkUrl, headers: { Authorization: "Bearer {{secret.TOKEN}}" } };
    const { status, body } = await app.send("POST", "/api/v1/prompts", {
      body: { text: "x", declaredChecks: [check] },
    });
    return [status, body.detail];
  };
  const refusal = expect.stringMatching(/declaredChecks\.0\.headers: the secret TOKEN .*api\.test/);
  const others = ["https://other.test/", "https://api.test:8443/", "https://api.test.other.test/", "http://localhost/"];
  for (const other of others) expect(await create(other)).toEqual([400, refusal]);
  for (const own of ["https://api.test/a", "http://localhost:8080/"]) expect((await create(own))[0]).toBe(201);
  // A new value has the hosts of the one before, unless it names others.
  expect((await store({})).body.hosts).toEqual(["api.test", "localhost:8080"]);
  expect((await store({ hosts: null })).body.hosts).toBeNull();
  expect(await create("https://other.test/")).toEqual([201, undefined]);
  for (const wrong of [[], ["a/b"], ["*.test"], ["user@a"], ["a b"]])
    expect((await store({ hosts: wrong })).status).toBe(400);
  const changes = app.db
    .select()
    .from(auditEntries)
    .all()
    .flatMap((entry) => entry.changes ?? []);
  expect(changes.filter(({ field }) => field === "hosts").length).toBe(2);
});

test("a prompt whose secret was deleted can be changed, but for its checks", async () => {
  const app = openApp();
  await set(app, "TOKEN", value);
  const declaredChecks = [{ url: `${url}?key={{secret.TOKEN}}` }];
  const { body } = await app.send("POST", "/api/v1/prompts", { body: { text: "x", declaredChecks } });
  expect(body.declaredChecks).toEqual(declaredChecks);
  await app.send("DELETE", "/api/v1/secrets/TOKEN");
  const patch = (fields: object) => app.send("PATCH", `/api/v1/prompts/${body.id}`, { body: fields });
  expect((await patch({ title: "New" })).status).toBe(200);
  expect((await patch({ declaredChecks })).status).toBe(400);
});

test("admins store and delete secrets on the settings page, which never shows them", async () => {
  const app = openApp();
  const { get, post } = await signedIn(app, { role: "admin" });
  const saved = await post("/settings/secrets", { name: "TOKEN", value, hosts: "api.test, localhost:8080" });
  const rejected = await post("/settings/secrets", { name: "a b", value });
  expect([saved.status, rejected.status]).toEqual([200, 400]);
  const page = await get("/settings/secrets");
  expect(String(page.body)).toContain("api.test, localhost:8080");
  for (const { body } of [saved, rejected, page]) expect(String(body)).not.toContain("the+product");
  const member = await signedIn(app, { role: "member", email: "member@acme.example" });
  expect((await member.post("/settings/secrets", { name: "B", value })).status).toBe(403);
  await post("/settings/secrets/delete", { name: "TOKEN", confirmed: "yes" });
  expect((await app.send("GET", "/api/v1/secrets")).body).toEqual([]);
});
