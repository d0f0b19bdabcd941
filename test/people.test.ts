import { Database } from "bun:sqlite";
import { describe, expect, spyOn, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { createOrg } from "../src/auth/orgs.ts";
import { setupPath } from "../src/auth/setup.ts";
import { people, signIns } from "../src/db/tables/people.ts";
import { testApp } from "./support/app.ts";
import { emptyFolder } from "./support/executable.ts";
import { browse, cookiesOf, password, signedIn } from "./support/people.ts";

const ada = { name: "Ada", email: "Ada@Example.com", password };

describe("the first owner", () => {
  test("is created by the setup link, once, and can sign out and in again", async () => {
    const app = testApp();
    const path = setupPath(app.service.ctx, app.a.org);
    const browser = browse(app);
    expect((await browser.get(path)).body).toContain(`action="${path}"`);
    const hash = spyOn(Bun.password, "hash");
    const made = await browser.post(path, ada);
    // The hash has the default cost.
    expect(hash.mock.calls).toEqual([[password]]);
    hash.mockRestore();
    expect([made.status, made.location]).toEqual([303, "/"]);
    expect(made.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^evald\.session_token=[^;]+; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/),
    ]);
    expect((await browser.get("/")).body).toContain('<p class="org">A</p>');

    const out = await browser.post("/sign-out");
    expect([out.status, out.location, browser.cookie()]).toEqual([303, "/sign-in", ""]);
    // The old cookie is no longer valid.
    expect((await browse(app, cookiesOf(made.headers)).get("/runs/x")).location).toBe("/sign-in?next=%2Fruns%2Fx");

    const again = await browser.post("/sign-in", { email: " ada@EXAMPLE.com", password, next: "/runs/x?a=1" });
    expect([again.status, again.location]).toEqual([303, "/runs/x?a=1"]);
    expect((await browser.get("/runs/x")).status).toBe(404);

    for (const used of [
      await browse(app).get(path),
      await browse(app).post(path, { ...ada, email: "eve@example.com" }),
    ])
      expect(used.status).toBe(404);
    expect(() => setupPath(app.service.ctx, app.a.org)).toThrow();
  });

  test("names the organization, whose current name is filled in", async () => {
    const app = testApp();
    const path = setupPath(app.service.ctx, app.a.org);
    const browser = browse(app);
    const { body } = await browser.get(path);
    expect(/<input[^>]*name="orgName"[^>]*>/.exec(body)?.[0]).toContain('value="A"');
    for (const orgName of [" ", "B"]) {
      const refused = await browser.post(path, { ...ada, orgName });
      expect([orgName, refused.status >= 400, refused.body.includes(`value="${orgName}"`)]).toEqual([
        orgName,
        true,
        true,
      ]);
    }
    // Nothing was created, so the link still works.
    expect(app.db.select().from(people).all()).toEqual([]);
    expect((await browser.post(path, { ...ada, orgName: " Acme " })).status).toBe(303);
    expect((await browser.get("/")).body).toContain('<p class="org">Acme</p>');
  });

  test("who is already signed in only confirms, and lands in the new organization", async () => {
    const app = testApp();
    const browser = await signedIn(app);
    const path = setupPath(app.service.ctx, app.b.org);
    const { body } = await browser.get(path);
    const [form = ""] = /<form[^>]*action="\/setup[\s\S]*?<\/form>/.exec(body) ?? [];
    expect(form).not.toMatch(/<input(?! type="hidden")/);
    expect((await browser.post(path)).location).toBe("/");
    expect((await browser.get("/")).body).toContain("<summary>B</summary>");
    expect((await browse(app).get(path)).status).toBe(404);
  });

  test("with an account lands in the new organization, by password or after signing in", async () => {
    const app = testApp();
    const { email } = await signedIn(app);
    const { ctx } = app.service;
    const first = browse(app);
    expect((await first.post(setupPath(ctx, app.b.org), { email, password, name: "" })).status).toBe(303);
    expect((await first.get("/prompts")).body).toContain("<summary>B</summary>");

    const path = setupPath(ctx, createOrg(ctx, "C").id);
    const { body } = await browse(app).get(path);
    const [, signInPath = ""] = /<a href="(\/sign-in\?next=[^"]+)"/.exec(body) ?? [];
    const next = new URL(signInPath, app.baseUrl).searchParams.get("next") ?? "";
    expect((await browse(app).post("/sign-in", { email, password, next })).location).toBe(path);
  });

  test("is created once, even by two concurrent requests", async () => {
    const app = testApp();
    const path = setupPath(app.service.ctx, app.a.org);
    const answers = await Promise.all(
      ["one", "two"].map((name) => browse(app).post(path, { name, email: `${name}@example.com`, password })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 404]);
  });

  test("isn't created by an invalid, modified, foreign or expired setup link", async () => {
    let at = Date.parse("2026-11-21T09:00:00Z");
    const app = testApp({ now: () => at });
    const path = setupPath(app.service.ctx, app.a.org);
    const foreign = setupPath(testApp().service.ctx, app.a.org);
    const [, body = "", signature = ""] = /^\/setup\/([^.]+)\.(.+)$/.exec(path) ?? [];
    const other = Buffer.from(Buffer.from(body, "base64url").toString().replace(app.a.org, app.b.org));
    for (const wrong of ["/setup/x", "/setup/a.b", foreign, `/setup/${other.toString("base64url")}.${signature}`]) {
      expect((await browse(app).get(wrong)).status).toBe(404);
    }
    expect((await browse(app).get(path)).status).toBe(200);
    at += 3 * 24 * 3600_000;
    expect((await browse(app).post(path, ada)).status).toBe(404);
  });

  test.each([
    [{ ...ada, password: "too short" }, "password"],
    [{ ...ada, email: "ada" }, "ada"],
    [{ ...ada, name: " " }, "name"],
  ])("sees errors in the form, which keeps the other values: %j", async (filled, refusal) => {
    const app = testApp();
    const { status, body } = await browse(app).post(setupPath(app.service.ctx, app.a.org), filled);
    expect(status).toBe(400);
    expect(/role="alert">([^<]*)/.exec(body)?.[1]).toContain(refusal);
    expect(body).toContain(`value="${filled.email}"`);
    expect(body).not.toContain(filled.password);
  });
});

test("a server without accounts says how to create the first one, until there is one", async () => {
  const app = testApp();
  const setupLines = async (path: string) => {
    const { status, body } = await browse(app).get(path);
    return [status, body.includes("evald org setup-link"), body.includes("Ask an owner")];
  };
  expect(await setupLines("/")).toEqual([200, true, false]);
  expect(await setupLines("/sign-in")).toEqual([200, true, false]);
  await signedIn(app);
  expect(await setupLines("/")).toEqual([200, false, true]);
  expect(await setupLines("/sign-in")).toEqual([200, false, true]);
});

describe("sign-in", () => {
  const app = testApp();

  test("doesn't reveal whether an email address is known", async () => {
    const { email } = await signedIn(app);
    const known = await browse(app).post("/sign-in", { email, password: `${password}x` });
    const unknown = await browse(app).post("/sign-in", { email: "nobody@example.com", password });
    const none = await browse(app).post("/sign-in", { email: "not an address", password: "" });
    expect([known.status, unknown.status, none.status]).toEqual([401, 401, 401]);
    expect(unknown.body.replace("nobody@example.com", email)).toBe(known.body);
  });

  test("redirects only within this service", async () => {
    const { email } = await signedIn(app);
    for (const next of [
      "https://evil.example",
      "//evil.example",
      "/\\evil.example",
      "\\/evil",
      "javascript:alert(1)",
      "/\n/x",
      "/sign-out",
    ]) {
      const answer = await browse(app).post("/sign-in", { email, password, next });
      expect([next, answer.location]).toEqual([next, "/"]);
      expect((await browse(app).get(`/sign-in?next=${encodeURIComponent(next)}`)).body).toContain(
        'name="next" value="/"',
      );
    }
  });

  test("rejects a form of another site", async () => {
    const { email, ...browser } = await signedIn(app);
    for (const origin of ["https://evil.example", "null", ""])
      for (const path of ["/sign-in", "/sign-out"]) {
        const answer = await browser.post(path, { email, password }, { origin });
        expect([origin, path, answer.status]).toEqual([origin, path, 403]);
      }
    expect((await browser.get("/runs/x")).status).toBe(404);
  });
});

test("a page view extends the session, but not while another process is writing", async () => {
  const dataDir = emptyFolder();
  const app = testApp({ dataDir });
  const browser = await signedIn(app);
  const hour = 3600_000;
  app.db
    .update(signIns)
    .set({ expiresAt: new Date(Date.now() + hour) })
    .run();
  const expiresAt = () => app.db.select({ at: signIns.expiresAt }).from(signIns).get()?.at.getTime() ?? 0;
  const other = new Database(join(dataDir, "evald.db"));
  other.run("begin immediate");
  expect((await browser.get("/prompts")).status).toBe(200);
  expect(expiresAt()).toBeLessThan(Date.now() + 2 * hour);
  other.run("rollback");
  const answer = await browser.get("/prompts");
  expect([answer.status, answer.headers.getSetCookie().length]).toEqual([200, 1]);
  expect(expiresAt()).toBeGreaterThan(Date.now() + 2 * hour);
  other.close();
  app.db.$client.close();
  rmSync(dataDir, { recursive: true });
});

test("the cookie is limited to the base path, and to TLS if the service uses https", async () => {
  const cookieUnder = async (baseUrl: string, base = "") => {
    const app = testApp({ env: { EVALD_BASE_URL: baseUrl } });
    const answer = await browse(app).post(base + setupPath(app.service.ctx, app.a.org), ada);
    expect(answer.location).toBe(`${base}/`);
    const cookie = cookiesOf(answer.headers);
    expect((await browse(app, cookie).get(`${base}/runs/x`)).status).toBe(404);
    expect((await browse(app).get(`${base}/runs/x`)).location).toBe(`${base}/sign-in?next=%2Fruns%2Fx`);
    return answer.headers.getSetCookie()[0]?.replace(/=[^;]+;/, "=…;");
  };
  expect(await cookieUnder("https://example.com")).toBe(
    "__Host-evald.session_token=…; Max-Age=2592000; Path=/; HttpOnly; Secure; SameSite=Lax",
  );
  expect(await cookieUnder("https://example.com/evals", "/evals")).toBe(
    "__Secure-evald.session_token=…; Max-Age=2592000; Path=/evals; HttpOnly; Secure; SameSite=Lax",
  );
});
