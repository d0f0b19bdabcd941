import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { closeDb } from "../src/db/open.ts";
import { deletePerson } from "../src/deletions/people.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { scriptedAgent, testApp } from "./support/app.ts";
import { emptyFolder } from "./support/executable.ts";
import { signedIn } from "./support/people.ts";
import { startReceiver } from "./support/receiver.ts";
import { evaluation, niceGrade, steps } from "./support/reports.ts";
import { until } from "./support/until.ts";

const dayMs = 24 * 3600_000;
const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/** A service with a prompt that has three runs in two evaluations, and another prompt with one. */
function furnishedApp() {
  let now = Date.parse("2026-11-20T12:00:00Z");
  const dataDir = emptyFolder();
  folders.push(dataDir);
  const app = testApp({ dataDir, now: () => now });
  const { ctx } = app.service;
  const make = (title: string) =>
    createPrompt(ctx, app.a.org, { title, text: `${title} of https://docs.example.com`, frequency: "hourly" });
  const prompt = make("Zanzibar upload");
  const other = make("Second");
  const evaluate = ({ id, title }: typeof prompt, grades: Grade[]) =>
    evaluation(app, id, grades, {}, steps(title ?? "", 120));
  const runs = [...evaluate(prompt, [niceGrade, niceGrade]), ...evaluate(prompt, [niceGrade])];
  const [otherRun] = evaluate(other, [niceGrade]);
  const passTime = (ms: number) => {
    now += ms;
  };
  return { app, ctx, dataDir, prompt, other, runs, otherRun, passTime };
}

/** Everything that lists or counts runs and reports. */
async function readLists({ send }: ReturnType<typeof testApp>) {
  const paths = ["prompts", "runs", "reports", "eval-requests", "trends", "matrix", "inbox", "recommendations"];
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path, (await send("GET", `/api/v1/${path}`)).body] as const)),
  );
}

test("a deleted prompt is gone from everything at once, and comes back as it was", async () => {
  const { app, prompt, other, runs, otherRun } = furnishedApp();
  const { send, a, b } = app;
  const before = await readLists(app);
  expect(
    (await send("DELETE", `/api/v1/prompts/${prompt.id}`, { headers: { authorization: `Bearer ${b.key}` } })).status,
  ).toBe(404);
  const { status, body } = await send("DELETE", `/api/v1/prompts/${prompt.id}`);
  expect([status, body]).toEqual([
    200,
    expect.objectContaining({
      kind: "prompt",
      subjectId: prompt.id,
      status: "pending",
      counts: { prompts: 1, runs: 3, reports: 3 },
    }),
  ]);
  const after = await readLists(app);
  expect(after.prompts.map(({ id }: { id: string }) => id)).toEqual([other.id]);
  expect(after.runs.map(({ runId }: { runId: string }) => runId)).toEqual([otherRun?.runId]);
  const text = JSON.stringify(after);
  for (const secret of [
    "Zanzibar",
    prompt.id,
    ...runs.flatMap(({ runId, slug, evalRequestId }) => [runId, slug, evalRequestId]),
  ])
    expect({ secret, isShown: text.includes(secret) }).toEqual({ secret, isShown: false });
  for (const path of [
    `prompts/${prompt.id}`,
    `runs/${runs[0]?.runId}`,
    `reports/${runs[0]?.slug}`,
    `reports/${runs[0]?.slug}/trace`,
    `eval-requests/${runs[0]?.evalRequestId}`,
  ])
    expect([path, (await send("GET", `/api/v1/${path}`)).status]).toEqual([path, 404]);
  expect((await send("DELETE", `/api/v1/prompts/${prompt.id}`)).status).toBe(404);

  const restore = (key: string) =>
    send("POST", `/api/v1/deletions/${body.id}/restore`, { headers: { authorization: `Bearer ${key}` } });
  expect((await restore(b.key)).status).toBe(404);
  expect((await restore(a.key)).body.status).toBe("restored");
  expect((await restore(a.key)).status).toBe(409);
  expect(await readLists(app)).toEqual(before);
  closeDb(app.db);
});

test("a deleted run is taken out of trends and lifecycles, and comes back as it was", async () => {
  const { app, prompt, runs } = furnishedApp();
  const { send } = app;
  const before = await readLists(app);
  const { body } = await send("DELETE", `/api/v1/reports/${runs[2]?.slug}`);
  expect(body).toMatchObject({ kind: "run", subjectId: runs[2]?.runId, counts: { prompts: 0, runs: 1, reports: 1 } });
  const after = await readLists(app);
  expect([after.runs.length, after.reports.length, after["eval-requests"].length]).toEqual([3, 3, 2]);
  expect(JSON.stringify(after)).not.toContain(runs[2]?.evalRequestId ?? "?");
  expect(after.prompts.length).toBe(2);
  const second = await send("DELETE", `/api/v1/runs/${runs[1]?.runId}`);
  expect(second.status).toBe(200);
  expect((await send("GET", `/api/v1/eval-requests/${runs[1]?.evalRequestId}`)).body.runs.length).toBe(1);
  expect((await send("GET", `/api/v1/runs?promptId=${prompt.id}`)).headers.get("x-total-count")).toBe("1");
  for (const id of [body.id, second.body.id])
    expect((await send("POST", `/api/v1/deletions/${id}/restore`)).status).toBe(200);
  expect(await readLists(app)).toEqual(before);
  closeDb(app.db);
});

const readAll = (folder: string): string =>
  readdirSync(folder, { withFileTypes: true })
    .map((entry) =>
      entry.isDirectory() ? readAll(join(folder, entry.name)) : readFileSync(join(folder, entry.name), "latin1"),
    )
    .join("");

test("what was deleted is erased after its time, and nothing else is", async () => {
  const { app, ctx, dataDir, prompt, runs, passTime } = furnishedApp();
  const { send } = app;
  const { id } = (await send("DELETE", `/api/v1/runs/${runs[0]?.runId}`)).body;
  await app.service.upkeep.runOnce();
  expect((await send("GET", `/api/v1/deletions/${id}`)).body.status).toBe("pending");
  passTime(dayMs);
  await app.service.upkeep.runOnce();
  expect((await send("GET", `/api/v1/deletions/${id}`)).body).toMatchObject({
    status: "erased",
    title: null,
    deletedBy: null,
  });
  expect((await send("POST", `/api/v1/deletions/${id}/restore`)).status).toBe(409);
  const remaining = await readLists(app);
  expect([remaining.runs.length, remaining.reports.length]).toEqual([3, 3]);
  expect(readAll(dataDir)).not.toContain(runs[0]?.slug ?? "?");
  expect(readAll(dataDir)).toContain("Zanzibar");

  const all = (await send("DELETE", `/api/v1/prompts/${prompt.id}`)).body;
  expect((await send("POST", `/api/v1/deletions/${all.id}/erase`)).body.status).toBe("erasing");
  await app.service.upkeep.runOnce();
  expect((await send("GET", `/api/v1/deletions/${all.id}`)).body.status).toBe("erased");
  expect(readAll(dataDir)).not.toContain("Zanzibar");
  expect(ctx.db.$client.query("pragma foreign_key_check").all()).toEqual([]);
  expect((await readLists(app)).runs.length).toBe(1);
  closeDb(app.db);
});

test("a deleted organization locks out its keys at once, and is erased with all it has", async () => {
  const { app, dataDir, passTime } = furnishedApp();
  const { send, b } = app;
  const { body } = await send("DELETE", "/api/v1/organization");
  expect(body).toMatchObject({ kind: "organization", counts: { prompts: 2, runs: 4, reports: 4 } });
  expect((await send("GET", "/api/v1/whoami")).status).toBe(401);
  expect((await send("GET", "/api/v1/whoami", { headers: { authorization: `Bearer ${b.key}` } })).status).toBe(200);
  passTime(7 * dayMs);
  await app.service.upkeep.runOnce();
  await app.service.upkeep.runOnce();
  const left = app.db.$client
    .query<{ name: string }, []>("select name from sqlite_master where type = 'table'")
    .all()
    .filter(({ name }) => {
      const columns = app.db.$client.query<{ name: string }, []>(`pragma table_info("${name}")`).all();
      if (name === "deletions" || !columns.some((column) => column.name === "org_id")) return false;
      return app.db.$client.query(`select 1 from "${name}" where org_id = ?`).get(app.a.org) !== null;
    });
  expect(left).toEqual([]);
  expect(readAll(dataDir)).not.toContain("Zanzibar");
  expect(app.db.$client.query("pragma foreign_key_check").all()).toEqual([]);
  closeDb(app.db);
});

test("an organization keeps sessions and reports for its own time", async () => {
  const { app, runs, passTime } = furnishedApp();
  const { send, b } = app;
  const ofB = { headers: { authorization: `Bearer ${b.key}` } };
  expect((await send("PATCH", "/api/v1/retention", { body: { sessions: 0 } })).status).toBe(400);
  expect((await send("PATCH", "/api/v1/retention", { body: { sessions: 5, deliveries: 10 } })).body).toEqual({
    sessions: 5,
    artifacts: null,
    reports: null,
    deliveries: 10,
    people: null,
  });
  expect((await send("GET", "/api/v1/retention", ofB)).body.sessions).toBeNull();
  const counts = () =>
    ["session_events", "runs", "reports"].map(
      (table) => app.db.$client.query<{ n: number }, []>(`select count(*) n from ${table}`).get()?.n ?? 0,
    );
  passTime(4 * dayMs);
  await app.service.upkeep.runOnce();
  expect(counts()[0]).toBeGreaterThan(100);
  passTime(1.1 * dayMs);
  await app.service.upkeep.runOnce();
  expect(counts()).toEqual([0, 4, 4]);
  expect((await send("GET", `/api/v1/reports/${runs[0]?.slug}`)).status).toBe(200);
  await send("PATCH", "/api/v1/retention", { body: { reports: 5 } });
  await app.service.upkeep.runOnce();
  expect(counts()).toEqual([0, 0, 0]);
  closeDb(app.db);
});

test("no byte of a thousand words is left after an organization was erased", async () => {
  const words: string[] = [];
  /** A new word that occurs nowhere else. */
  const word = () => {
    const next = `wq${words.length}x${crypto.randomUUID().replaceAll("-", "").slice(0, 12)}`;
    words.push(next);
    return next;
  };
  const sentence = (n: number) => Array.from({ length: n }, word).join(" ");
  /** One word for each place, all of which must be stored. */
  const marks: Record<string, string> = {};
  const markOf = (place: string) => {
    marks[place] = word();
    return marks[place];
  };
  const agent = scriptedAgent(async function* () {
    for (let i = 0; i < 20; i++) {
      yield { type: "thought", text: sentence(8), by: "model" };
      yield { type: "thought", text: sentence(8), by: "model" };
    }
    const read = { type: "http", id: "1", method: "GET", mappedUrl: null, status: 200, ms: 1, bytes: 9 } as const;
    const ofAgent = {
      contentType: "text/plain",
      provenance: "given",
      foundOn: null,
      purpose: "task",
      error: null,
    } as const;
    yield {
      ...read,
      ...ofAgent,
      url: `https://docs.example.com/${markOf("page read")}`,
      body: markOf("body of a page"),
      sent: markOf("request"),
    };
    const tool = { id: "1", tool: word() };
    yield { type: "tool_call", ...tool, input: { command: markOf("tool input") } };
    const data = Buffer.from(markOf("artifact")).toString("base64");
    const artifact = { name: "page.diff", bytes: 9, data };
    yield { type: "tool_result", ...tool, ok: true, output: { text: markOf("tool output") }, artifact };
    yield { type: "message", text: markOf("message") };
    yield { type: "interruption", question: markOf("question"), url: null };
    yield { type: "end", outcome: "not_judged", reason: sentence(2) };
  });
  let now = Date.parse("2026-11-20T12:00:00Z");
  const dataDir = emptyFolder();
  folders.push(dataDir);
  const app = testApp({
    dataDir,
    agent,
    now: () => now,
    env: { EVALD_SECRET_KEY: "a".repeat(43), EVALD_ALLOW_PRIVATE: "127.0.0.1" },
  });
  const { send, service, a } = app;
  const browser = await signedIn(app, { email: `${word()}@example.com` });
  await browser.post("/account/name", { name: word() });
  await send("POST", "/api/v1/providers", { body: { name: word(), docsUrl: `https://${word()}.example` } });
  await browser.post("/settings/keys", { name: word(), scopes: ["read"], days: "30" });
  await browser.post("/settings/members/invite", { email: `${word()}@example.com`, role: "member" });
  await send("POST", "/api/v1/destinations", {
    body: { kind: "webhook", name: word(), url: `https://${word()}.example/hook`, events: ["run.completed"] },
  });
  // What this one answers is kept with its deliveries.
  const receiver = startReceiver(() => new Response(markOf("response to a delivery"), { status: 500 }));
  await send("POST", "/api/v1/destinations", {
    body: { kind: "webhook", name: word(), url: `${receiver.url}/${word()}`, events: ["run.completed"] },
  });
  const files = await new Bun.Archive({ [`${markOf("file name")}.md`]: markOf("uploaded file") }).bytes();
  // At level 0, its content is readable in the database.
  const archive = gzipSync(files, { level: 0 });
  const uploaded = await send("POST", "/api/v1/archives", {
    body: archive,
    headers: { authorization: `Bearer ${a.key}`, "content-type": "application/gzip" },
  });
  expect(uploaded.status).toBe(201);
  for (let i = 0; i < 3; i++) {
    const { body: prompt } = await send("POST", "/api/v1/prompts", {
      body: {
        title: word(),
        text: `${sentence(20)} https://docs.example.com/${word()} {{${word()}}}`,
        endGoal: sentence(10),
        tags: [word()],
        additionalUrls: [{ url: `https://${word()}.example`, name: word() }],
        workspace: { instructions: sentence(20), env: { VALUE: word() } },
      },
    });
    const [variable = ""] = prompt.templateVars;
    await send("PATCH", `/api/v1/prompts/${prompt.id}`, { body: { title: markOf("body of a delivery") } });
    const body = { urlMap: { [`${word()}.example`]: "https://x.example" }, templateArgs: { [variable]: word() } };
    const headers = { authorization: `Bearer ${a.key}`, "idempotency-key": word() };
    const run = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body, headers });
    expect([run.status, run.body.detail]).toEqual([200, undefined]);
  }
  await service.runner.start();
  await until(
    "three runs",
    async () =>
      (await send("GET", "/api/v1/runs")).body.every(
        ({ completedAt }: { completedAt: string | null }) => completedAt !== null,
      ),
    20_000,
  );
  expect(
    (await send("GET", "/api/v1/runs")).body.map(({ failureReason }: { failureReason: string }) => failureReason),
  ).toEqual([null, null, null]);
  await service.runner.stop(1000);
  await service.notifier.runner.start();
  await until("three deliveries", async () => receiver.received.length === 3);
  await service.notifier.runner.stop(1000);
  receiver.close();
  expect(words.length).toBeGreaterThan(1000);
  const planted = readAll(dataDir);
  const stored = words.filter((each) => planted.includes(each));
  expect(stored.length).toBeGreaterThan(1000);
  expect(Object.entries(marks).filter(([, mark]) => !stored.includes(mark))).toEqual([]);
  expect(Object.keys(marks).length).toBe(12);

  const { body: deletion } = await send("DELETE", "/api/v1/organization");
  now = Date.parse(deletion.erasesAt) + 1;
  const [person] = app.db.$client.query<{ id: string }, []>("select id from people").all();
  for (let i = 0; i < 3; i++) await service.upkeep.runOnce();
  await deletePerson(service.ctx, person?.id ?? "");
  const remaining = readAll(dataDir);
  expect(stored.filter((each) => remaining.includes(each))).toEqual([]);
  expect(app.db.$client.query("select status from deletions where org_id = ?").values(a.org)).toEqual([["erased"]]);
  closeDb(app.db);
}, 30_000);
