import { expect, test } from "bun:test";
import { findPerson } from "../src/auth/people.ts";
import { deletePerson } from "../src/deletions/people.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { join, signedIn } from "./support/people.ts";
import { evaluation, niceGrade, steps } from "./support/reports.ts";

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

test("a deleted account is forgotten where the person was a member, and nobody else of the same name", async () => {
  const app = testApp();
  const { db, service } = app;
  const [ada, other] = [
    await signedIn(app, { email }),
    await signedIn(app, { org: app.b.org, email: "b@example.com" }),
  ];
  join(app, app.a.org, "owner", "eve@example.com");
  for (const [browser, key] of [
    [ada, app.a.key],
    [other, app.b.key],
  ] as const) {
    await browser.post("/account/name", { name: "Ada" });
    const headers = { authorization: `Bearer ${key}` };
    const post = (path: string, body: object) => app.send("POST", `/api/v1/prompts${path}`, { body, headers });
    const { body: prompt } = await post("", { text: "See https://docs.test/" });
    const { body: run } = await post(`/${prompt.id}/run`, { urlMap: {} });
    await browser.post(`/runs/${run.runId}/cancel`, { confirmed: "1" });
  }
  const namesIn = (org: string) =>
    ["runs", "jobs", "audit_entries"].filter((table) =>
      JSON.stringify(db.$client.query(`select * from ${table} where org_id = ?`).values(org)).includes("Ada"),
    );
  expect([namesIn(app.a.org), namesIn(app.b.org)]).toEqual(Array(2).fill(["runs", "jobs", "audit_entries"]));
  const rowsOfB = () =>
    ["runs", "jobs", "audit_entries"].map((table) =>
      db.$client.query(`select * from ${table} where org_id = ?`).values(app.b.org),
    );
  const before = rowsOfB();
  // A former member is forgotten, too.
  expect((await ada.post("/account/leave", { org: app.a.org, confirmed: "1" })).status).toBe(303);
  expect(db.$client.query("select org_id from former_members").values()).toEqual([[app.a.org]]);
  await deletePerson(service.ctx, findPerson(service.ctx, email)?.id ?? "");
  expect(namesIn(app.a.org)).toEqual([]);
  expect(rowsOfB()).toEqual(before);
  expect(db.$client.query("select count(*) from former_members").values()).toEqual([[0]]);
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

test("the forms that delete link to a download of what will be lost, and of nothing else", async () => {
  const app = testApp();
  const browser = await signedIn(app, { email });
  const [prompt, other] = ["Upload", "Second"].map((title) =>
    createPrompt(app.service.ctx, app.a.org, { title, text: "Upload. https://docs.example.com" }),
  );
  const [run, sibling] = evaluation(app, prompt?.id ?? "", [niceGrade, niceGrade], {}, steps("Upload", 120));
  evaluation(app, other?.id ?? "", [niceGrade]);
  const idsOf = async (path: string) => {
    const form = await browser.post(path, {});
    const [, link = ""] = /href="(\/settings\/data\/export[^"]*)"/.exec(form.body) ?? [];
    const { status, headers, body } = await browser.get(link);
    expect([path, status, headers.get("content-disposition")?.startsWith("attachment")]).toEqual([path, 200, true]);
    const rows = (body as string)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const ofType = (type: string) => rows.filter((each) => each.type === type).map(({ row }) => row.id);
    expect([rows[0].type, ofType("report").length]).toEqual(["evald export", ofType("run").length]);
    return {
      prompts: ofType("prompt"),
      runs: ofType("run"),
      events: rows.filter(({ type }) => type === "event").length,
    };
  };
  const ofRun = { prompts: [prompt?.id], runs: [run?.runId], events: expect.any(Number) };
  expect(await idsOf(`/runs/${run?.runId}/delete`)).toEqual(ofRun);
  const one = await idsOf(`/reports/${run?.slug}/delete`);
  expect([one, one.events > 100]).toEqual([ofRun, true]);
  expect((await idsOf(`/prompts/${prompt?.id}/delete`)).runs).toEqual([run?.runId, sibling?.runId]);
  const all = await idsOf("/settings/data/delete");
  expect([all.prompts.length, all.runs.length]).toEqual([2, 3]);
  const stranger = await signedIn(app, { org: app.b.org, email: "eve@example.com" });
  expect((await stranger.get(`/settings/data/export?runId=${run?.runId}`)).status).toBe(404);
});
