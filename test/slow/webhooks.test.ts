import { afterEach, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { updateOrg } from "../../src/auth/orgs.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import { advanceGates } from "../../src/gates/progress.ts";
import { createService } from "../../src/service.ts";
import { noisy } from "../support/app.ts";
import { deliveringApp } from "../support/deliveries.ts";
import { emptyFolder } from "../support/executable.ts";
import { join as joinOrg, signedIn } from "../support/people.ts";
import { evaluation, finishRuns, niceGrade } from "../support/reports.ts";
import { startSmtp } from "../support/smtp.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const open: ReturnType<typeof deliveringApp>[] = [];
afterEach(() => {
  for (const { receiver } of open.splice(0)) receiver.close();
});
function setUp(options?: Parameters<typeof deliveringApp>[0]) {
  const app = deliveringApp(options);
  open.push(app);
  return app;
}

describe("a receiver that", () => {
  test("fails is tried ten times over about 75 hours, then disabled, and the owners get an email", async () => {
    const smtp = startSmtp();
    const env = { EVALD_SMTP_URL: smtp.url, EVALD_MAIL_FROM: "evald@acme.test" };
    const app = setUp({ answer: () => new Response("x".repeat(5_000), { status: 500 }), env });
    joinOrg(app, app.a.org, "owner", "owner@acme.test");
    const { id, secret } = await app.addWebhook(["run.completed"]);
    await app.post(`/api/v1/destinations/${id}/test`);
    const startedAt = app.now();
    const delays: number[] = [];
    for (let attempt = 1; attempt <= 10; attempt++) {
      await app.deliver();
      expect(app.receiver.received.length).toBe(attempt);
      const { nextTryAt } = await app.lastOf(id);
      if (attempt === 10) break;
      delays.push(Date.parse(nextTryAt) - app.now());
      app.pass(Date.parse(nextTryAt) - app.now());
    }
    const wanted = [5_000, 5 * minuteMs, 30 * minuteMs, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * hourMs)];
    for (const [i, delay] of delays.entries()) {
      expect(delay).toBeGreaterThanOrEqual(wanted[i] ?? 0);
      expect(delay).toBeLessThanOrEqual((wanted[i] ?? 0) * 1.1 + 1);
    }
    expect((app.now() - startedAt) / hourMs).toBeWithin(75, 84);
    const delivery = await app.lastOf(id);
    expect(delivery).toMatchObject({
      status: "failed",
      failure: "exhausted",
      tries: 10,
      lastStatus: 500,
      nextTryAt: null,
    });
    expect(delivery.log.map(({ body }: { body: string }) => body.length)).toEqual(Array(10).fill(1_000));
    const ids = app.receiver.received.map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids)).toEqual(new Set([delivery.notificationId]));
    app.verified(secret, app.receiver.received.at(-1));
    expect((await app.send("GET", `/api/v1/destinations/${id}`)).body).toMatchObject({
      status: "disabled",
      disabledBecause: "failing",
    });
    const mail = await smtp.first();
    expect(mail.to).toBe("owner@acme.test");
    expect(mail.text).toContain(`/settings/notifications/${id}`);
    smtp.close();
  });

  test("fails once while others succeed stays enabled", async () => {
    const app = setUp({ answer: ({ body }) => new Response(null, { status: body.includes("first") ? 500 : 200 }) });
    const { id } = await app.addWebhook(["run.completed"], { name: "first" });
    await app.post(`/api/v1/destinations/${id}/test`);
    await app.send("PATCH", `/api/v1/destinations/${id}`, { body: { name: "second" } });
    for (let attempt = 1; attempt <= 10; attempt++) {
      await app.deliver();
      app.pass(27 * hourMs);
      if (attempt === 5) {
        await app.post(`/api/v1/destinations/${id}/test`);
        await app.deliver();
      }
    }
    expect((await app.deliveriesOf(id)).map((each: { status: string }) => each.status)).toEqual([
      "delivered",
      "failed",
    ]);
    expect((await app.send("GET", `/api/v1/destinations/${id}`)).body.status).toBe("active");
  });

  test("asks to wait is tried again when it says, but within a day", async () => {
    const app = setUp({
      answer: (_, n) => new Response(null, { status: 429, headers: { "retry-after": n === 1 ? "600" : "9999999" } }),
    });
    const { id } = await app.addWebhook(["run.completed"]);
    await app.post(`/api/v1/destinations/${id}/test`);
    await app.deliver();
    expect(Date.parse((await app.lastOf(id)).nextTryAt) - app.now()).toBe(600_000);
    app.pass(600_000);
    await app.deliver();
    expect(Date.parse((await app.lastOf(id)).nextTryAt) - app.now()).toBe(24 * hourMs);
  });

  test("is gone is disabled immediately, and nothing more is sent until it is enabled", async () => {
    const app = setUp({ answer: (_, n) => new Response(null, { status: n === 1 ? 410 : 204 }) });
    const { id } = await app.addWebhook(["run.completed"]);
    for (let i = 0; i < 2; i++) await app.post(`/api/v1/destinations/${id}/test`);
    await app.deliver();
    const failures = (await app.deliveriesOf(id)).map((each: { failure: string }) => each.failure);
    expect(failures).toContain("gone");
    expect((await app.send("GET", `/api/v1/destinations/${id}`)).body).toMatchObject({ disabledBecause: "gone" });
    expect((await app.send("POST", `/api/v1/destinations/${id}/test`)).status).toBe(409);
    await app.send("PATCH", `/api/v1/destinations/${id}`, { body: { status: "active" } });
    const { id: delivery, notificationId } = (await app.deliveriesOf(id)).find(
      (each: { failure: string }) => each.failure === "gone",
    );
    const again = await app.post(`/api/v1/destinations/${id}/deliveries/${delivery}/replay`);
    await app.deliver();
    expect(await app.lastOf(id)).toMatchObject({ id: again.id, status: "delivered", notificationId });
    expect(app.receiver.received.at(-1)?.headers["webhook-id"]).toBe(notificationId);
  });

  test.each([301, 302, 307, 308])("redirects with %i is not followed", async (status) => {
    const app = setUp({
      answer: ({ path }) => (path === "/hook" ? Response.redirect("/other", status) : new Response()),
    });
    const { id } = await app.addWebhook(["run.completed"]);
    await app.post(`/api/v1/destinations/${id}/test`);
    await app.deliver();
    expect(app.receiver.received.map(({ path }) => path)).toEqual(["/hook"]);
    expect(await app.lastOf(id)).toMatchObject({
      status: "pending",
      lastStatus: status,
      log: [{ error: expect.any(String) }],
    });
  });

  test("is slow times out and delays nobody", async () => {
    const held = Promise.withResolvers<Response>();
    const app = setUp({
      answer: ({ path }) => (path === "/hook" ? held.promise : new Response()),
      deliveryTimeoutMs: 3_000,
    });
    const { id } = await app.addWebhook(["run.completed"]);
    const { id: other } = await app.addWebhook(["run.completed"], { url: app.receiver.url.replace("/hook", "/fast") });
    for (const each of [id, other]) await app.post(`/api/v1/destinations/${each}/test`);
    await app.deliver();
    expect(await app.lastOf(other)).toMatchObject({ status: "delivered" });
    expect(await app.lastOf(id)).toMatchObject({
      status: "pending",
      lastStatus: null,
      log: [{ error: expect.any(String) }],
    });
    held.resolve(new Response());
  });

  test("responds with 20 MB is read only in part", async () => {
    const app = setUp({ answer: () => new Response("y".repeat(20 * 1024 * 1024)) });
    const { id } = await app.addWebhook(["run.completed"]);
    await app.post(`/api/v1/destinations/${id}/test`);
    await app.deliver();
    const delivery = await app.lastOf(id);
    expect(delivery).toMatchObject({ status: "delivered", lastStatus: 200 });
    expect(delivery.log[0].body.length).toBe(1_000);
  });

  test("has an untrusted certificate gets nothing", async () => {
    const folder = emptyFolder();
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const openssl = `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -keyout ${key} -out ${cert}`;
    expect(Bun.spawnSync(openssl.split(" "), { stderr: "ignore" }).success).toBe(true);
    let requests = 0;
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls: { key: Bun.file(key), cert: Bun.file(cert) },
      fetch: () => new Response(`${++requests}`),
    });
    const app = setUp({ env: { EVALD_ALLOW_PRIVATE: server.url.host } });
    const { id } = await app.addWebhook(["run.completed"], { url: `https://${server.url.host}/` });
    await app.post(`/api/v1/destinations/${id}/test`);
    await app.deliver();
    expect(await app.lastOf(id)).toMatchObject({
      status: "pending",
      lastStatus: null,
      log: [{ error: expect.stringContaining("certificate") }],
    });
    expect(requests).toBe(0);
    server.stop(true);
  });

  test("has a private address gets nothing, not even if its name resolves to it later", async () => {
    const app = setUp();
    const refuse = async (url: string) =>
      (await app.send("POST", "/api/v1/destinations", { body: { kind: "webhook", url, events: ["run.completed"] } }))
        .status;
    for (const url of [
      "https://127.0.0.1/",
      "https://localhost/",
      "https://[::1]/",
      "https://169.254.169.254/",
      "https://10.0.0.1/",
      "http://example.com/",
      "https://example.com:8443/",
      "https://user:pass@example.com/",
      "ftp://example.com/",
    ])
      expect([url, await refuse(url)]).toEqual([url, 400]);
    const { id } = await app.addWebhook(["run.completed"]);
    // As if its name resolved to another address when it was saved.
    app.db.$client.run("update destinations set url = 'https://localhost/' where id = ?", [id]);
    await app.post(`/api/v1/destinations/${id}/test`);
    await app.deliver();
    expect(await app.lastOf(id)).toMatchObject({
      status: "pending",
      log: [{ status: null, error: expect.stringContaining("loopback") }],
    });
  });
});

test("an organization has at most 20 destinations, and bad input is named", async () => {
  const app = setUp();
  for (let i = 0; i < 20; i++) await app.addWebhook(["run.completed"]);
  const add = async (body: object) =>
    await app.send("POST", "/api/v1/destinations", {
      body: { kind: "webhook", url: app.receiver.url, events: ["run.completed"], ...body },
    });
  expect((await add({})).status).toBe(409);
  for (const [field, wrong] of Object.entries({
    events: ["run.started"],
    headers: { "webhook-id": "1" },
    recipients: ["a@b.test"],
    url: "nowhere",
  }))
    expect([field, (await add({ [field]: wrong })).body]).toEqual([
      field,
      { error: "bad_request", detail: expect.stringContaining(field) },
    ]);
  expect((await add({ headers: { "X-A": "a\nb" } })).status).toBe(400);
  expect((await add({ kind: "email", url: undefined })).body.detail).toContain("EVALD_SMTP_URL");
});

test("two services that drain one outbox deliver everything, and end each delivery once", async () => {
  const dataDir = emptyFolder();
  const app = setUp({ dataDir });
  const db = openDb(dataDir);
  const other = createService({ ...app.service.ctx, db, agents: {}, now: app.now });
  const { id } = await app.addWebhook(["run.completed"]);
  const ids = new Set<string>();
  for (let i = 0; i < 60; i++) ids.add((await app.post(`/api/v1/destinations/${id}/test`)).notificationId);
  await other.notifier.runner.start();
  await app.deliver();
  await other.notifier.runner.stop(5_000);
  const all = (await app.send("GET", `/api/v1/destinations/${id}/deliveries`)).body;
  expect(all.map((each: { status: string }) => each.status)).toEqual(Array(60).fill("delivered"));
  expect(new Set(app.receiver.received.map(({ headers }) => headers["webhook-id"] ?? ""))).toEqual(ids);
  for (const each of [app.db, db]) closeDb(each);
  rmSync(dataDir, { recursive: true });
});

test("a deleted destination takes its deliveries and secrets with it", async () => {
  const app = setUp({ answer: () => new Response(null, { status: 500 }) });
  const { id } = await app.addWebhook(["run.completed"]);
  await app.post(`/api/v1/destinations/${id}/test`);
  await app.deliver();
  expect((await app.send("DELETE", `/api/v1/destinations/${id}`)).status).toBe(200);
  for (const table of ["destinations", "deliveries", "delivery_tries", "jobs", "attempts"])
    expect([table, app.db.$client.query(`select count(*) n from ${table}`).get()]).toEqual([table, { n: 0 }]);
});

const typesOf = (app: ReturnType<typeof setUp>) => app.receiver.received.map(({ body }) => JSON.parse(body));

test("every event is sent once by its cause", async () => {
  const app = setUp({ agents: noisy });
  const { id } = await app.addWebhook([
    ...["run.failed", "gate.decided", "evaluation.completed", "friction.opened", "friction.regressed"],
    ...["score.changed", "budget.reached", "schedule.missed"],
  ]);
  const { service, a } = app;
  const sent = async (type: string) => {
    await app.deliver();
    return typesOf(app)
      .filter((each) => each.type === type)
      .map(({ data }) => data);
  };
  const text = "See https://docs.example.com";
  const prompt = await app.post("/api/v1/prompts", { title: "Upload", text, agent: "noisy" });

  const { runId } = await app.post(`/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
  await app.send("POST", `/api/v1/runs/${runId}/cancel`);
  expect(await sent("run.failed")).toMatchObject([
    { run: { id: runId }, prompt: { title: "Upload" }, failure: { cause: "cancelled" } },
  ]);
  expect(await sent("evaluation.completed")).toMatchObject([
    { evaluation: { status: "failed", runs: { failed: 1 } }, reports: [] },
  ]);

  const [friction] = niceGrade.frictions;
  const clean = { ...niceGrade, frictions: [], recommendations: [] };
  for (let i = 0; i < 3; i++) evaluation(app, prompt.id, [niceGrade]);
  expect(await sent("friction.opened")).toMatchObject([
    { friction: { fingerprint: friction?.fingerprint, severity: "high" }, prompt: { id: prompt.id } },
  ]);
  for (let i = 0; i < 4; i++) evaluation(app, prompt.id, [clean, clean]);
  expect(await sent("friction.regressed")).toEqual([]);
  evaluation(app, prompt.id, [niceGrade]);
  evaluation(app, prompt.id, [niceGrade]);
  expect(await sent("friction.regressed")).toMatchObject([{ friction: { fingerprint: friction?.fingerprint } }]);

  const scored = await app.post("/api/v1/prompts", { title: "Scored", text, agent: "noisy" });
  for (const [base, spread] of [
    [80, 2],
    [50, 2],
    [50, 2],
  ] as const) {
    app.pass(hourMs);
    evaluation(
      app,
      scored.id,
      Array.from({ length: 8 }, (_, i) => ({ ...clean, score: base + (i % 3) * spread })),
    );
  }
  expect(await sent("score.changed")).toMatchObject([
    { prompt: { title: "Scored" }, verdict: "regressed", delta: -30 },
  ]);

  await app.send("POST", "/api/v1/gates", {
    body: { promptId: scored.id, urlMap: { "docs.example.com": "https://p.example" }, minScore: 90 },
  });
  finishRuns(app, () => clean);
  await advanceGates(service.ctx);
  expect(await sent("gate.decided")).toMatchObject([
    { gate: { status: "failed", minScore: 90 }, prompts: [{ id: scored.id }] },
  ]);

  updateOrg(service.ctx, a.org, { maxUsdAMonth: 10 });
  app.db.$client.run("insert into spending values (?, ?, 11, 0, 0)", [a.org, app.now()]);
  for (let i = 0; i < 2; i++) {
    const { runId } = await app.post(`/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    await app.send("POST", `/api/v1/runs/${runId}/cancel`);
  }
  expect(await sent("budget.reached")).toMatchObject([{ spentUsd: 11, maxUsdAMonth: 10 }]);

  await app.send("PATCH", `/api/v1/prompts/${scored.id}`, { body: { frequency: "0 * * * *" } });
  app.pass(5 * hourMs);
  await service.scheduler.tick();
  expect(await sent("schedule.missed")).toMatchObject([{ prompt: { id: scored.id }, missed: 4 }]);
  expect((await app.deliveriesOf(id)).every((each: { status: string }) => each.status === "delivered")).toBe(true);
  for (const { body } of app.receiver.received) expect(body.length).toBeLessThan(20_000);
});

test("the weekly digest is sent once on Monday morning, to Slack, by webhook and by email", async () => {
  const smtp = startSmtp();
  const env = { EVALD_SMTP_URL: smtp.url, EVALD_MAIL_FROM: "evald@acme.test" };
  const app = setUp({ env, answer: () => new Response("ok") });
  const { service, a } = app;
  joinOrg(app, a.org, "owner", "owner@acme.test");
  joinOrg(app, a.org, "member", "member@acme.test");
  await app.addWebhook(["digest.weekly"]);
  const url = `${app.receiver.url}/slack`;
  await app.post("/api/v1/destinations", { kind: "slack", url, events: ["digest.weekly"] });
  const events = ["digest.weekly"];
  await app.post("/api/v1/destinations", { kind: "email", events, recipients: ["member@acme.test"] });
  const strange = await app.send("POST", "/api/v1/destinations", {
    body: { kind: "email", events, recipients: ["x@evil.test"] },
  });
  expect(strange.status).toBe(400);
  const prompt = await app.post("/api/v1/prompts", { title: "Upload", text: "See https://docs.example.com" });
  evaluation(app, prompt.id, [niceGrade, "timeout: too long"]);
  await service.notifier.digests.tick();
  // The clock moves from Saturday to Monday, 8:00 UTC.
  app.pass(Date.UTC(2026, 10, 23, 8) - app.now());
  for (let i = 0; i < 2; i++) await service.notifier.digests.tick();
  await app.deliver();
  const [digest, ...more] = app.receiver.received.map(({ body }) => JSON.parse(body)).filter((each) => each.type);
  expect(more).toEqual([]);
  expect(digest.data).toMatchObject({
    until: "2026-11-23T08:00:00.000Z",
    runs: { completed: 1, failed: 1 },
    fixFirst: [{ title: niceGrade.recommendations[0]?.title, prompt: { title: "Upload" } }],
  });
  const [slack] = app.receiver.received.filter(({ path }) => path === "/hook/slack");
  expect(JSON.parse(slack?.body ?? "").blocks[0].type).toBe("header");
  expect(slack?.headers["webhook-signature"]).toBeUndefined();
  const mail = await smtp.first();
  expect([mail.to, mail.text]).toEqual(["member@acme.test", expect.stringContaining("What to fix first")]);
  // After a downtime over two Mondays, only the last digest is sent, six days late.
  app.pass(20 * 24 * 3600_000);
  for (let i = 0; i < 2; i++) await service.notifier.digests.tick();
  await app.deliver();
  const late = app.receiver.received.map(({ body }) => JSON.parse(body)).filter((each) => each.type);
  expect(late.map(({ data }) => data.until)).toEqual(["2026-11-23T08:00:00.000Z", "2026-12-07T08:00:00.000Z"]);
  smtp.close();
});

test("an admin adds, tests, rotates and deletes a webhook in Settings, and replays a delivery", async () => {
  const app = setUp();
  const admin = await signedIn(app, { role: "admin" });
  const path = "/settings/notifications";
  const form = { kind: "webhook", url: app.receiver.url, name: "CI", header: "X-Token: t0k3n", events: "run.failed" };
  const added = await admin.post(path, form);
  const secret = /whsec_[\w+/=]+/.exec(added.body)?.[0] ?? "";
  const [{ id }] = (await app.send("GET", "/api/v1/destinations")).body;
  const here = `${path}/${id}`;
  expect([added.status, secret.length > 30, (await admin.get(here)).body.includes(secret)]).toEqual([200, true, false]);
  expect((await admin.post(`${here}/change`, { do: "test" })).status).toBe(303);
  await app.deliver();
  expect(app.receiver.received[0]?.headers["x-token"]).toBe("t0k3n");
  app.verified(secret, app.receiver.received[0]);
  const delivery = await app.lastOf(id);
  const shown = await admin.get(`${here}/deliveries/${delivery.id}`);
  expect([shown.status, shown.body.includes(delivery.notificationId)]).toEqual([200, true]);
  expect((await admin.post(`${here}/deliveries/${delivery.id}/replay`, {})).status).toBe(303);
  await app.deliver();
  expect(app.receiver.received.length).toBe(2);
  expect((await admin.post(`${here}/change`, { do: "rotate" })).body).toContain("whsec_");
  expect((await admin.post(path, { ...form, url: "http://10.0.0.1/" })).status).toBe(400);
  const member = await signedIn(app, { role: "member" });
  expect((await member.post(path, form)).status).toBe(403);
  expect((await admin.post(`${here}/change`, { do: "delete" })).body).toContain("confirmed");
  expect((await admin.post(`${here}/change`, { do: "delete", confirmed: "1" })).status).toBe(303);
  expect((await app.send("GET", "/api/v1/destinations")).body).toEqual([]);
});
