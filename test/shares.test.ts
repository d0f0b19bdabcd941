import { describe, expect, test } from "bun:test";
import { createKey } from "../src/auth/keys.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { niceGrade, runWithReport } from "./support/reports.ts";

describe("a share link over REST", () => {
  let now = Date.parse("2026-11-21T09:00:00Z");
  const app = testApp({ now: () => now });
  const { slug } = runWithReport(app, niceGrade);
  const path = `/api/v1/reports/${slug}/shares`;
  const seen = async (url: string) =>
    (await app.send("GET", new URL(url).pathname, { headers: { authorization: "" } })).status;
  const bearing = (key: string) => ({ authorization: `Bearer ${key}` });

  test("is created, listed, opened and revoked", async () => {
    const made = await app.send("POST", path, { body: { days: 7, withSession: true } });
    const link = {
      id: made.body.id,
      withSession: true,
      createdAt: "2026-11-21T09:00:00.000Z",
      expiresAt: "2026-11-28T09:00:00.000Z",
      state: "active",
    };
    const { url } = made.body;
    expect([made.status, made.body]).toEqual([201, { ...link, url }]);
    expect(url).toMatch(/^http:\/\/localhost:3000\/shared\/[\w-]{43}$/);
    expect([await seen(url), await seen(`${url}/session`)]).toEqual([200, 200]);
    const plain = await app.send("POST", path, { body: { days: 1 } });
    expect(await seen(`${plain.body.url}/session`)).toBe(404);

    now += 24 * 3600_000;
    const listed = await app.send("GET", path);
    const { url: _, ...expired } = plain.body;
    expect([listed.status, listed.headers.get("x-total-count")]).toEqual([200, "2"]);
    expect(listed.body).toEqual([{ ...expired, withSession: false, state: "expired" }, link]);
    expect([await seen(plain.body.url), await seen(url)]).toEqual([404, 200]);

    // Revoking twice changes nothing.
    for (let i = 0; i < 2; i++) {
      const ended = await app.send("DELETE", `${path}/${link.id}`);
      expect([ended.status, ended.body]).toEqual([200, { ...link, state: "revoked" }]);
      expect(await seen(url)).toBe(404);
      now += 1000;
    }
    const [stored] = app.db.$client.query("select revoked_at from share_links where revoked_at is not null").all();
    expect(stored).toEqual({ revoked_at: now - 2000 });
  });

  test("requires a key with write access, an offered lifetime and a report of its organization", async () => {
    for (const body of [{}, { days: 2 }, { days: 0.5 }, { days: "7" }, { days: 7, withSession: "yes" }, []])
      expect([body, (await app.send("POST", path, { body })).status]).toEqual([body, 400]);
    const { body: link } = await app.send("POST", path, { body: { days: 30 } });
    const one = `${path}/${link.id}`;
    const reader = createKey(app.service.ctx, app.a.org, "reader", { scopes: ["read", "run"] }).key;
    const ask = async (method: string, at: string, key: string) =>
      (await app.send(method, at, { headers: bearing(key), body: method === "POST" ? { days: 7 } : undefined })).status;
    expect([await ask("POST", path, reader), await ask("DELETE", one, reader), await ask("GET", path, reader)]).toEqual(
      [403, 403, 200],
    );
    expect([
      await ask("POST", path, app.b.key),
      await ask("DELETE", one, app.b.key),
      await ask("GET", path, app.b.key),
    ]).toEqual([404, 404, 404]);
    for (const id of ["nope", "0199f3a1-2c44-7d0a-8f10-6a7b8c9d0e1f"])
      expect((await app.send("DELETE", `${path}/${id}`)).status).toBe(404);
    expect(await seen(link.url)).toBe(200);
  });

  test("can be created with a person's key only while the person is an owner", async () => {
    const browser = await signedIn(app);
    const form = { name: "ci", scopes: ["read", "run", "write"], days: "0" };
    const { body } = await browser.post("/settings/keys", form);
    const headers = bearing(/evals_[0-9A-Za-z]{36}/.exec(body)?.[0] ?? "");
    const share = async () => (await app.send("POST", path, { body: { days: 7 }, headers })).status;
    const revoke = async () => (await app.send("DELETE", `${path}/${link.id}`, { headers })).status;
    const { body: link } = await app.send("POST", path, { body: { days: 7 } });
    expect(await share()).toBe(201);
    for (const role of ["admin", "member", null] as const) {
      app.db.$client.run(role === null ? "delete from members" : `update members set role = '${role}'`);
      expect([role, await share(), await revoke()]).toEqual([role, 403, 403]);
      expect((await app.send("GET", path, { headers })).status).toBe(200);
    }
    expect(await seen(link.url)).toBe(200);
  });
});
