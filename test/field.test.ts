import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKey } from "../src/auth/keys.ts";
import { fieldFriction } from "../src/db/tables/field.ts";
import { exportOrg } from "../src/exchange/export.ts";
import { importFile } from "../src/exchange/import.ts";
import { changeFieldFriction, listFieldFriction } from "../src/field/field.ts";
import { reportFriction } from "../src/field/reports.ts";
import { fingerprint } from "../src/grading/findings/finding.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const path = "/api/v1/field-friction";
const page = "https://docs.example.com/upload";
const report = { where: page, tried: "Ran the sample.", happened: "AttributeError: no attribute 'files'" };

/** A service and a key of A that can only report friction. `send` uses A's other key. */
function setUp(now?: () => number) {
  const app = testApp(now ? { now } : {});
  const { key } = createKey(app.service.ctx, app.a.org, "field", { scopes: ["report_friction"] });
  const headers = { authorization: `Bearer ${key}` };
  const post = (body: unknown) => app.send("POST", path, { body, headers });
  const list = async (query = "") => (await app.send("GET", `${path}?${query}`)).body;
  return { ...app, key, headers, post, list };
}

describe("a key for reporting friction", () => {
  test("can send reports and use no other endpoint, page or tool", async () => {
    const { app, send, post, headers, key } = setUp();
    expect((await post(report)).status).toBe(201);
    const id = crypto.randomUUID();
    const refused = (await app.loadRoutes())
      .filter(
        ({ path: route, method }) =>
          route.startsWith("/api/v1/") && !(method === "POST" && [path, "/api/v1/field-sessions"].includes(route)),
      )
      .filter(({ path: route }) => route !== "/api/v1/oidc/exchange")
      .map(({ method, path: route }) => [method, route.replace(/:\w+/g, id)] as const);
    expect(refused.length).toBeGreaterThan(60);
    for (const [method, route] of refused) {
      const body = method === "GET" || method === "DELETE" ? undefined : {};
      expect([method, route, (await send(method, route, { body, headers })).status]).toEqual([method, route, 403]);
    }
    for (const route of ["/reports", "/friction/field"])
      expect([route, (await send("GET", route, { headers })).status]).toEqual([route, 401]);

    const { ask, call } = rpc({ send }, key);
    const { tools } = (await ask("tools/list")).result;
    expect(tools.map(({ name }: { name: string }) => name)).toEqual(["report_friction"]);
    expect((await ask("tools/call", { name: "list_reports", arguments: {} })).error.code).toBe(-32602);
    for (const method of ["resources/list", "prompts/list"]) expect((await ask(method)).error.code).toBe(-32601);
    expect(await call("report_friction", report)).toEqual({ id: expect.any(String), receivedAt: expect.any(String) });
  });

  test("has no other scope, and other keys don't see its tool", async () => {
    const { send, service, a } = setUp();
    expect(() => createKey(service.ctx, a.org, "x", { scopes: ["read", "report_friction"] })).toThrow("combined");
    const { ask } = rpc({ send });
    const { tools } = (await ask("tools/list")).result;
    expect(tools.some(({ name }: { name: string }) => name === "report_friction")).toBe(false);
    const { key } = createKey(service.ctx, a.org, "reader", { scopes: ["read"] });
    const headers = { authorization: `Bearer ${key}` };
    expect((await send("POST", path, { body: report, headers })).status).toBe(403);
  });

  test("can send 60 reports in 10 minutes", async () => {
    let at = Date.UTC(2026, 10, 21);
    const { post, service, send, a, list } = setUp(() => at);
    for (let i = 0; i < 60; i++) expect((await post(report)).status).toBe(201);
    const refused = await post(report);
    expect([refused.status, refused.body.error, refused.headers.get("retry-after")]).toEqual([
      429,
      "rate_limited",
      "600",
    ]);
    const other = createKey(service.ctx, a.org, "other", { scopes: ["report_friction"] });
    const headers = { authorization: `Bearer ${other.key}` };
    expect((await send("POST", path, { body: report, headers })).status).toBe(201);
    at += 10 * 60_000;
    expect((await post(report)).status).toBe(201);
    expect((await list()).map(({ reports }: { reports: number }) => reports)).toEqual([62]);
  });
});

describe("a report", () => {
  test("is stored without secrets and control characters", async () => {
    const { post, send, service, a, list } = setUp();
    const secret = `ghp_${"aB3dE5fG7h".repeat(4)}`.slice(0, 40);
    await post({
      where: "https://user:hunter2secret@docs.example.com/a?access_token=9f8e7d6c5b4a39281706f5e4d3c2b1a0#top",
      tried: `curl -H "Authorization: Bearer ${a.key}"\u0007\r\n-H "X: ${secret}"`,
      happened: `<script>alert(1)</script> ${secret}`,
      agent: `agent ${secret}`,
    });
    const [{ id, where }] = await list();
    const { latest, title } = (await send("GET", `${path}/${id}`)).body;
    const stored = JSON.stringify([where, latest, title]);
    for (const text of [secret, a.key, "hunter2secret", "9f8e7d6c5b4a", "\\u0007", "#top"])
      expect(stored).not.toContain(text);
    expect(latest[0].tried).toContain("\n");
    expect((await send("GET", `/friction/field/${id}`)).body).toContain("&lt;script>alert(1)&lt;/script>");
    expect(listFieldFriction(service.ctx, a.org, {}, { limit: 9, offset: 0 }).total).toBe(1);
  });

  test.each([
    ["where", { ...report, where: " " }],
    ["tried", { ...report, tried: "\u0007" }],
    ["happened", { where: page, tried: "x" }],
    ["category", { ...report, category: "annoying" }],
    ["happened", { ...report, happened: "x".repeat(2001) }],
  ])("with an invalid %s is rejected", async (field, body) => {
    const { status, body: answer } = await setUp().post(body);
    expect([status, answer.detail]).toEqual([400, expect.stringContaining(field)]);
  });

  test("is grouped with others of the same place and category, of which the newest 20 are kept", async () => {
    const { post, send, list } = setUp();
    for (const where of [`${page}/`, `${page}#python`, "acme login 12", "acme Login  3"])
      await post({ ...report, where });
    for (let i = 0; i < 25; i++) await post({ ...report, happened: `Attempt ${i}` });
    await post({ ...report, category: "broken_sample" });
    const found = await list();
    expect(found.map(({ where, category, reports }: Record<string, unknown>) => [where, category, reports])).toEqual([
      [page, "broken_sample", 1],
      [page, "other", 27],
      ["acme login 12", "other", 2],
    ]);
    const { latest } = (await send("GET", `${path}/${found[1].id}`)).body;
    expect([latest.length, latest[0].happened, latest.at(-1).happened]).toEqual([20, "Attempt 24", "Attempt 5"]);
  });

  test("is verified if a published run hit friction at the same place", async () => {
    const { service, a, post, list, send, ...app } = setUp();
    const prompt = createPrompt(service.ctx, a.org, { title: "Upload", text: "Upload. https://docs.example.com" });
    await post(report);
    await post({ ...report, category: "slow" });
    expect((await list("verified=true")).length).toBe(0);
    const [friction] = niceGrade.frictions as [(typeof niceGrade.frictions)[number]];
    const print = fingerprint("broken_sample", `agent ${page}`);
    evaluation({ ...app, service, a, send }, prompt.id, [
      { ...niceGrade, frictions: [{ ...friction, fingerprint: print }], recommendations: [] },
    ]);
    const [verified, ...others] = await list("verified=true");
    expect(verified).toMatchObject({ isVerified: true, friction: [print], category: "other", state: "open" });
    expect(others).toEqual([]);
    expect((await list("verified=false")).map(({ category }: { category: string }) => category)).toEqual(["slow"]);
    const { body } = await send("GET", `/api/v1/friction/${print}?promptId=${prompt.id}`);
    expect(body.field).toEqual([expect.objectContaining({ id: verified.id, reports: 1 })]);
    expect((await send("GET", `/friction/${print}?promptId=${prompt.id}`)).body).toContain(
      `/friction/field/${verified.id}`,
    );
  });
});

describe("field friction", () => {
  test("is resolved, reported again, dismissed and reopened", async () => {
    const { post, send, list } = setUp();
    await post(report);
    const [{ id }] = await list();
    const change = async (body: object) => (await send("PATCH", `${path}/${id}`, { body })).body;
    expect(await change({ state: "resolved", reason: "Fixed" })).toMatchObject({
      ...{ state: "resolved", reason: "Fixed", changedBy: 'the API key "test"' },
    });
    await post(report);
    expect(await list("state=regressed")).toHaveLength(1);
    expect((await send("PATCH", `${path}/${id}`, { body: { state: "dismissed" } })).status).toBe(400);
    await change({ state: "dismissed", reason: "On purpose" });
    await post(report);
    expect(await list()).toEqual([]);
    expect(await list("state=dismissed")).toEqual([expect.objectContaining({ reports: 3, reason: "On purpose" })]);
    expect(await change({ state: "open" })).toMatchObject({ state: "open", reason: null });
  });

  test("belongs to one organization", async () => {
    const { post, list, send, b } = setUp();
    await post(report);
    const [{ id }] = await list();
    const headers = { authorization: `Bearer ${b.key}` };
    expect((await send("GET", path, { headers })).body).toEqual([]);
    expect((await send("GET", `${path}/${id}`, { headers })).status).toBe(404);
    const body = { state: "resolved" };
    expect((await send("PATCH", `${path}/${id}`, { body, headers })).status).toBe(404);
    expect((await list("state=open")).length).toBe(1);
  });

  test("is deleted to make room only after it was closed", async () => {
    const { service, a, db } = setUp();
    const add = (where: string) => reportFriction(service.ctx, a.org, "k", { ...report, where });
    const list = () => listFieldFriction(service.ctx, a.org, {}, { limit: 1000, offset: 0 });
    add(page);
    const [row] = db.select().from(fieldFriction).all() as [typeof fieldFriction.$inferSelect];
    db.transaction((tx) => {
      for (let i = 1; i < 1000; i++)
        tx.insert(fieldFriction)
          .values({
            ...row,
            id: crypto.randomUUID(),
            fingerprint: `${i}`.padStart(16, "0"),
            fingerprints: [],
            place: `${i}`,
          })
          .run();
    });
    expect(() => add("one more")).toThrow("1000 open");
    add(page);
    const closed = list().items.find(({ where }) => where === "7")?.id ?? "";
    changeFieldFriction(service.ctx, a.org, closed, { state: "resolved" }, "Ada");
    add("one more");
    const { items, total } = list();
    expect([total, items.some(({ where }) => where === "one more"), items.some(({ id }) => id === closed)]).toEqual([
      ...[1000, true, false],
    ]);
  });

  test("is exported and imported with its reports", async () => {
    const { post, list, service, a } = setUp();
    await post(report);
    await post({ ...report, where: "acme login" });
    const folder = mkdtempSync(join(tmpdir(), "evald-field-"));
    try {
      const file = join(folder, "a.jsonl");
      writeFileSync(file, [...exportOrg(service.ctx, a.org, {})].join(""));
      const other = setUp();
      const { rows } = importFile(other.service.ctx, other.a.org, file);
      expect(rows).toMatchObject({ field_friction: 2, field_report: 2 });
      expect(await other.list()).toEqual(await list());
      expect(importFile(other.service.ctx, other.a.org, file)).toMatchObject({ rows: {}, there: 4 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("is filtered and changed on its pages", async () => {
    const { service, post, list, a, ...app } = setUp();
    const member = await signedIn({ ...app, service, a }, { role: "member" });
    expect((await member.get("/friction/field")).body).toContain("/docs/field");
    await post(report);
    const [{ id }] = await list();
    expect((await member.get("/friction/field?verified=false&state=open")).body).toContain(`/friction/field/${id}`);
    expect((await member.get("/friction/field?verified=true")).body).not.toContain(`/friction/field/${id}`);
    const act = (form: Record<string, string>) => member.post(`/friction/field/${id}/state`, form);
    expect((await act({ state: "regressed" })).status).toBe(400);
    expect((await act({ state: "dismissed", reason: " " })).status).toBe(400);
    expect((await act({ state: "dismissed", reason: "On purpose" })).status).toBe(303);
    expect(await list("state=dismissed")).toEqual([expect.objectContaining({ changedBy: expect.any(String) })]);
    const viewer = await signedIn({ ...app, service, a }, { role: "viewer" });
    expect((await viewer.get(`/friction/field/${id}`)).body).not.toContain("/state");
    expect((await viewer.post(`/friction/field/${id}/state`, { state: "open" })).status).toBe(403);
  });
});
