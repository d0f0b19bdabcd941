import { afterEach, expect, test } from "bun:test";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import pino from "pino";
import { createApp } from "../src/app.tsx";
import { updateOrg } from "../src/auth/orgs.ts";
import { readConfig } from "../src/config/config.ts";
import { events } from "../src/notifications/events.ts";
import { toMessage } from "../src/notifications/messages.ts";
import { toSlack } from "../src/notifications/slack.ts";
import { createService } from "../src/service.ts";
import { deliveringApp } from "./support/deliveries.ts";
import { signedIn } from "./support/people.ts";
import { startReceiver } from "./support/receiver.ts";
import { until } from "./support/until.ts";

const hourMs = 3600_000;
const open: ReturnType<typeof deliveringApp>[] = [];
afterEach(() => {
  for (const { receiver } of open.splice(0)) receiver.close();
});
function setUp(options?: Parameters<typeof deliveringApp>[0]) {
  const app = deliveringApp(options);
  open.push(app);
  return app;
}

test("a completed run reaches a webhook, signed as in Standard Webhooks", async () => {
  const app = setUp();
  const headers = { Authorization: "Bearer 3c9d" };
  const { id, secret } = await app.addWebhook(["run.completed"], { headers });
  const prompt = await app.post("/api/v1/prompts", { title: "Upload", text: "Upload a file. https://docs.test" });
  const { runId } = await app.post(`/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
  await app.runJobs();
  await app.deliver();
  const [request] = app.receiver.received;
  expect(app.receiver.received.length).toBe(1);
  expect(request).toMatchObject({ method: "POST", path: "/hook", headers: { authorization: "Bearer 3c9d" } });
  const payload = app.verified(secret, request);
  const { report } = (await app.send("GET", `/api/v1/runs/${runId}`)).body;
  expect(payload).toMatchObject({
    type: "run.completed",
    timestamp: new Date(app.now()).toISOString(),
    data: {
      run: { id: runId, url: `${app.baseUrl}/runs/${runId}` },
      prompt: { id: prompt.id, title: "Upload" },
      report: { slug: report.slug, url: report.url, outcome: report.outcome },
    },
  });
  const delivery = await app.lastOf(id);
  expect(delivery).toMatchObject({ type: "run.completed", status: "delivered", tries: 1, lastStatus: 204, payload });
  expect(request?.headers["webhook-id"]).toBe(delivery.notificationId);
});

test("a destination that is created disabled receives nothing until it is enabled", async () => {
  const app = setUp();
  const create = async (fields: object) =>
    await app.send("POST", "/api/v1/destinations", {
      body: { kind: "webhook", url: app.receiver.url, events: ["run.completed"], ...fields },
    });
  const { status, body: created } = await create({ status: "disabled" });
  const at = new Date(app.now()).toISOString();
  expect([status, created.status, created.disabledBecause, created.disabledAt]).toEqual([
    201,
    "disabled",
    "request",
    at,
  ]);
  const path = `/api/v1/destinations/${created.id}`;
  expect((await app.send("GET", path)).body).toMatchObject({ status: "disabled", disabledBecause: "request" });
  const prompt = await app.post("/api/v1/prompts", { text: "Upload a file. https://docs.test" });
  const run = async () => {
    await app.post(`/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    await app.runJobs();
    await app.deliver();
    return app.receiver.received.length;
  };
  expect(await run()).toBe(0);
  expect((await app.send("PATCH", path, { body: { status: "active" } })).body.disabledAt).toBeNull();
  expect(await run()).toBe(1);
  expect((await create({ status: "active" })).body).toMatchObject({ status: "active", disabledBecause: null });
  const refused = await create({ status: "gone" });
  expect([refused.status, refused.body.error]).toEqual([400, "bad_request"]);
  expect((await app.send("GET", "/api/v1/destinations")).body.length).toBe(2);
});

test("a secret that is rotated between tries signs the next one, next to the old secret for a day", async () => {
  const app = setUp({ answer: (_, n) => new Response(null, { status: n === 1 ? 500 : 204 }) });
  const { id, secret } = await app.addWebhook(["run.completed"]);
  await app.post(`/api/v1/destinations/${id}/test`);
  await app.deliver();
  const { secret: next, overlapUntil } = await app.post(`/api/v1/destinations/${id}/rotate`);
  expect([secret, next]).toEqual([expect.stringMatching(/^whsec_/), expect.stringMatching(/^whsec_/)]);
  expect(Date.parse(overlapUntil) - app.now()).toBe(24 * hourMs);
  app.pass(6_000);
  await app.deliver();
  const [first, second] = app.receiver.received;
  expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"] as string);
  expect(second?.headers["webhook-signature"]?.split(" ").length).toBe(2);
  for (const each of [secret, next]) app.verified(each, second);
  app.pass(25 * hourMs);
  await app.post(`/api/v1/destinations/${id}/test`);
  await app.deliver();
  app.verified(next, app.receiver.received.at(-1));
  expect(() => app.verified(secret, app.receiver.received.at(-1))).toThrow();
});

test("the secrets of a webhook don't follow it to another origin", async () => {
  const other = startReceiver();
  afterEach(other.close);
  const app = setUp({ env: { EVALD_ALLOW_PRIVATE: "127.0.0.1" } });
  const origin = new URL(app.receiver.url).origin;
  const headers = { Authorization: "Bearer 3c9d", "X-Token": "t0k3n" };
  const { id, secret } = await app.addWebhook(["run.completed"], { headers });
  const { secret: rotated } = await app.post(`/api/v1/destinations/${id}/rotate`);
  const move = async (patch: object) => (await app.send("PATCH", `/api/v1/destinations/${id}`, { body: patch })).body;
  const received = async () => {
    await app.post(`/api/v1/destinations/${id}/test`);
    await app.deliver();
    return [...app.receiver.received.splice(0), ...other.received.splice(0)].at(-1);
  };
  // Another path of the same receiver keeps them.
  expect(await move({ url: `${origin}/moved` })).toMatchObject({ secret: null, headers: ["Authorization", "X-Token"] });
  const kept = await received();
  expect(kept).toMatchObject({ path: "/moved", headers: { authorization: "Bearer 3c9d", "x-token": "t0k3n" } });
  for (const each of [secret, rotated]) app.verified(each, kept);
  const moved = await move({ url: other.url });
  expect(moved).toMatchObject({ headers: [], overlapUntil: null });
  const foreign = await received();
  expect([foreign?.headers.authorization, foreign?.headers["x-token"]]).toEqual([undefined, undefined]);
  app.verified(moved.secret, foreign);
  for (const each of [secret, rotated]) expect(() => app.verified(each, foreign)).toThrow();
  const back = await move({ url: `${origin}/hook`, headers: { "X-Token": "n3w" } });
  expect([back.headers, back.secret === moved.secret]).toEqual([["X-Token"], false]);
  const last = await received();
  expect([last?.headers.authorization, last?.headers["x-token"]]).toEqual([undefined, "n3w"]);
  app.verified(back.secret, last);
});

test("secrets and headers are stored encrypted and never shown again", async () => {
  const app = setUp();
  const { id, secret } = await app.addWebhook(["run.completed"], { headers: { Authorization: "Bearer 3c9d77" } });
  const slack = await app.post("/api/v1/destinations", {
    kind: "slack",
    url: `${app.receiver.url}/T0/secret77`,
    events: ["run.failed"],
  });
  expect(slack.secret).toBeNull();
  const shown = JSON.stringify((await app.send("GET", "/api/v1/destinations")).body);
  const stored = JSON.stringify(
    app.db.$client
      .query("select * from destinations")
      .all()
      .map((row) => Object.values(row as object).map(String)),
  );
  for (const text of [secret.slice(6), "3c9d77", "secret77"])
    expect([shown.includes(text), stored.includes(text)]).toEqual([false, false]);
  expect((await app.send("GET", `/api/v1/destinations/${id}`)).body.headers).toEqual(["Authorization"]);
  const without = setUp({ env: { EVALD_SECRET_KEY: "" } });
  const { status, body } = await without.send("POST", "/api/v1/destinations", {
    body: { kind: "webhook", url: without.receiver.url, events: ["run.failed"] },
  });
  expect([status, body.detail]).toEqual([400, expect.stringContaining("EVALD_SECRET_KEY")]);
});

test("a Slack message stays within Slack's limits, and its text is escaped", () => {
  const long = `<!channel> & ${"x".repeat(2_000)}`;
  const friction = {
    ...{ fingerprint: "a", severity: "high", category: "dead_link", title: long, pageUrl: null, lostPoints: null },
  };
  const prompt = { id: "p", title: long };
  const report = { slug: "s", url: "https://evald.test/reports/s|x" };
  const many = <T>(item: T) => Array.from({ length: 200 }, () => item);
  const data = {
    ...{ from: "2026-11-16T08:00:00.000Z", until: "2026-11-23T08:00:00.000Z", runs: { completed: 1, failed: 0 } },
    scores: many({ prompt, verdict: "regressed", delta: -3, after: report, cause: long, whyUrl: report.url }),
    problems: many({ kind: "schedule_paused", subject: long, since: "2026-11-20T06:00:00.000Z" }),
    regressed: many(friction),
    fixFirst: many({ title: long, action: long, pageUrl: null, prompt, report }),
  };
  const gate = { id: "g", url: "https://evald.test/gates/g", status: "failed", reason: "&".repeat(9_000) };
  for (const [type, content] of [
    ["digest.weekly", data],
    ["gate.decided", { gate, prompts: many(prompt) }],
  ] as const) {
    const { text, blocks } = toSlack(toMessage({ type, data: content }, "https://evald.test", "UTC"));
    expect(blocks.length).toBeLessThanOrEqual(50);
    expect(text.length).toBeLessThanOrEqual(3_000);
    const texts = blocks.map((block) => block.text.text);
    expect(blocks[0]?.text.text.length).toBeLessThanOrEqual(150);
    for (const each of texts) expect(each.length).toBeLessThanOrEqual(3_000);
    expect(texts.join("").length).toBeLessThanOrEqual(13_000);
    expect(texts.slice(1).join("")).not.toContain("<!channel>");
    expect(blocks.at(-1)?.text.text).toContain("https://evald.test");
  }
});

test("old deliveries are deleted with their logs, except for pending ones and events that are sent once", async () => {
  const days = 24 * hourMs;
  const app = setUp({ env: { EVALD_KEEP_SESSIONS_DAYS: "30" } });
  const { id } = await app.addWebhook(["run.completed", "budget.reached"]);
  const rows = (table: string) => app.db.$client.query(`select count(*) from ${table}`).values()[0]?.[0];
  const stored = () => ["notifications", "deliveries", "delivery_tries"].map(rows);
  const jobs = () => rows("jobs where kind = 'delivery'");
  const spend = () => app.db.$client.run("insert into spending values (?, ?, 11, 0, 0)", [app.a.org, app.now()]);
  updateOrg(app.service.ctx, app.a.org, { maxUsdAMonth: 10 });
  spend();
  const prompt = await app.post("/api/v1/prompts", { text: "Upload a file. https://docs.test" });
  await app.post(`/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
  await app.runJobs();
  await app.post(`/api/v1/destinations/${id}/test`);
  await app.deliver();
  const before = stored();
  expect(before[1]).toBeGreaterThan(0);
  expect(before[2]).toBe(before[1]);
  app.pass(30 * days);
  await app.service.upkeep.runOnce();
  expect(stored()).toEqual(before);
  // This delivery is still pending.
  await app.post(`/api/v1/destinations/${id}/test`);
  app.pass(1);
  await app.service.upkeep.runOnce();
  expect([stored()[1], stored()[2], jobs()]).toEqual([1, 0, 1]);
  expect(rows("notifications where once_key is null")).toBe(1);
  expect(rows("notifications where once_key is not null and data <> '{}'")).toBe(0);
  app.pass(31 * days);
  await app.service.upkeep.runOnce();
  expect(stored()[1]).toBe(1);
  expect(await app.deliveriesOf(id)).toHaveLength(1);
});

test("times in messages are in the time zone of the organization", () => {
  const prompt = { id: "p", title: "Upload a file" };
  const [from, until] = ["2026-10-31T10:59:00.000Z", "2026-10-31T11:01:00.000Z"];
  const wordsOf = (type: string, data: object) =>
    JSON.stringify(toMessage({ type, data }, "https://evald.test", "Pacific/Auckland"));
  const digest = { runs: { completed: 1, failed: 0 }, scores: [], problems: [], regressed: [], fixFirst: [] };
  expect(wordsOf("digest.weekly", { ...digest, from, until })).toContain("2026-10-31 to 2026-11-01");
  expect(wordsOf("budget.reached", { spentUsd: 1, maxUsdAMonth: 1, until })).toContain("2026-11-01");
  expect(wordsOf("schedule.missed", { prompt, missed: 2, from, until })).toContain(
    "2026-10-31 23:59 (Pacific/Auckland) to 2026-11-01 00:01 (Pacific/Auckland)",
  );
});

test("the JSON Schema of events accepts the example of each, and no event without its data", async () => {
  const { send } = deliveringApp();
  const { status, body: schema } = await send("GET", "/docs/webhooks.json", { headers: { authorization: "" } });
  expect([status, Object.keys(schema.$defs)]).toEqual([200, Object.keys(events)]);
  const ajv = new Ajv2020({ strict: false });
  addFormats(ajv);
  const isEvent = ajv.compile(schema);
  for (const { examples } of Object.values<{ examples: [{ data: object }] }>(schema.$defs)) {
    expect([examples[0], isEvent(examples[0])]).toEqual([examples[0], true]);
    expect(isEvent({ ...examples[0], data: {} })).toBe(false);
  }
});

test("a lost or changed EVALD_SECRET_KEY is said at the start, and disables no destination", async () => {
  const app = setUp();
  const { id } = await app.addWebhook(["run.completed"]);
  const otherKey = { EVALD_SECRET_KEY: Buffer.alloc(32, 8).toString("base64") };
  for (const [cause, env] of [
    ["secret_key_missing", {}],
    ["secret_key_changed", otherKey],
  ] as const) {
    const lines: { level: number; cause?: string; detail?: string }[] = [];
    const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const { ctx } = app.service;
    const config = readConfig({ EVALD_LOG_LEVEL: "silent", EVALD_ALLOW_PRIVATE: app.receiver.host, ...env });
    const service = createService({ db: app.db, config, log, agents: ctx.agents, baseUrl: ctx.baseUrl, now: app.now });
    await service.start();
    await service.healthChecks.runOnce();
    const health = await createApp(service).handle(new Request("http://localhost:3000/readyz"));
    expect([health.status, await health.json()]).toMatchObject([
      200,
      { status: "ready", problems: expect.arrayContaining([expect.objectContaining({ check: "secret_key", cause })]) },
    ]);
    expect(lines.filter((line) => line.level === 40 && line.cause === cause)).toMatchObject([
      { detail: expect.stringContaining("1 destination") },
    ]);

    await app.post(`/api/v1/destinations/${id}/test`);
    const hasEnded = async () => {
      app.pass(30 * hourMs);
      service.notifier.runner.wake();
      return (await app.lastOf(id)).completedAt;
    };
    await until("the delivery has ended", hasEnded, 20_000);
    await service.stop(0);
    const { log: attempts, failure } = await app.lastOf(id);
    expect([attempts.length, failure]).toEqual([10, "exhausted"]);
    expect(attempts.every(({ error }: { error: string }) => error.includes("EVALD_SECRET_KEY"))).toBe(true);
    expect(app.receiver.received).toEqual([]);
    expect((await app.send("GET", `/api/v1/destinations/${id}`)).body).toMatchObject({
      status: "active",
      failingSince: null,
    });
  }
});

test("a range of EVALD_ALLOW_PRIVATE allows webhooks without TLS to the addresses in it, as a single address does", async () => {
  for (const [range, status] of [
    ["127.0.0.0/8", 201],
    ["10.0.0.0/8", 400],
  ] as const) {
    const app = setUp({ env: { EVALD_ALLOW_PRIVATE: range } });
    const body = { kind: "webhook", url: "http://127.0.0.1:8080/hook", events: ["run.completed"] };
    expect((await app.send("POST", "/api/v1/destinations", { body })).status).toBe(status);
  }
});

const failing = (answers: number[]) => ({
  answer: () => new Response(null, { status: answers.shift() ?? 204 }),
});

test("a delivery that is being retried is replayed immediately, with all its tries left", async () => {
  const app = setUp(failing(Array(3).fill(500)));
  const { id, secret } = await app.addWebhook(["run.completed"]);
  const { id: deliveryId } = await app.post(`/api/v1/destinations/${id}/test`);
  const replay = () => app.send("POST", `/api/v1/destinations/${id}/deliveries/${deliveryId}/replay`);
  for (const count of [1, 2, 3]) {
    await app.deliver();
    const { status, nextTryAt } = await app.lastOf(id);
    expect([app.receiver.received.length, status, Date.parse(nextTryAt) > app.now()]).toEqual([count, "pending", true]);
    const replayed = await replay();
    expect([replayed.status, replayed.body.id, replayed.body.nextTryAt]).toEqual([202, deliveryId, null]);
  }
  const jobs = () => app.db.$client.query("select spent from jobs where kind = 'delivery'").values();
  expect(jobs()).toEqual([[0]]);
  await app.deliver();
  expect(await app.lastOf(id)).toMatchObject({ id: deliveryId, status: "delivered", tries: 4 });
  for (const request of app.receiver.received) app.verified(secret, request);
  expect(new Set(app.receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  expect((await replay()).body.id).not.toBe(deliveryId);
});

test("everything that a destination missed is replayed at once", async () => {
  let isDown = true;
  const app = setUp({ answer: () => new Response(null, { status: isDown ? 500 : 204 }) });
  const { id } = await app.addWebhook(["run.completed", "run.failed"]);
  const path = `/api/v1/destinations/${id}`;
  const prompt = await app.post("/api/v1/prompts", { text: "Upload a file. https://docs.test" });
  const run = async () => {
    await app.post(`/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    await app.runJobs();
  };
  await run();
  await app.deliver();
  await app.send("PATCH", path, { body: { status: "disabled" } });
  app.pass(hourMs);
  // This delivery ends as failed, because the destination is disabled.
  await app.deliver();
  expect((await app.send("POST", `${path}/replay`)).status).toBe(409);
  await app.send("PATCH", path, { body: { status: "active" } });
  await run();
  await app.deliver();
  const statuses = async () => (await app.deliveriesOf(id)).map(({ status }: { status: string }) => status).sort();
  expect(await statuses()).toEqual(["failed", "pending"]);
  isDown = false;
  const { status, body } = await app.send("POST", `${path}/replay`);
  expect([status, body]).toEqual([202, { replayed: 2 }]);
  await app.deliver();
  expect(await statuses()).toEqual(["delivered", "delivered", "failed"]);
  const ids = app.receiver.received.map(({ headers }) => headers["webhook-id"]);
  expect([ids.length, new Set(ids).size]).toEqual([4, 2]);
  expect((await app.send("POST", `${path}/replay`)).body).toEqual({ replayed: 0 });
  expect((await app.send("POST", `/api/v1/destinations/${prompt.id}/replay`)).status).toBe(404);
});

test("after the forms of a destination, the address is a page, and reloading it sends nothing", async () => {
  const app = setUp(failing([500]));
  const admin = await signedIn(app, { role: "admin" });
  const { id } = await app.addWebhook(["run.completed"]);
  const here = `/settings/notifications/${id}`;
  const tested = await admin.post(`${here}/change`, { do: "test" });
  const { id: deliveryId } = await app.lastOf(id);
  expect([tested.status, tested.location]).toEqual([303, `${here}/deliveries/${deliveryId}`]);
  await app.deliver();
  const shown = await admin.get(`${here}/deliveries/${deliveryId}`);
  expect(shown.body).toContain(`action="${here}/deliveries/${deliveryId}/replay"`);
  const replayed = await admin.post(`${here}/deliveries/${deliveryId}/replay`);
  expect([replayed.status, replayed.location]).toEqual([303, `${here}/deliveries/${deliveryId}`]);
  await app.deliver();
  for (const [action, location] of [
    ["disable", here],
    ["enable", here],
    ["replay", here],
  ] as const) {
    const changed = await admin.post(`${here}/change`, { do: action });
    expect([action, changed.status, changed.location]).toEqual([action, 303, location]);
  }
  // Someone who reloads after an error, or keeps the address, gets the page of the form.
  for (const [path, page] of [
    [`${here}/change`, here],
    [`${here}/deliveries/${deliveryId}/replay`, `${here}/deliveries/${deliveryId}`],
  ] as const) {
    const got = await admin.get(path);
    expect([got.status, got.location]).toEqual([303, page]);
  }
  const deleted = await admin.post(`${here}/change`, { do: "delete", confirmed: "1" });
  expect([deleted.status, deleted.location]).toEqual([303, "/settings/notifications"]);
});

test("a form that is refused names everything that is wrong with it", async () => {
  const app = setUp({ env: { EVALD_SECRET_KEY: "", EVALD_ALLOW_PRIVATE: "" } });
  const admin = await signedIn(app, { role: "admin" });
  const path = "/settings/notifications";
  expect((await admin.get(path)).body).toContain("EVALD_SECRET_KEY");
  const form = { kind: "webhook", url: "http://127.0.0.1:4000/hook", name: "CI", header: "no value" };
  const { status, body } = await admin.post(path, form);
  expect(status).toBe(400);
  const wrong = [...body.matchAll(/id="(\w+)-wrong"/g)].map(([, field]) => field);
  expect(wrong).toEqual(["url", "header", "events"]);
  expect(body).toContain("EVALD_ALLOW_PRIVATE=127.0.0.1:4000");
  expect(/role="alert">([^<]*)/.exec(body)?.[1]).toContain("EVALD_SECRET_KEY");
  const sent = { ...form, header: undefined, headers: { Host: "a" }, events: ["run.failed"] };
  const { body: error } = await app.send("POST", "/api/v1/destinations", { body: sent });
  for (const text of ["Invalid url", "Invalid headers", "EVALD_SECRET_KEY"]) expect(error.detail).toContain(text);
});

test("a test event is sent from the form before anything is saved", async () => {
  const app = setUp(failing([500, 204]));
  const admin = await signedIn(app, { role: "admin" });
  const form = { kind: "webhook", url: app.receiver.url, name: "CI", header: "X-Token: t0k3n", events: "run.failed" };
  for (const status of [500, 204]) {
    const answer = await admin.post("/settings/notifications", { ...form, do: "test" });
    expect([answer.status, answer.body.includes(`value="${app.receiver.url}"`)]).toEqual([
      status === 204 ? 200 : 400,
      true,
    ]);
    expect(answer.body).toContain(String(status));
    const request = app.receiver.received.at(-1);
    expect([request?.headers["x-token"], JSON.parse(request?.body ?? "").type]).toEqual(["t0k3n", "destination.test"]);
  }
  expect((await app.send("GET", "/api/v1/destinations")).body).toEqual([]);
  const member = await signedIn(app, { role: "member" });
  expect((await member.post("/settings/notifications", { ...form, do: "test" })).status).toBe(403);
  expect(app.receiver.received.length).toBe(2);
});
