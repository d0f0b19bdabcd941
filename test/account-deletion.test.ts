import { expect, test } from "bun:test";
import { findPerson } from "../src/auth/people.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { join, signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const email = "ada@example.com";

test("a person downloads their data and deletes their account, once somebody else owns the organization", async () => {
  const app = testApp();
  const { db, service } = app;
  const browser = await signedIn(app, { email });
  const data = await browser.get("/account/data.json");
  expect(data.body).toMatchObject({ account: { email }, organizations: [{ name: "A", role: "owner" }] });
  expect((await browser.post("/account/delete", {})).status).toBe(409);

  join(app, app.a.org, "owner", "eve@example.com");
  const asked = await browser.post("/account/delete", {});
  expect(asked.body).toContain("typedName");
  await browser.post("/account/delete", { confirmed: "1", typedName: "somebody else" });
  expect(findPerson(service.ctx, email)).toBeDefined();
  const done = await browser.post("/account/delete", { confirmed: "1", typedName: email });
  expect([done.status, done.location]).toEqual([303, "/sign-in"]);
  expect(findPerson(service.ctx, email)).toBeUndefined();
  const left = ["people", "audit_entries", "members", "sign_ins", "accounts"].flatMap((table) =>
    db.$client
      .query(`select * from ${table}`)
      .values()
      .map((row) => JSON.stringify(row)),
  );
  expect(left.filter((row) => row.includes(email))).toEqual([]);
  const entries = db.$client.query<{ name: string }, []>(
    "select actor_name name from audit_entries where action = 'account.deleted'",
  );
  expect(entries.all()).toEqual([{ name: "deleted person" }]);
});

test("a person deletes a prompt and an organization on pages, after typing their names, and restores both", async () => {
  const app = testApp();
  const browser = await signedIn(app, { email });
  const prompt = createPrompt(app.service.ctx, app.a.org, {
    title: "Upload",
    text: "Upload. https://docs.example.com",
  });
  const [run] = evaluation(app, prompt.id, [niceGrade]);
  const form = (typedName: string) => ({ confirmed: "1", typedName });
  await browser.post(`/prompts/${prompt.id}/delete`, form("Other"));
  expect((await browser.get(`/prompts/${prompt.id}`)).status).toBe(200);
  await browser.post(`/prompts/${prompt.id}/delete`, form("Upload"));
  expect((await browser.get(`/prompts/${prompt.id}`)).status).toBe(404);
  const list = await browser.get("/settings/data");
  const [, id] = /\/deletions\/([0-9a-f-]{36})\/restore/.exec(list.body) ?? [];
  expect((await browser.post(`/deletions/${id}/restore`)).location).toBe(`/prompts/${prompt.id}`);
  expect((await browser.get(`/reports/${run?.slug}`)).status).toBe(200);

  await browser.post("/settings/data/delete", form("A"));
  expect((await app.send("GET", "/api/v1/whoami")).status).toBe(401);
  const account = await browser.get("/account");
  const [, deletion = ""] = /name="deletion" value="([0-9a-f-]{36})"/.exec(account.body) ?? [];
  expect((await browser.post("/account/restore", { deletion })).location).toBe("/account?done=restored");
  expect((await browser.get(`/reports/${run?.slug}`)).status).toBe(200);
  expect((await app.send("GET", "/api/v1/whoami")).status).toBe(200);
});
