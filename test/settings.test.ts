import { describe, expect, test } from "bun:test";
import { testApp } from "./support/app.ts";
import { serveFakeModel } from "./support/fakemodel.ts";
import { signedIn } from "./support/people.ts";

const settings = async (env: Record<string, string> = {}) => {
  const app = testApp({ env });
  const { get, post } = await signedIn(app);
  return { ...app, post, get: async (path: string) => (await get(path)).body as string };
};

describe("the organisation", () => {
  test("gets another name, zone and limits; empty is the service's", async () => {
    const { post, get, service, a } = await settings();
    const whole = { name: "Acme & Sons", timeZone: "Europe/Berlin", maxRunsAtOnce: "3", maxRunsADay: "" };
    const { status, body } = await post("/settings", whole);
    expect([status, body.includes("Saved."), body.includes("Acme &amp; Sons")]).toEqual([200, true, true]);
    expect(service.orgs.getOrg(a.org)).toMatchObject({
      name: "Acme & Sons",
      timeZone: "Europe/Berlin",
      maxRunsAtOnce: 3,
      maxRunsADay: null,
    });
    expect(await get("/settings")).toContain('value="Europe/Berlin"');
  });

  test.each([
    [{ timeZone: "Mars/Olympus" }, "&quot;Mars/Olympus&quot; is no time zone"],
    [{ name: "B" }, "An organisation named &quot;B&quot; exists already"],
    [{ name: " " }, "name"],
    [{ maxRunsAtOnce: "many" }, "Runs at once: &quot;many&quot; is no limit"],
    [{ maxRunsADay: "0" }, "0 is no limit"],
  ])("%p is refused, and what was typed stands there", async (wrong, detail) => {
    const { post, service, a } = await settings();
    const before = service.orgs.getOrg(a.org);
    const typed = { name: "Typed name", timeZone: "Asia/Tokyo", ...wrong };
    const { status, body } = await post("/settings", typed);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(body).toContain(detail);
    for (const value of Object.values(typed)) expect(body).toContain(`value="${value}"`);
    expect(service.orgs.getOrg(a.org)).toEqual(before);
  });
});

describe("API keys", () => {
  test("a key is made, shown once with ways to use it, works within its scopes, and is revoked", async () => {
    const { post, get, send, service, a } = await settings();
    const { status, body, headers } = await post("/settings/keys", { name: "ci", scope: ["read", "run"], days: "30" });
    const key = /<code id="new-key">(evals_\w{36})<\/code>/.exec(body)?.[1] ?? "";
    expect([status, headers.get("cache-control")]).toEqual([200, "private, no-store"]);
    for (const client of ["curl", "Claude Code", "Cursor", "VS Code", "Codex"])
      expect(body).toContain(`<summary>${client}</summary>`);
    const bearer = { headers: { authorization: `Bearer ${key}` } };
    expect((await send("GET", "/api/v1/whoami", bearer)).body.key).toMatchObject({
      name: "ci",
      scopes: ["read", "run"],
    });
    const page = await get("/settings/keys");
    expect(page).not.toContain(key);
    expect(page).toContain("read, run");
    const { id } = service.keys.listKeys(a.org)[0] as { id: string };
    const gone = await post(`/settings/keys/${id}/revoke`, {});
    expect([gone.status, gone.body.includes("“ci” is revoked")]).toEqual([200, true]);
    expect((await send("GET", "/api/v1/whoami", bearer)).status).toBe(401);
  });

  test("all scopes are no bounds, none is refused", async () => {
    const { post, service, a } = await settings();
    await post("/settings/keys", { name: "all", scope: ["read", "run", "write"], days: "" });
    expect(service.keys.listKeys(a.org)[0]).toMatchObject({ name: "all", scopes: null, expiresAt: null });
    for (const [form, detail] of [
      [{ name: "none", days: "" }, "Choose at least one thing"],
      [{ name: "", scope: "read", days: "" }, "name"],
      [{ name: "odd", scope: "read", days: "-3" }, "The end of the key is not one of the list"],
    ] as const) {
      const { status, body } = await post("/settings/keys", form);
      expect([status, body.includes(detail)]).toEqual([400, true]);
    }
    expect(service.keys.listKeys(a.org).length).toBe(2);
  });

  test("another organisation's key is not found", async () => {
    const { post, service, b } = await settings();
    expect((await post(`/settings/keys/${b.apiKey.id}/revoke`, {})).status).toBe(404);
    expect(service.keys.listKeys(b.org)[0]?.revokedAt).toBeNull();
  });
});

describe("models", () => {
  test("a key is stored encrypted, and forgotten; no page shows it", async () => {
    const { post, get, service, a } = await settings({ EVALD_SECRET_KEY: "ab".repeat(32) });
    const key = "sk-ant-very-secret-0123456789";
    const stored = await post("/settings/models", { provider: "anthropic", key, baseUrl: "" });
    expect([stored.status, stored.body.includes("The key (…6789) is stored")]).toEqual([200, true]);
    expect(service.models.getModel(a.org, "anthropic/x").key).toBe(key);
    expect(stored.body + (await get("/settings/models"))).not.toContain(key);
    expect((await post("/settings/models/forget", { provider: "anthropic" })).body).toContain("The key is forgotten.");
    expect((await post("/settings/models/forget", { provider: "anthropic" })).status).toBe(404);
  });

  test("what cannot be stored says why, and a key that was typed is not sent back", async () => {
    const { post } = await settings({ EVALD_SECRET_KEY: "ab".repeat(32) });
    const key = "sk secret with blanks";
    const { status, body } = await post("/settings/models", { provider: "openai", key, baseUrl: "" });
    expect([status, body.includes("The key must be a key: one line")]).toEqual([400, true]);
    expect(body).not.toContain(key);
    expect((await post("/settings/models", { provider: "acme", key })).status).toBe(400);
    expect(
      (await (await settings()).post("/settings/models", { provider: "openai", key: "sk-1234567890ab" })).body,
    ).toContain("EVALD_SECRET_KEY must be set");
  });

  test("a model is tried with one small call", async () => {
    const fake = serveFakeModel({ scenarios: { llama3: { turns: [{ text: "yes" }] } } });
    const { post } = await settings({ OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"] });
    const { status, body } = await post("/settings/models/test", { model: "openai-compatible/llama3" });
    fake.stop();
    expect([
      status,
      /llama3 answered after \d+ ms: 100 tokens in, 20 out, at a price that nobody states/.test(body),
    ]).toEqual([200, true]);
    const none = await post("/settings/models/test", { model: "openai/gpt-5" });
    expect([none.status, none.body.includes("OPENAI_API_KEY")]).toEqual([400, true]);
  });
});

test("a form that does not stand on a page of this service changes nothing", async () => {
  const { post, service, a } = await settings();
  for (const foreign of ["https://evil.example", "null", "http://localhost:3001"]) {
    const { status } = await post("/settings/keys", { name: "x", scope: "read", days: "" }, { origin: foreign });
    expect([foreign, status]).toEqual([foreign, 403]);
  }
  expect(service.keys.listKeys(a.org).length).toBe(1);
});
