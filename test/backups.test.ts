import { expect, test } from "bun:test";
import { createKey } from "../src/auth/keys.ts";
import { setOperator } from "../src/auth/operators.ts";
import { createOrg } from "../src/auth/orgs.ts";
import { findPerson } from "../src/auth/people.ts";
import { listExpired } from "../src/backups/retention.ts";
import { deletePerson } from "../src/deletions/people.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const minuteMs = 60_000;
const start = Date.UTC(2026, 10, 2, 12);

test("the newest of each day and week is kept", () => {
  const all = Array.from({ length: 60 * 4 }, (_, i) => ({ startedAt: start + i * 6 * 60 * minuteMs }));
  const expired = new Set(listExpired(all, { keepDaily: 3, keepWeekly: 4 }));
  const kept = all.filter((each) => !expired.has(each)).map(({ startedAt }) => new Date(startedAt).toISOString());
  expect(kept).toEqual([
    // Sundays.
    "2026-12-13T18:00:00.000Z",
    "2026-12-20T18:00:00.000Z",
    "2026-12-27T18:00:00.000Z",
    "2026-12-30T18:00:00.000Z",
    "2026-12-31T18:00:00.000Z",
    "2027-01-01T06:00:00.000Z",
  ]);
});

test("failing backups are in the inbox and on the page of an organization with an operator, and of no other", async () => {
  const app = testApp({ env: { EVALD_BACKUP_TO: "/mnt/backups" }, now: () => start });
  const { ctx } = app.service;
  app.db.$client.run(
    "insert into backups (id, status, created_at, started_at, completed_at, failure) values ('1', 'failed', ?, ?, ?, ?)",
    [start, start, start, "The directory /mnt/backups does not exist."],
  );
  const olga = await signedIn(app, { role: "owner" });
  const kindsOf = async (key: string) => {
    const { body } = await app.send("GET", "/api/v1/inbox", { headers: { authorization: `Bearer ${key}` } });
    return body.problems.map(({ kind }: { kind: string }) => kind);
  };
  expect([await kindsOf(app.a.key), await kindsOf(app.b.key)]).toEqual([[], []]);
  setOperator(ctx, olga.email, true);
  expect([await kindsOf(app.a.key), await kindsOf(app.b.key)]).toEqual([["backup_failing"], []]);
  createPrompt(ctx, app.a.org, { text: "See https://docs.example.com/" });
  const { body } = await olga.get("/");
  expect(body).toContain('data-kind="backup_failing"');
  expect(body).toContain("/mnt/backups");
});

test("operators see backups and what was deleted since each, and make one now, on the page and over REST", async () => {
  let now = start;
  const app = testApp({ env: { EVALD_BACKUP_TO: "/mnt/backups" }, now: () => now });
  const { ctx, upkeep } = app.service;
  const olga = await signedIn(app, { role: "viewer", email: "olga@example.com" });
  const owner = await signedIn(app);
  for (const answer of [await olga.get("/settings/backups"), await olga.post("/settings/backups")])
    expect(answer.status).toBe(403);
  expect((await app.send("GET", "/api/v1/backups")).status).toBe(403);
  expect((await owner.get("/settings")).body).not.toContain("/settings/backups");
  setOperator(ctx, olga.email, true);
  await olga.post("/account/name", { name: "Olga" });
  const operator = createKey(ctx, app.a.org, "ops", { scopes: ["read", "operate"] }).key;
  const ask = (method: string, path: string, key = operator) =>
    app.send(method, `/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } });

  const prompt = () => createPrompt(ctx, app.a.org, { text: "See https://docs.example.com/" }).id;
  const [first, second] = [prompt(), prompt()];
  const runs = evaluation(app, prompt(), [niceGrade, niceGrade, niceGrade]);
  const other = createOrg(ctx, "C").id;
  const otherKey = createKey(ctx, other, "c").key;
  const delay = () => (now += minuteMs);
  const backUp = () =>
    app.db.$client.run(
      `insert into backups (id, status, created_at, started_at, completed_at, name, location, bytes, runs)
      values (?, 'completed', ?2, ?2, ?2, 'a.backup', '/mnt/backups/a.backup', 1048576, 3)`,
      [ctx.newId(delay()), now],
    );
  const erase = async (path: string, key = app.a.key) => {
    delay();
    const { body } = await ask("DELETE", path, key);
    await ask("POST", `/deletions/${body.id}/erase`, key);
    await upkeep.runOnce();
  };
  await erase(`/prompts/${first}`);
  backUp();
  await erase(`/runs/${runs[0]?.runId}`);
  backUp();
  await erase(`/runs/${runs[1]?.runId}`);
  // Still hidden, and then restored.
  const { body: restored } = await ask("DELETE", `/prompts/${second}`, app.a.key);
  await ask("DELETE", "/organization", otherKey);
  const since = async () =>
    (await ask("GET", "/backups")).body.map(({ deletedSince }: { deletedSince: unknown }) => deletedSince);
  expect(await since()).toEqual([
    { organizations: 1, prompts: 1, runs: 1 },
    { organizations: 1, prompts: 1, runs: 2 },
  ]);
  await ask("POST", `/deletions/${restored.id}/restore`, app.a.key);
  // Made and deleted after both.
  delay();
  await erase(`/prompts/${prompt()}`);
  expect(await since()).toEqual([
    { organizations: 1, prompts: 0, runs: 1 },
    { organizations: 1, prompts: 0, runs: 2 },
  ]);
  const page = await olga.get("/settings/backups");
  expect([page.status, page.body.includes("1 organization and 2 runs")]).toEqual([200, true]);

  // A second click while one waits makes no second one.
  expect((await olga.post("/settings/backups")).status).toBe(200);
  const { body: requested } = await ask("POST", "/backups");
  expect(requested).toMatchObject({ status: "queued", requestedBy: "Olga", deletedSince: null });
  expect(await since()).toHaveLength(3);
  await deletePerson(ctx, findPerson(ctx, olga.email)?.id ?? "");
  expect((await ask("GET", "/backups")).body[0].requestedBy).toBe("deleted person");
});

test("a service without a place for backups says so", async () => {
  const app = testApp();
  const operator = createKey(app.service.ctx, app.a.org, "ops", { scopes: ["read", "operate"] }).key;
  const headers = { authorization: `Bearer ${operator}` };
  expect((await app.send("POST", "/api/v1/backups", { headers })).status).toBe(409);
  expect((await app.send("GET", "/api/v1/backups", { headers })).body).toEqual([]);
});
