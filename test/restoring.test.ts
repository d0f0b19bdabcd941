import { expect, test } from "bun:test";
import { transaction } from "../src/db/open.ts";
import { restore } from "../src/deletions/deletions.ts";
import { forgetDeletedPeople } from "../src/deletions/forgetting.ts";
import { deletePerson } from "../src/deletions/people.ts";
import { acceptEval } from "../src/runs/requests.ts";
import { scriptedAgent, testApp } from "./support/app.ts";
import { deliveringApp } from "./support/deliveries.ts";
import { join, signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";
import { scheduledApp } from "./support/schedules.ts";

const dayMs = 24 * 3600_000;
type App = ReturnType<typeof testApp>;

const changesSoFar = ({ db }: App): number =>
  db.$client.query<{ n: number }, []>("select total_changes() n").get()?.n ?? 0;

test("a restored prompt, run and organization are as before: lists, schedule, badge, share and key", async () => {
  const app = scheduledApp("2026-11-20T12:00:00Z");
  const { send } = app;
  const id = await app.create({ title: "Upload", frequency: "0 * * * *", hasPublicBadge: true });
  await app.tickAt("2026-11-20T13:00:00Z");
  await app.finish(id);
  const [run] = evaluation(app, id, [niceGrade]);
  const share = (await send("POST", `/api/v1/reports/${run?.slug}/shares`, { body: { days: 30 } })).body;
  const { badgeUrl } = (await send("GET", `/api/v1/prompts/${id}`)).body;
  const ofStrangers = [share.url, badgeUrl].map((url: string) => new URL(url).pathname);
  const paths = ["whoami", "prompts", "runs", "reports", "eval-requests", "trends", "matrix", "inbox", "friction"];
  const readAll = async () => [
    ...(await Promise.all(
      [...paths, `prompts/${id}`, `reports/${run?.slug}`, `reports/${run?.slug}/trace`].map(async (path) => {
        const { status, body } = await send("GET", `/api/v1/${path}`);
        return [path, status, body];
      }),
    )),
    ...(await Promise.all(
      ofStrangers.map(async (path) => [path, (await send("GET", path, { headers: { authorization: "" } })).status]),
    )),
  ];
  const before = await readAll();
  const prompt = `prompts/${id}`;
  for (const path of [prompt, `runs/${run?.runId}`, `reports/${run?.slug}`, "organization"]) {
    const { body: deletion, status } = await send("DELETE", `/api/v1/${path}`);
    expect([path, status]).toEqual([path, 200]);
    const during = await readAll();
    // The share link of the report is gone with any of them, the badge with the prompt.
    expect(during.slice(-2).map(([, status]) => status === 200)).toEqual([false, !/^(prompts|organ)/.test(path)]);
    expect((await send("GET", `/api/v1/reports/${run?.slug}`)).status).not.toBe(200);
    await restore(app.service.ctx, app.a.org, deletion.id);
    expect(await readAll()).toEqual(before);
  }
  await send("DELETE", `/api/v1/${prompt}`);
  await app.tickAt("2026-11-20T14:00:00Z");
  const [{ id: deletionId }] = (await send("GET", "/api/v1/deletions")).body;
  await send("POST", `/api/v1/deletions/${deletionId}/restore`);
  await app.tickAt("2026-11-20T15:00:00Z");
  const outcomes = await app.outcomes(id);
  expect([outcomes[0], outcomes.at(-1)]).toEqual(["2026-11-20T13:00 ran", "2026-11-20T15:00 ran"]);
});

test("a prompt and an organization with many unfinished runs are hidden by a small transaction, and their runs never start", async () => {
  let started = 0;
  const agent = scriptedAgent(async function* () {
    started++;
    yield { type: "end", outcome: "not_judged", reason: "it ran" };
  });
  const app = testApp({ agent });
  const { send, service, db } = app;
  const many = 400;
  const states = () =>
    db.$client
      .query(
        "select r.status, r.failure_code, j.state, count(*) from runs r join jobs j on j.subject = r.id group by 1, 2, 3",
      )
      .values();
  for (const path of ["prompt", "organization"]) {
    db.$client.run("delete from jobs");
    const { body: prompt } = await send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } });
    const request = { urlMap: {}, trigger: "api", runs: 10 } as const;
    for (let i = 0; i < many / 10; i++)
      transaction(db, (tx) => acceptEval(service.ctx, tx, app.a.org, prompt.id, request));
    expect(states()).toEqual([["pending", null, "queued", many]]);
    const before = changesSoFar(app);
    const { status } = await send("DELETE", `/api/v1/${path === "prompt" ? `prompts/${prompt.id}` : "organization"}`);
    expect([status, changesSoFar(app) - before < 60]).toEqual([200, true]);
    // Hidden, although none of them is cancelled yet; some are claimed before they are.
    expect(states()).toEqual([["pending", null, "queued", many]]);
    await service.runner.start();
    await service.upkeep.runOnce();
    await service.runner.stop(0);
    const ended = states() as [string, string, string, number][];
    expect(ended.map(([status, code]) => [status, code])).toEqual(ended.map(() => ["failed", "cancelled"]));
    expect([ended.reduce((n, each) => n + each[3], 0), started]).toEqual([many, 0]);
    expect(db.$client.query("select count(*) from runs where completed_at is null").values()).toEqual([[0]]);
  }
});

test("an account whose deletion was interrupted is forgotten by the next process", async () => {
  const app = testApp();
  const { db, service } = app;
  const email = "ada@example.com";
  const browser = await signedIn(app, { email });
  join(app, app.a.org, "owner", "eve@example.com");
  for (let i = 0; i < 5; i++) await browser.post("/account/name", { name: `Ada ${i}` });
  const { body: prompt } = await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } });
  const { body: run } = await app.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
  await browser.post(`/runs/${run.runId}/cancel`, { confirmed: "1" });
  const mentions = () =>
    ["people", "audit_entries", "runs", "jobs", "deleted_people"].filter((table) =>
      JSON.stringify(db.$client.query(`select * from ${table}`).values()).includes("Ada 4"),
    );
  expect(mentions()).toEqual(["people", "audit_entries", "runs", "jobs"]);
  const stopped = new AbortController();
  stopped.abort();
  // As if the process were killed after the account was deleted.
  await deletePerson({ ...service.ctx, stopping: stopped.signal }, idOf(app, email));
  expect(mentions()).toEqual(["audit_entries", "runs", "jobs", "deleted_people"]);
  await forgetDeletedPeople(service.ctx, new AbortController().signal);
  expect(mentions()).toEqual([]);
});

const idOf = ({ db }: App, email: string): string =>
  db.$client.query<{ id: string }, [string]>("select id from people where email = ?").get(email)?.id ?? "";

test("an organization keeps sessions, artifacts, reports and deliveries for its own time, by the clock", async () => {
  const agent = scriptedAgent(async function* () {
    const artifact = { name: "page.diff", bytes: 4, data: Buffer.from("diff").toString("base64") };
    yield { type: "tool_result", id: "1", tool: "edit", ok: true, output: {}, artifact };
    const detail = { url: "https://docs.test/", chars: 4, form: "html", title: "" } as const;
    yield { type: "milestone", name: "page_read", detail, pageText: "text" };
    yield { type: "end", outcome: "not_judged", reason: "done" };
  });
  const app = deliveringApp({ agent, env: { EVALD_KEEP_SESSIONS_DAYS: "0" } });
  await app.addWebhook(["run.completed"]);
  const prompt = await app.post("/api/v1/prompts", { text: "See https://docs.test/" });
  await app.post(`/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
  await app.runJobs();
  await app.deliver();
  const count = (table: string) =>
    app.db.$client.query<{ n: number }, []>(`select count(*) n from ${table}`).get()?.n ?? 0;
  const kept = () =>
    Object.entries({ artifacts: "artifacts", sessions: "session_events", deliveries: "deliveries", reports: "reports" })
      .filter(([, table]) => count(table) > 0)
      .map(([kind]) => kind);
  expect(kept()).toEqual(["artifacts", "sessions", "deliveries", "reports"]);
  const body = { artifacts: 2, sessions: 4, deliveries: 6, reports: 8 };
  await app.send("PATCH", "/api/v1/retention", { body });
  const left = [];
  app.pass(60_000);
  for (let day = 1; day <= 9; day++) {
    app.pass(dayMs);
    await app.service.upkeep.runOnce();
    left.push([day, kept().length]);
    expect(count("page_texts")).toBe(count("session_events") > 0 ? 1 : 0);
  }
  app.receiver.close();
  expect(left).toEqual([
    [1, 4],
    [2, 3],
    [3, 3],
    [4, 2],
    [5, 2],
    [6, 1],
    [7, 1],
    [8, 0],
    [9, 0],
  ]);
});
