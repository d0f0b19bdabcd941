import { describe, expect, test } from "bun:test";
import { AgentFailure } from "../src/agents/agent.ts";
import { createKey } from "../src/auth/keys.ts";
import { setOperator } from "../src/auth/operators.ts";
import { findPerson } from "../src/auth/people.ts";
import { cancelRun } from "../src/runs/endings.ts";
import { instantAgent, scriptedAgent, testApp } from "./support/app.ts";
import { deliveringApp } from "./support/deliveries.ts";
import { signedIn } from "./support/people.ts";

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

/** Two organizations, with a prompt of each, and the key of an operator. */
async function setUp(now?: () => number) {
  const app = testApp({
    ...(now && { now }),
    agents: { other: { ...instantAgent, describe: () => ({ ...instantAgent.describe(), id: "other" }) } },
  });
  const { ctx } = app.service;
  const { key } = createKey(ctx, app.a.org, "operator", { scopes: ["operate"] });
  const ask = (method: string, path: string, body?: unknown) => app.send(method, path, { ...bearer(key), body });
  const createPrompt = async (who: { headers?: Record<string, string> }, body: object = {}) =>
    (await app.send("POST", "/api/v1/prompts", { ...who, body: { text: "See https://docs.test/", ...body } })).body.id;
  const keyOfB = bearer(createKey(ctx, app.b.org, "b").key);
  const run = async (promptId: string, who = {}) =>
    (await app.send("POST", `/api/v1/prompts/${promptId}/run`, { ...who, body: { urlMap: {} } })).body.runId as string;
  const get = async (runId: string, who = {}) => (await app.send("GET", `/api/v1/runs/${runId}`, who)).body;
  return { app, ctx, ask, createPrompt, keyOfB, run, get };
}

describe("the queue", () => {
  test("is only for operators", async () => {
    const { app, ctx, ask, keyOfB } = await setUp();
    const ada = await signedIn(app, { org: app.b.org });
    const personId = findPerson(ctx, ada.email)?.id ?? "";
    setOperator(ctx, ada.email, true);
    const ofAda = bearer(createKey(ctx, app.b.org, "ada", { scopes: ["operate"], createdBy: personId }).key);
    const paths = ["/api/v1/queue", "/api/v1/queue/failures"];
    const statuses = async (who: object) =>
      await Promise.all(paths.map(async (path) => (await app.send("GET", path, who)).status));
    expect([await statuses({}), await statuses(keyOfB), await statuses(ofAda)]).toEqual([
      [403, 403],
      [403, 403],
      [200, 200],
    ]);
    const body = { kind: "agent", subject: "explorer" };
    expect((await app.send("POST", "/api/v1/queue/pauses", { ...keyOfB, body })).status).toBe(403);
    setOperator(ctx, ada.email, false);
    expect(await statuses(ofAda)).toEqual([403, 403]);
    expect((await ask("GET", "/api/v1/prompts")).status).toBe(403);
  });

  test("counts what waits and runs by organization and agent, with no other data", async () => {
    const { app, ask, createPrompt, keyOfB, run } = await setUp();
    const secret = { title: "Launch of the moon rocket", text: "Read https://secret.test/" };
    for (const who of [{}, {}, keyOfB]) await run(await createPrompt(who, secret), who);
    const { body } = await ask("GET", "/api/v1/queue");
    expect(body).toMatchObject({
      ...{ waiting: 3, paused: 0, running: 0, oldestWaitingAt: expect.any(String) },
      organizations: [
        { id: app.a.org, waiting: 2 },
        { id: app.b.org, waiting: 1 },
      ],
      agents: [{ agent: "explorer", waiting: 3, isPaused: false }],
      pauses: [],
    });
    expect(JSON.stringify(body)).not.toMatch(/moon|secret\.test/);
  });
});

describe("a pause", () => {
  test("of an agent holds its runs back, also new and retried ones, until it is resumed, and survives a restart", async () => {
    const { app, ctx, ask, createPrompt, run, get } = await setUp();
    const promptId = await createPrompt({});
    const others = await createPrompt({}, { agent: "other" });
    const before = await run(promptId);
    const pause = { kind: "agent", subject: "explorer" };
    expect((await ask("POST", "/api/v1/queue/pauses", { ...pause, reason: "upgrade" })).body).toMatchObject({
      ...pause,
      reason: "upgrade",
      pausedBy: 'the API key "operator"',
    });
    const [after, free, cancelled] = [await run(promptId), await run(others), await run(promptId)];
    await cancelRun(ctx, app.a.org, cancelled, "me");
    for (const id of [before, after])
      expect(await get(id)).toMatchObject({
        status: "pending",
        waitingFor: { what: "paused_agent", agent: "explorer", failsAt: null },
      });
    expect(await get(cancelled)).toMatchObject({ status: "failed", waitingFor: null });
    // A process starts, runs what it may, and ends.
    await app.runJobs();
    expect([(await get(free)).status, (await get(before)).status]).toEqual(["completed", "pending"]);
    expect((await ask("GET", "/api/v1/queue")).body).toMatchObject({
      ...{ waiting: 0, paused: 2 },
      agents: [{ agent: "explorer", isPaused: true, paused: 2 }],
      pauses: [{ ...pause, name: "explorer" }],
    });
    await ask("DELETE", "/api/v1/queue/pauses/agent/explorer");
    await app.runJobs();
    for (const id of [before, after]) expect(await get(id)).toMatchObject({ status: "completed", waitingFor: null });
    expect((await ask("DELETE", "/api/v1/queue/pauses/agent/explorer")).status).toBe(404);
    expect((await ask("POST", "/api/v1/queue/pauses", { kind: "agent", subject: "nobody" })).status).toBe(404);
  });

  test("of an agent whose run fails meanwhile keeps the run waiting, and it is retried after the pause", async () => {
    let attempts = 0;
    let whileRunning = async () => {};
    const agent = scriptedAgent(async function* () {
      if (++attempts === 1) {
        await whileRunning();
        throw new AgentFailure("model_unreachable", "out of order", { retryable: true });
      }
      yield { type: "end", outcome: "not_judged", reason: "works again" };
    });
    const app = testApp({ agent });
    const operator = bearer(createKey(app.service.ctx, app.a.org, "operator", { scopes: ["operate"] }).key);
    whileRunning = async () => {
      const body = { kind: "agent", subject: "explorer" };
      expect((await app.send("POST", "/api/v1/queue/pauses", { ...operator, body })).status).toBe(200);
    };
    const promptId = (await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body.id;
    const { runId } = (await app.send("POST", `/api/v1/prompts/${promptId}/run`, { body: { urlMap: {} } })).body;
    const run = async () => (await app.send("GET", `/api/v1/runs/${runId}`)).body;
    await app.runJobs();
    expect(await run()).toMatchObject({ status: "pending", waitingFor: { what: "paused_agent" } });
    // Nothing takes it, however often the service starts.
    await app.runJobs();
    expect(attempts).toBe(1);
    await app.send("DELETE", "/api/v1/queue/pauses/agent/explorer", operator);
    await app.runJobs();
    expect([attempts, await run()]).toMatchObject([2, { status: "completed", waitingFor: null }]);
  });

  test("of an organization leaves others alone, and its end leaves those of a paused agent waiting", async () => {
    const { app, ask, createPrompt, keyOfB, run, get } = await setUp();
    const [ofA, ofB] = [await run(await createPrompt({})), await run(await createPrompt(keyOfB), keyOfB)];
    const { name } = (await app.send("GET", "/api/v1/whoami")).body.organization;
    const waits = async () => [
      (await get(ofA)).waitingFor?.what ?? null,
      (await get(ofB, keyOfB)).waitingFor?.what ?? null,
    ];
    await ask("POST", "/api/v1/queue/pauses", { kind: "organization", subject: name });
    expect(await waits()).toEqual(["paused_organization", null]);
    await ask("POST", "/api/v1/queue/pauses", { kind: "agent", subject: "explorer" });
    expect(await waits()).toEqual(["paused_organization", "paused_agent"]);
    await ask("DELETE", `/api/v1/queue/pauses/organization/${app.a.org}`);
    expect(await waits()).toEqual(["paused_agent", "paused_agent"]);
    await ask("DELETE", "/api/v1/queue/pauses/agent/explorer");
    expect(await waits()).toEqual([null, null]);
    expect((await ask("GET", "/api/v1/queue")).body).toMatchObject({ waiting: 2, paused: 0, pauses: [] });
  });
});

test("a second pause keeps the time of the first, and returns what is stored", async () => {
  let time = Date.parse("2026-11-27T12:00:00Z");
  const { ask } = await setUp(() => time);
  const pause = { kind: "agent", subject: "explorer" };
  const first = (await ask("POST", "/api/v1/queue/pauses", { ...pause, reason: "upgrade" })).body;
  time += 60_000;
  const second = (await ask("POST", "/api/v1/queue/pauses", { ...pause, reason: "repair" })).body;
  expect(second).toEqual({ ...first, reason: "repair" });
  expect((await ask("GET", "/api/v1/queue")).body.pauses).toEqual([second]);
});

describe("the page of the queue", () => {
  test("is only for operators, who pause and resume there after a confirmation", async () => {
    const { app, ctx, createPrompt, run, get } = await setUp();
    const viewer = await signedIn(app, { role: "viewer" });
    const owner = await signedIn(app);
    setOperator(ctx, viewer.email, true);
    const form = { kind: "agent", subject: "explorer", reason: "upgrade" };
    const paths = ["/settings/queue/pauses", "/settings/queue/resume", "/settings/queue/failures/none/retry"];
    expect((await owner.get("/settings/queue")).status).toBe(403);
    for (const path of paths) expect((await owner.post(path, form)).status).toBe(403);
    expect((await owner.get("/settings")).body).not.toContain("/settings/queue");
    expect((await viewer.get("/settings")).body).toContain("/settings/queue");
    const runId = await run(await createPrompt({}));
    expect((await viewer.post("/settings/queue/pauses", form)).body).toContain('name="confirmed"');
    expect((await get(runId)).waitingFor).toBe(null);
    await viewer.post("/settings/queue/pauses", { ...form, confirmed: "1" });
    expect((await get(runId)).waitingFor).toMatchObject({ what: "paused_agent" });
    const inbox = async () =>
      (await app.send("GET", "/api/v1/inbox")).body.problems.map(({ kind, runs }: Record<string, unknown>) => [
        kind,
        runs,
      ]);
    expect(await inbox()).toEqual([["runs_paused", 1]]);
    expect((await owner.get(`/runs/${runId}`)).body).toContain('data-waiting="paused_agent"');
    expect((await viewer.get("/settings/queue")).body).toContain("Resume explorer");
    expect((await owner.get("/settings/queue/live")).status).toBe(403);
    const live = await app.app.handle(
      new Request(new URL("/settings/queue/live", app.baseUrl), { headers: { cookie: viewer.cookie() } }),
    );
    const reader = live.body?.getReader();
    let streamed = "";
    while (!streamed.includes("Resume explorer")) {
      const { done, value } = (await reader?.read()) ?? { done: true };
      if (done) throw new Error(`the stream ended with ${streamed}`);
      streamed += new TextDecoder().decode(value);
    }
    await reader?.cancel();
    await viewer.post("/settings/queue/resume", { kind: "agent", subject: "explorer" });
    expect([(await get(runId)).waitingFor, await inbox()]).toEqual([null, []]);
    const audit = ctx.db.$client
      .query("select action, actor_name from audit_entries where action like 'queue.%'")
      .values();
    expect(audit).toEqual([
      ["queue.paused", "A viewer"],
      ["queue.resumed", "A viewer"],
    ]);
  });
});

describe("failures", () => {
  test("are grouped by cause over all organizations, and a group is retried once", async () => {
    let isBroken = true;
    const agent = scriptedAgent(async function* () {
      if (isBroken) throw new Error("out of order");
      yield { type: "end", outcome: "not_judged", reason: "works again" };
    });
    const app = testApp({ agent });
    const { ctx } = app.service;
    const operator = bearer(createKey(ctx, app.a.org, "operator", { scopes: ["operate"] }).key);
    const keyOfB = bearer(createKey(ctx, app.b.org, "b").key);
    const failed: string[] = [];
    for (const who of [{}, keyOfB]) {
      const body = { text: "See https://docs.test/" };
      const promptId = (await app.send("POST", "/api/v1/prompts", { ...who, body })).body.id;
      for (let i = 0; i < 2; i++)
        failed.push(
          (await app.send("POST", `/api/v1/prompts/${promptId}/run`, { ...who, body: { urlMap: {} } })).body.runId,
        );
    }
    await cancelRun(ctx, app.a.org, failed[0] ?? "", "me");
    await app.runJobs();
    const groups = async () => (await app.send("GET", "/api/v1/queue/failures", operator)).body;
    const [group, ...others] = await groups();
    expect([group.kind, group.failed, group.organizations, others]).toEqual(["run", 3, ["A", "B"], []]);
    isBroken = false;
    const retry = () => app.send("POST", `/api/v1/queue/failures/${group.id}/retry`, operator);
    expect((await retry()).body).toEqual({ retried: 3, refused: 0, left: 0 });
    expect(await groups()).toEqual([]);
    expect((await retry()).status).toBe(404);
    await app.runJobs();
    const runs = (await app.send("GET", "/api/v1/runs")).body;
    expect(runs.map(({ status }: { status: string }) => status).sort()).toEqual(["completed", "failed", "failed"]);
  });
});

test("failed deliveries are grouped by cause and last status, and a group is sent again once", async () => {
  let status = 500;
  const app = deliveringApp({ answer: ({ path }) => new Response(null, { status: path === "/gone" ? 410 : status }) });
  const operator = bearer(createKey(app.service.ctx, app.b.org, "operator", { scopes: ["operate"] }).key);
  await app.addWebhook(["run.completed"]);
  const { origin } = new URL(app.receiver.url);
  const { id: gone } = await app.addWebhook(["run.completed"], { url: `${origin}/gone` });
  const prompt = await app.post("/api/v1/prompts", { text: "See https://docs.test/" });
  for (let i = 0; i < 2; i++) await app.post(`/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
  await app.runJobs();
  for (const hours of [0.1, 0.1, 0.6, 2.3, 6, 11.5, 16, 23, 27, 0]) {
    await app.deliver();
    app.pass(hours * 3600_000);
  }
  const groups = async () =>
    (await app.send("GET", "/api/v1/queue/failures", operator)).body
      .map((each: Record<string, unknown>) => [each.id, each.failed, each.organizations])
      .sort();
  const known = await groups();
  expect(known).toEqual([
    ["delivery-exhausted-500", 2, ["A"]],
    ["delivery-gone-410", 2, ["A"]],
  ]);
  status = 204;
  const retry = async (id: string) => (await app.send("POST", `/api/v1/queue/failures/${id}/retry`, operator)).body;
  // The destinations are disabled, and stay so until their owners enable them.
  expect(await retry("delivery-exhausted-500")).toEqual({ retried: 0, refused: 2, left: 0 });
  for (const { id } of (await app.send("GET", "/api/v1/destinations")).body)
    if (id !== gone) await app.send("PATCH", `/api/v1/destinations/${id}`, { body: { status: "active" } });
  const before = app.receiver.received.length;
  expect(await retry("delivery-exhausted-500")).toEqual({ retried: 2, refused: 0, left: 0 });
  await app.deliver();
  const sent = app.receiver.received.slice(before).map(({ headers }) => headers["webhook-id"]);
  expect([sent.length, new Set(sent).size, app.receiver.received.at(-1)?.path]).toEqual([2, 2, "/hook"]);
  expect((await groups()).map(([id]: [string]) => id)).toEqual(["delivery-gone-410"]);
  expect((await app.send("POST", "/api/v1/queue/failures/delivery-exhausted-500/retry", operator)).status).toBe(404);
  app.receiver.close();
});

test("the queue, failures and schedule exceptions read no large table from end to end", async () => {
  const { app, ask } = await setUp();
  const { $client } = app.db;
  const seen = new Set<string>();
  const { prepare } = Object.getPrototypeOf($client);
  $client.prepare = function (this: typeof $client, sql: string, ...rest: never[]) {
    seen.add(sql);
    return prepare.call(this, sql, ...rest);
  } as typeof $client.prepare;
  for (const path of ["/api/v1/queue", "/api/v1/queue/failures"]) expect((await ask("GET", path)).status).toBe(200);
  expect((await app.send("GET", "/api/v1/schedules/exceptions")).status).toBe(200);
  const scans = [...seen]
    .filter((sql) => /^\s*(select|with)\b/i.test(sql))
    .flatMap((sql) => $client.query<{ detail: string }, []>(`explain query plan ${sql}`).all())
    .map(({ detail }) => detail)
    // An index of only the unfinished or failed rows is as long as what is shown.
    .filter((detail) => /^SCAN (r|d|jobs|runs|deliveries|scheduled_evaluations)\b/.test(detail))
    .filter((detail) => !/USING (COVERING )?INDEX (jobs_|runs_failed_newest|deliveries_failed)/.test(detail));
  expect(seen.size).toBeGreaterThan(5);
  expect(scans).toEqual([]);
});
