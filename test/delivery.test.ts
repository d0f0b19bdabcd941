import { afterAll, describe, expect, test } from "bun:test";
import { createKey } from "../src/auth/keys.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { requestEval } from "../src/runs/requests.ts";
import { testApp } from "./support/app.ts";
import { niceGrade, runWithReport } from "./support/reports.ts";

const app = testApp({ env: { EVALD_CORS_ORIGINS: "https://app.acme.test, https://ci.acme.test/" } });
const { slug, runId } = runWithReport(app, niceGrade);
const headersOf = (headers: Record<string, string> = {}) => ({ authorization: `Bearer ${app.a.key}`, ...headers });
const fetch = async (path: string, headers: Record<string, string> = {}, method = "GET") =>
  await app.app.handle(new Request(new URL(path, app.baseUrl), { method, headers: headersOf(headers) }));
const report = `/api/v1/reports/${slug}`;

describe("compression", () => {
  test.each(["/openapi.json", report, `${report}/trace?limit=100`, "/docs/rest"])(
    "of %s depends on Accept-Encoding",
    async (path) => {
      const plain = await fetch(path);
      expect([plain.status, plain.headers.get("content-encoding")]).toEqual([200, null]);
      expect(plain.headers.get("vary")).toContain("Accept-Encoding");
      const small = await fetch(path, { "accept-encoding": "br, gzip;q=0.5" });
      expect([small.status, small.headers.get("content-encoding")]).toEqual([200, "gzip"]);
      expect(small.headers.get("vary")).toContain("Accept-Encoding");
      const [text, bytes] = [await plain.text(), await small.bytes()];
      expect(new TextDecoder().decode(Bun.gunzipSync(bytes))).toBe(text);
      expect(bytes.length).toBeLessThan(text.length / 2);
      for (const refusal of [
        "identity",
        "gzip;q=0",
        "gzip; q=0.0",
        "br",
        "gzip;q=0, *",
        "identity, gzip;q=0.5",
        "gzip;q=x",
      ])
        expect((await fetch(path, { "accept-encoding": refusal })).headers.get("content-encoding")).toBeNull();
    },
  );

  test("leaves small responses, streams and responses to forms alone", async () => {
    const gzip = { "accept-encoding": "gzip" };
    expect((await fetch("/api/v1/whoami", gzip)).headers.get("content-encoding")).toBeNull();
    const prompt = createPrompt(app.service.ctx, app.a.org, { text: "See https://docs.test/" });
    const { runIds } = await requestEval(app.service.ctx, app.a.org, prompt.id, { urlMap: {}, trigger: "api" });
    const stream = await fetch(`/api/v1/runs/${runIds[0]}/events`, gzip);
    expect(stream.headers.get("content-encoding")).toBeNull();
    await stream.body?.cancel();
    const form = await fetch(
      "/settings/keys",
      { ...gzip, "content-type": "application/x-www-form-urlencoded" },
      "POST",
    );
    expect([form.headers.get("content-type"), form.headers.get("content-encoding")]).toEqual([
      "text/html; charset=utf-8",
      null,
    ]);
  });
});

describe("an ETag", () => {
  test.each(["/openapi.json", report, "/docs/rest", "/docs/rest.md"])("lets %s return 304", async (path) => {
    const first = await fetch(path);
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^W\/"\w+"$/);
    for (const known of [etag, `"other", ${etag}`, etag.slice(2), "*"]) {
      const again = await fetch(path, { "if-none-match": known, "accept-encoding": "gzip" });
      expect([known, again.status, again.headers.get("etag"), await again.text()]).toEqual([known, 304, etag, ""]);
      expect(again.headers.get("vary")).toBe(first.headers.get("vary"));
    }
    expect((await fetch(path, { "if-none-match": 'W/"other"' })).status).toBe(200);
  });

  test("changes with the report", async () => {
    const { slug } = runWithReport(app, niceGrade);
    const before = (await fetch(`/api/v1/reports/${slug}`)).headers.get("etag") ?? "";
    await app.send("PATCH", `/api/v1/reports/${slug}`, { body: { status: "archived" } });
    expect((await fetch(`/api/v1/reports/${slug}`, { "if-none-match": before })).status).toBe(200);
  });
});

test("caches never store API data, but may store the API description", async () => {
  const cached = async (path: string) => (await fetch(path)).headers.get("cache-control");
  for (const path of ["/api/v1/prompts", report, "/api/v1/none", "/api/v1/export"])
    expect([path, await cached(path)]).toEqual([path, expect.stringContaining("no-store")]);
  const refused = await app.app.handle(new Request(new URL("/api/v1/prompts", app.baseUrl)));
  expect([refused.status, refused.headers.get("cache-control")]).toEqual([401, "private, no-store"]);
  expect(await cached("/openapi.json")).toBe("public, max-age=300, must-revalidate");
});

describe("a HEAD request", () => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => app.app.handle(request) });
  afterAll(() => void server.stop(true));
  const { key } = createKey(app.service.ctx, app.a.org, "reader", { scopes: ["read"] });
  const ask = async (method: string, path: string, more: Record<string, string>) => {
    const headers = { authorization: `Bearer ${key}`, "accept-encoding": "gzip", ...more };
    const asked = new AbortController();
    const response = await globalThis.fetch(new URL(path, server.url), { method, headers, signal: asked.signal });
    const fields = Object.fromEntries(response.headers);
    for (const name of ["x-request-id", "date"]) delete fields[name];
    if (method === "HEAD") expect(await response.text()).toBe("");
    asked.abort();
    return { status: response.status, ...fields };
  };

  test.each<[path: string, headers?: Record<string, string>]>([
    ["/openapi.json"],
    ["/openapi.json", { "if-none-match": "*" }],
    ["/openapi.json", { "accept-encoding": "identity" }],
    [report],
    [report, { "if-none-match": "*" }],
    ["/api/v1/runs"],
    ["/api/v1/runs?limit=0"],
    ["/api/v1/none"],
    ["/api/v1/export"],
    ["/api/mcp"],
    ["/runs"],
    ["/live"],
    [`/api/v1/runs/${runId}/events`],
    ["/docs/rest"],
    ["/docs/rest", { "if-none-match": "*" }],
    ["/account", { accept: "text/html", authorization: "" }],
    ["/prompts/%ff", { accept: "text/html" }],
  ])("for %s returns the status and headers of GET", async (path, headers = {}) => {
    expect(await ask("HEAD", path, headers)).toEqual(await ask("GET", path, headers));
  });
});

describe("CORS", () => {
  const origin = "https://app.acme.test";
  const preflight = (from: string, path = "/api/v1/prompts", other = app) =>
    other.app.handle(
      new Request(new URL(path, other.baseUrl), {
        method: "OPTIONS",
        headers: {
          origin: from,
          "access-control-request-method": "POST",
          "access-control-request-headers": "authorization",
        },
      }),
    );

  test("allows a listed origin to use the API with a key, and without cookies", async () => {
    for (const from of [origin, "https://ci.acme.test"]) {
      const { status, headers } = await preflight(from);
      expect([status, headers.get("access-control-allow-origin"), headers.get("vary")]).toEqual([204, from, "Origin"]);
      expect(headers.get("access-control-allow-headers")).toContain("Authorization");
      expect(headers.get("access-control-allow-credentials")).toBeNull();
    }
    for (const path of ["/api/v1/prompts", "/api/v1/none", "/openapi.json"]) {
      const { headers } = await fetch(path, { origin });
      expect([path, headers.get("access-control-allow-origin")]).toEqual([path, origin]);
      expect(headers.get("access-control-expose-headers")).toContain("X-Total-Count");
      expect(headers.get("vary")).toContain("Origin");
    }
    const body = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    expect((await app.send("POST", "/api/mcp", { body, headers: { origin } })).status).toBe(200);
    expect((await app.send("POST", "/api/mcp", { body, headers: { origin: "https://evil.test" } })).status).toBe(403);
  });

  test.each(["https://evil.test", "http://app.acme.test", "https://app.acme.test:8443", "null"])(
    "doesn't allow another origin: %s",
    async (from) => {
      const asked = await preflight(from);
      expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([401, null]);
      const { headers } = await fetch("/api/v1/prompts", { origin: from });
      expect([headers.get("access-control-allow-origin"), headers.get("vary")]).toEqual([
        null,
        expect.stringContaining("Origin"),
      ]);
    },
  );

  test("is off by default, and never applies to pages", async () => {
    expect(
      (await preflight(origin, "/api/v1/prompts", testApp())).headers.get("access-control-allow-origin"),
    ).toBeNull();
    for (const path of ["/", "/settings/keys", "/docs"]) {
      expect((await preflight(origin, path)).headers.get("access-control-allow-origin")).toBeNull();
      expect((await fetch(path, { origin })).headers.get("access-control-allow-origin")).toBeNull();
    }
    for (const wrong of ["*", "app.acme.test", "https://app.acme.test/path", "null"])
      expect(() => testApp({ env: { EVALD_CORS_ORIGINS: wrong } })).toThrow("EVALD_CORS_ORIGINS");
  });
});
