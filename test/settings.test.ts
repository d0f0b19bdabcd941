import { describe, expect, test } from "bun:test";
import { listKeys } from "../src/auth/keys.ts";
import { getOrg } from "../src/auth/orgs.ts";
import { getModel } from "../src/models/models.ts";
import { testApp } from "./support/app.ts";
import { serveFakeModel } from "./support/fake-model.ts";
import { signedIn } from "./support/people.ts";

const settings = async (env: Record<string, string> = {}) => {
  const app = testApp({ env });
  const { get, post } = await signedIn(app);
  return { ...app, post, get: async (path: string) => (await get(path)).body as string };
};

describe("the organization", () => {
  test("can change its name, time zone and limits, and an empty value means the server's", async () => {
    const { post, get, service, a } = await settings();
    const whole = { name: "Acme & Sons", timeZone: "Europe/Berlin", maxRunsAtOnce: "3", maxRunsADay: "" };
    const { status, body } = await post("/settings", whole);
    expect([status, body.includes('role="status"'), body.includes("Acme &amp; Sons")]).toEqual([200, true, true]);
    expect(getOrg(service.ctx, a.org)).toMatchObject({
      name: "Acme & Sons",
      timeZone: "Europe/Berlin",
      maxRunsAtOnce: 3,
      maxRunsADay: null,
    });
    expect(await get("/settings")).toContain('value="Europe/Berlin"');
    const separatorOnly = { ...whole, judgeModels: " , " };
    expect((await post("/settings", separatorOnly)).status).toBe(200);
    expect(getOrg(service.ctx, a.org).judgeModels).toBeNull();
  });

  test.each([
    [{ timeZone: "Mars/Olympus" }, "Mars/Olympus"],
    [{ name: "B" }, "&quot;B&quot;"],
    [{ name: " " }, "Must be 1 to 200 characters"],
    [{ maxRunsAtOnce: "many" }, "&quot;many&quot;"],
    [{ maxRunsADay: "0" }, "integer from 1 to"],
    [{ maxUsdARun: "0" }, "greater than 0"],
  ])("can't be changed to %p, and the submitted values are kept", async (wrong, detail) => {
    const { post, service, a } = await settings();
    const before = getOrg(service.ctx, a.org);
    const typed = { name: "Typed name", timeZone: "Asia/Tokyo", ...wrong };
    const { status, body } = await post("/settings", typed);
    expect(status).toBeGreaterThanOrEqual(400);
    const errors = [...body.matchAll(/(?:role="alert"|class="wrong"[^>]*)>([^<]*)/g)].map(([, text]) => text);
    expect(errors.join("\n")).toContain(detail);
    for (const value of Object.values(typed)) expect(body).toContain(`value="${value}"`);
    expect(getOrg(service.ctx, a.org)).toEqual(before);
  });
});

describe("an API key", () => {
  test("is created, shown once with examples, works within its scopes, and is revoked", async () => {
    const { post, get, send, service, a } = await settings();
    // The form offers few rights for a limited time.
    const offered = await get("/settings/keys");
    expect([...offered.matchAll(/value="(\w+)"[^>]* (?:checked|selected)/g)].map(([, value]) => value)).toEqual([
      "read",
      "run",
      "90",
    ]);
    const { status, body, headers } = await post("/settings/keys", { name: "ci", scopes: ["read", "run"], days: "30" });
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
    const { id } = listKeys(service.ctx, a.org)[0] as { id: string };
    const gone = await post(`/settings/keys/${id}/revoke`, { confirmed: "1" });
    expect([gone.status, gone.body.includes('role="status"')]).toEqual([200, true]);
    expect((await send("GET", "/api/v1/whoami", bearer)).status).toBe(401);
  });

  test("with all scopes has no restriction, and can't be created without a scope", async () => {
    const { post, service, a } = await settings();
    await post("/settings/keys", { name: "all", scopes: ["read", "run", "write", "delete"], days: "" });
    expect(listKeys(service.ctx, a.org)[0]).toMatchObject({ name: "all", scopes: null, expiresAt: null });
    for (const form of [
      { name: "none", days: "" },
      { name: "", scopes: "read", days: "" },
      { name: "odd", scopes: "read", days: "-3" },
    ]) {
      const { status, body } = await post("/settings/keys", form as Record<string, string>);
      expect([status, body.includes('role="alert"')]).toEqual([400, true]);
    }
    expect(listKeys(service.ctx, a.org).length).toBe(2);
  });

  test("of another organization does not exist", async () => {
    const { post, service, b } = await settings();
    expect((await post(`/settings/keys/${b.apiKey.id}/revoke`, { confirmed: "1" })).status).toBe(404);
    expect(listKeys(service.ctx, b.org)[0]?.revokedAt).toBeNull();
  });
});

describe("the key of a model", () => {
  test("is stored encrypted, can be removed, and is on no page", async () => {
    const { post, get, service, a } = await settings({ EVALD_SECRET_KEY: "ab".repeat(32) });
    const key = "sk-ant-very-secret-0123456789";
    const stored = await post("/settings/models", { provider: "anthropic", key, baseUrl: "" });
    expect([stored.status, stored.body.includes("…6789")]).toEqual([200, true]);
    expect(getModel(service.ctx, a.org, "anthropic/x").key).toBe(key);
    expect(stored.body + (await get("/settings/models"))).not.toContain(key);
    expect((await post("/settings/models/forget", { provider: "anthropic" })).status).toBe(200);
    expect((await post("/settings/models/forget", { provider: "anthropic" })).status).toBe(404);
  });

  test("is not sent back with an error, which gives the reason", async () => {
    const { post } = await settings({ EVALD_SECRET_KEY: "ab".repeat(32) });
    const key = "sk secret with blanks";
    const { status, body } = await post("/settings/models", { provider: "openai", key, baseUrl: "" });
    expect([status, body.includes('role="alert"')]).toEqual([400, true]);
    expect(body).not.toContain(key);
    expect((await post("/settings/models", { provider: "acme", key })).status).toBe(400);
    expect(
      (await (await settings()).post("/settings/models", { provider: "openai", key: "sk-1234567890ab" })).body,
    ).toMatch(/role="alert">[^<]*EVALD_SECRET_KEY/);
  });

  test("is tested with one small call", async () => {
    const fake = serveFakeModel({ scenarios: { llama3: { turns: [{ text: "yes" }] } } });
    const { post } = await settings({ OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"] });
    const { status, body } = await post("/settings/models/test", { model: "openai-compatible/llama3" });
    fake.stop();
    expect([status, /role="status">[^<]*llama3/.test(body)]).toEqual([200, true]);
    const none = await post("/settings/models/test", { model: "openai/gpt-5" });
    expect([none.status, /role="alert">[^<]*OPENAI_API_KEY/.test(none.body)]).toEqual([400, true]);
  });
});

describe("the base URL of an organization's key", () => {
  const key = "sk-1234567890abcdef";
  const withServer = async (env: Record<string, string> = {}) => {
    const requests: string[] = [];
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        requests.push(await request.text());
        return Response.json({ error: { message: "an internal secret" } }, { status: 500 });
      },
    });
    const { port } = server.url;
    const app = await settings({ EVALD_SECRET_KEY: "ab".repeat(32), ...env });
    const test = async (baseUrl: string) => {
      const stored = await app.post("/settings/models", { provider: "openai-compatible", key, baseUrl });
      const tried = await app.post("/settings/models/test", { model: "openai-compatible/x" });
      return { stored: stored.status, tried: tried.status, body: String(tried.body) };
    };
    return { port, requests, test, stop: () => server.stop(true) };
  };

  test("can't be a private address or another port", async () => {
    const { port, requests, test, stop } = await withServer();
    for (const url of [
      `http://127.0.0.1:${port}/v1`,
      `http://[::ffff:127.0.0.1]:${port}`,
      "http://2130706433/",
      "http://169.254.169.254/latest/meta-data",
      "http://10.0.0.1/v1",
      "http://[fd00:ec2::254]/",
      `https://api.example.com:${port}/v1`,
      "http://localhost/v1",
    ]) {
      const { stored, body } = await test(url);
      expect([url, stored, body.includes("internal secret")]).toEqual([url, 400, false]);
    }
    expect(requests).toEqual([]);
    stop();
  });

  test("can be a private address that the operator allows", async () => {
    const { port, requests, test, stop } = await withServer({ EVALD_ALLOW_PRIVATE: "127.0.0.1" });
    const { stored, tried } = await test(`http://127.0.0.1:${port}/v1`);
    expect([stored, tried, requests.length]).toEqual([200, 400, 1]);
    expect(JSON.parse(requests[0] ?? "")).toMatchObject({ model: "x" });
    stop();
  });
});

test.each(["\0", "a\u0000b", "a\nb", "\u001b[31mred"])(
  "a name with control characters is rejected: %j",
  async (name) => {
    const app = testApp();
    const { post } = await signedIn(app);
    for (const form of ["/settings", "/settings/keys", "/account/name"])
      expect([form, (await post(form, { name })).status]).toEqual([form, 400]);
  },
);

test("a form that isn't from a page of this service changes nothing", async () => {
  const { post, service, a } = await settings();
  for (const foreign of ["https://evil.example", "null", "http://localhost:3001"]) {
    const { status } = await post("/settings/keys", { name: "x", scopes: "read", days: "" }, { origin: foreign });
    expect([foreign, status]).toEqual([foreign, 403]);
  }
  expect(listKeys(service.ctx, a.org).length).toBe(1);
});
