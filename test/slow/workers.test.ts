import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { version } from "../../package.json" with { type: "json" };
import { openDb } from "../../src/db/open.ts";
import { createLocalExecutor } from "../../src/places/local.ts";
import { type KnownWorker, messageStreamOf, sharedCredential } from "../../src/places/messages.ts";
import { openWorker } from "../../src/places/worker.ts";
import { openWorkerExecutor } from "../../src/places/worker-executor.ts";
import { listKnownWorkers, storeKnownWorkers } from "../../src/workers/known-workers.ts";
import { instantAgent, testApp } from "../support/app.ts";
import { complaintsOf, openBrowser, problemsOf } from "../support/browser.ts";
import { emptyFolder } from "../support/executable.ts";
import { serveGateway } from "../support/gateway-stub.ts";
import { createCertificate } from "../support/network.ts";
import { signedIn } from "../support/people.ts";
import { freePort, startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

const log = pino({ level: process.env.TEST_LOG ?? "silent" });
const agents = { explorer: instantAgent };

let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  redis = await startRedis();
});
const gateway = serveGateway();
afterAll(async () => {
  gateway.stop();
  await redis.kill();
});

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

type On = { url?: string; goneMs?: number; gatewayUrl?: string };
const shortMs = 6_000;

/** Starts `evald worker` as a separate process. */
const startWorker = (...args: string[]) => startWorkerOn({}, ...args);

function startWorkerOn({ url = redis.url, goneMs, gatewayUrl = gateway.url }: On, ...args: string[]) {
  const child = Bun.spawn([process.execPath, "test/support/instant.ts", "worker", ...args], {
    cwd: `${import.meta.dir}/../..`,
    env: {
      PATH: process.env.PATH ?? "",
      EVALD_REDIS_URL: url,
      EVALD_GATEWAY_URL: gatewayUrl,
      EVALD_LOG_FORMAT: "json",
      ...(goneMs && { GONE_MS: String(goneMs) }),
    },
    stdout: "ignore",
    stderr: "pipe",
  });
  let said = "";
  (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of child.stderr) said += decoder.decode(bytes, { stream: true });
  })();
  closings.push(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  return { signal: (signal: NodeJS.Signals) => child.kill(signal), exited: child.exited, said: () => said };
}

/** A service, and a run that ends only after `release`. */
async function startRun({
  url = redis.url,
  waitMs = 60_000,
  workerLabels = [] as string[],
  log: executorLog = log,
} = {}) {
  const file = join(emptyFolder(), "go");
  const executor = openWorkerExecutor(url, version, agents, waitMs, executorLog, { goneMs: shortMs });
  const app = testApp({ workers: () => executor, log, env: { EVALD_REDIS_URL: url } });
  const prompt = await app.send("POST", "/api/v1/prompts", {
    body: { text: `See https://docs.test/ as a-session until ${file}`, workerLabels },
  });
  const { body } = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  await app.service.runner.start();
  closings.push(() => app.service.stop(0));
  const get = async () => (await app.send("GET", `/api/v1/runs/${body.runId}`)).body;
  return {
    ...app,
    runId: body.runId as string,
    get,
    attempts: async () => (await app.send("GET", `/api/v1/runs/${body.runId}/attempts`)).body,
    eventsOf: (attempt: number) =>
      app.db.$client
        .query<{ n: number }, [number]>("select count(*) n from session_events where attempt = ?")
        .get(attempt)?.n,
    /** Why the attempt before the present one failed. */
    lastFailure: () => {
      const query = "select data from session_events where data like '%attempt_failed%' order by attempt desc";
      return JSON.parse(app.db.$client.query<{ data: string }, []>(query).get()?.data ?? "{}").detail;
    },
    /** What the audit log says about workers, the oldest first. */
    workerActions: () =>
      app.db.$client.query("select action from audit_entries where action like 'worker.%' order by id").values().flat(),
    untilOver: () => until("the run is over", async () => (await get()).completedAt !== null),
    release: () => Bun.write(file, ""),
  };
}

const runs = ({ said }: ReturnType<typeof startWorker>) =>
  until("the worker runs the session", () => said().includes("session started"));

/** Sends batches of a session as its worker would, each with an event. Resolves when the service has read them. */
async function sendBatches(key: string, numbers: Iterable<number>): Promise<void> {
  const lines = [{ event: { type: "thought", text: "not wanted", by: "rule" }, source: "agent" }];
  const stream = messageStreamOf(sharedCredential);
  for (const number of numbers)
    await redis.command("xadd", stream, "*", "m", JSON.stringify({ kind: "lines", key, number, lines }));
  await until("the service has read them", async () => (await redis.command("xlen", stream)) === "0");
}

test.each(["SIGKILL", "SIGSTOP"] as const)("a session is moved to another worker after %s", async (signal) => {
  const first = startWorker();
  const run = await startRun();
  await runs(first);
  const second = startWorker();
  // One that connects only after the first is missed takes its place: they have the same name.
  await until("both workers are connected", () => run.service.workers?.list().length === 2);
  first.signal(signal);
  await runs(second);
  await until("the end of the first attempt is stored", () => run.lastFailure() !== undefined);
  expect(run.lastFailure()).toMatchObject({ code: "worker_lost", cause: "infrastructure" });
  await run.release();
  await run.untilOver();
  expect(await run.get()).toMatchObject({ status: "completed" });
  expect(await run.attempts()).toMatchObject([{ outcome: "retried" }, { outcome: "done" }]);
  const before = [run.eventsOf(1), run.eventsOf(2), await run.get()];
  if (signal === "SIGSTOP") {
    // Anything it still sends is too late, whatever the number of the next batch.
    first.signal("SIGCONT");
    await until("the session was stopped", () => first.said().includes("session ended"));
    await sendBatches(
      `${run.runId}-1`,
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
  }
  expect([run.eventsOf(1), run.eventsOf(2), await run.get()]).toEqual(before);
  expect((await run.send("GET", "/api/v1/reports")).body.length).toBe(1);
  if (signal === "SIGSTOP") first.signal("SIGKILL");
  // The second worker has the same agents, until it leaves too.
  const away = () => run.service.ctx.awayWorkers().flatMap((worker) => worker.agents);
  expect(away()).toEqual([]);
  second.signal("SIGTERM");
  await until("the second worker is missed", () => away().length > 0);
  startWorker();
  await until("a worker with the same agents is connected", () => away().length === 0);
});

test("a worker is still missed after the service was restarted, until it connects", async () => {
  const own = await startRedis();
  closings.push(own.kill);
  const db = openDb(emptyFolder());
  const known = {
    list: () => listKnownWorkers(db, Date.now()),
    store: (all: KnownWorker[]) => storeKnownWorkers(db, Date.now(), all),
  };
  const open = () => openWorkerExecutor(own.url, version, agents, 0, log, { known, owner: "here" });
  const worker = startWorkerOn({ url: own.url });
  const before = open();
  await until("the worker is stored", () => known.list().length === 1);
  expect([before.list().length, before.listAway()]).toEqual([1, []]);
  await before.close();
  worker.signal("SIGKILL");
  const after = open();
  closings.push(() => after.close());
  expect(after.listAway()).toMatchObject([{ name: hostname(), agents: expect.arrayContaining(["explorer"]) }]);
  startWorkerOn({ url: own.url });
  await until("a worker of that name is connected", () => after.list().length === 1 && after.listAway().length === 0);
}, 60_000);

test("batches of a session that arrive again or too early change nothing", async () => {
  const worker = startWorker();
  const run = await startRun();
  await runs(worker);
  await until("a batch has arrived", () => run.eventsOf(1));
  await sendBatches(`${run.runId}-1`, [1, 1, 100_000, 1]);
  await run.release();
  await run.untilOver();
  expect(await run.attempts()).toMatchObject([{ outcome: "done" }]);
  const events = run.db.$client.query<{ data: string }, []>("select data from session_events").all();
  expect(events.filter(({ data }) => data.includes("nothing to do")).length).toBeGreaterThan(0);
  expect(events.filter(({ data }) => data.includes("not wanted"))).toEqual([]);
});

test("sessions that start together use the slots of all workers", async () => {
  const workers = [startWorker("--slots", "1"), startWorker("--slots", "1")];
  const executor = openWorkerExecutor(redis.url, version, agents, 60_000, log);
  const app = testApp({ workers: () => executor, log });
  closings.push(() => app.service.stop(0));
  await until("both are connected", () => executor.slots() === 2);
  const file = join(emptyFolder(), "go");
  const prompt = await app.send("POST", "/api/v1/prompts", { body: { text: `See https://docs.test/ until ${file}` } });
  const request = () => app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  await Promise.all([request(), request()]);
  await app.service.runner.start();
  await Promise.all(workers.map(runs));
});

test("a session continues after a crash of Redis", async () => {
  const worker = startWorker();
  const run = await startRun();
  await runs(worker);
  await redis.kill();
  await redis.restart();
  await run.release();
  await run.untilOver();
  expect(await run.get()).toMatchObject({ status: "completed" });
  expect(await run.attempts()).toMatchObject([{ outcome: "done" }]);
  worker.signal("SIGTERM");
  expect(await worker.exited).toBe(0);
});

test("a session continues after Redis lost everything", async () => {
  const worker = startWorker();
  const run = await startRun();
  await runs(worker);
  await redis.command("flushall");
  await run.release();
  await run.untilOver();
  expect(await run.attempts()).toMatchObject([{ outcome: "done" }]);
  const { body } = await run.send("POST", `/api/v1/runs/${run.runId}/rerun`, { body: {} });
  const next = async () => (await run.send("GET", `/api/v1/runs/${body.runId}`)).body;
  await until("a new session ends, too", async () => (await next()).completedAt);
  expect(await next()).toMatchObject({ status: "completed", attempt: 1 });
});

test("a session starts again after Redis was away for too long, and so do runs accepted meanwhile", async () => {
  const own = await startRedis();
  closings.push(own.kill);
  const worker = startWorkerOn({ url: own.url, goneMs: shortMs }, "--slots", "3");
  const run = await startRun({ url: own.url });
  await runs(worker);
  await own.kill();
  // Each side gives the session up by itself.
  await until("the worker has stopped it", () => worker.said().includes("was told to stop"));
  await until("the service has given it up", async () => (await run.attempts())[0]?.outcome);
  const { status, body } = await run.send("POST", `/api/v1/runs/${run.runId}/rerun`, { body: {} });
  expect(status).toBe(200);
  rmSync(join(own.folder, "appendonlydir"), { recursive: true });
  await own.restart();
  await until("it runs both", () => worker.said().split("session started").length === 4);
  await run.release();
  const other = async () => (await run.send("GET", `/api/v1/runs/${body.runId}`)).body;
  await until("both are over", async () => (await run.get()).completedAt && (await other()).completedAt);
  expect(await run.attempts()).toMatchObject([{ outcome: "retried" }, { outcome: "done" }]);
  expect(await other()).toMatchObject({ status: "completed", attempt: 1 });
  expect((await run.send("GET", "/api/v1/reports")).body.length).toBe(2);
});

test("a run waits without a limit while Redis can't be reached", async () => {
  const own = await startRedis();
  await own.kill();
  const logged: string[] = [];
  const executor = openWorkerExecutor(
    own.url,
    version,
    agents,
    1,
    pino({ level: "warn" }, { write: (line: string) => logged.push(line) }),
  );
  const app = testApp({ workers: () => executor, log });
  closings.push(() => app.service.stop(0));
  await until("the service knows", () => logged.join().includes("Redis can't be reached"));
  const prompt = await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } });
  const { body } = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  await app.service.runner.start();
  const get = async () => (await app.send("GET", `/api/v1/runs/${body.runId}`)).body;
  const { waitingFor } = await until("the run waits", async () => {
    const run = await get();
    return run.waitingFor || run.completedAt ? run : null;
  });
  expect(waitingFor).toMatchObject({ what: "worker", failsAt: null });
});

test("a run goes only to a worker with its labels, and says that it waits for one", async () => {
  const plain = startWorker("--labels", "eu");
  const run = await startRun({ workerLabels: ["eu", "gpu"] });
  await until("the run waits", async () => (await run.get()).waitingFor !== null);
  expect(await run.get()).toMatchObject({
    status: "running",
    waitingFor: { what: "worker", agent: "explorer", sandbox: false, labels: ["eu", "gpu"] },
  });
  const able = startWorker("--labels", "gpu,eu");
  await runs(able);
  await until("the run no longer waits", async () => (await run.get()).waitingFor === null);
  await run.release();
  await run.untilOver();
  expect(await run.get()).toMatchObject({ status: "completed", attempt: 1 });
  expect(plain.said()).not.toContain("session started");
});

test("runs that wait for a certain worker don't prevent others from starting", async () => {
  const worker = startWorker("--slots", "1");
  const run = await startRun({ workerLabels: ["gpu"] });
  const other = await run.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/ for 1 ms" } });
  const asked = await run.send("POST", `/api/v1/prompts/${other.body.id}/run`, { body: { urlMap: {} } });
  await until(
    "the other run is over",
    async () => (await run.send("GET", `/api/v1/runs/${asked.body.runId}`)).body.status === "completed",
  );
  expect((await run.get()).waitingFor).toMatchObject({ what: "worker" });
  await until("the worker has run it", () => worker.said().includes("session ended"));
});

test("a run fails when no worker has its labels for too long", async () => {
  startWorker();
  const run = await startRun({ workerLabels: ["gpu"], waitMs: 1_000 });
  await run.untilOver();
  expect(await run.get()).toMatchObject({
    status: "failed",
    waitingFor: null,
    failure: { code: "no_worker", subject: "explorer" },
    failureReason: expect.stringMatching(/^infrastructure: .*worker/),
  });
});

test("a run with worker labels fails immediately on a service without workers", async () => {
  const app = testApp();
  const prompt = await app.send("POST", "/api/v1/prompts", {
    body: { text: "See https://docs.test/", workerLabels: ["gpu"] },
  });
  const { body } = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  expect((await app.send("GET", `/api/v1/runs/${body.runId}`)).body).toMatchObject({
    status: "failed",
    failureReason: expect.stringMatching(/^infrastructure: .*gpu/),
  });
});

/** A service with one organization. */
function keepOneOrg({ db, b }: Pick<Awaited<ReturnType<typeof startRun>>, "db" | "b">): void {
  db.$client.run("delete from api_keys where org_id = ?", [b.org]);
  db.$client.run("delete from orgs where id = ?", [b.org]);
}

test("a drained worker finishes its session, takes no other and ends", async () => {
  const first = startWorker("--labels", "old");
  const run = await startRun();
  await runs(first);
  expect((await run.send("GET", "/api/v1/workers")).status).toBe(403);
  keepOneOrg(run);
  const { body } = await run.send("GET", "/api/v1/workers");
  expect(body).toMatchObject([
    { state: "ready", version, runIds: [(await run.get()).runId], sandbox: { isAvailable: expect.any(Boolean) } },
  ]);
  expect(body[0].labels).toContain("old");
  const drained = await run.send("POST", `/api/v1/workers/${body[0].id}/drain`);
  expect(drained).toMatchObject({ status: 200, body: { state: "draining" } });
  expect((await run.send("POST", `/api/v1/workers/${crypto.randomUUID()}/drain`)).status).toBe(404);
  expect(run.workerActions()).toEqual(["worker.drained"]);
  const second = startWorker();
  await until("both are connected", async () => (await run.send("GET", "/api/v1/workers")).body.length === 2);
  await run.release();
  await run.untilOver();
  expect(await first.exited).toBe(0);
  expect(run.service.ctx.awayWorkers()).toEqual([]);
  expect(await run.attempts()).toMatchObject([{ outcome: "done" }]);
  expect(second.said()).not.toContain("session started");
});

test("the sessions of a removed worker start again on another", async () => {
  const first = startWorker();
  const run = await startRun();
  keepOneOrg(run);
  await runs(first);
  const [worker] = (await run.send("GET", "/api/v1/workers")).body;
  const second = startWorker();
  await until("both are connected", async () => (await run.send("GET", "/api/v1/workers")).body.length === 2);
  expect((await run.send("DELETE", `/api/v1/workers/${worker.id}`)).status).toBe(200);
  expect(run.workerActions()).toEqual(["worker.removed"]);
  expect((await run.send("GET", "/api/v1/workers")).body.map(({ id }: { id: string }) => id)).not.toContain(worker.id);
  await runs(second);
  expect(await first.exited).toBe(0);
  await run.release();
  await run.untilOver();
  expect(await run.attempts()).toMatchObject([{ outcome: "retried" }, { outcome: "done" }]);
});

/** Reads a stream of a page until it has sent this text. */
async function untilStreamed({ app, baseUrl }: Awaited<ReturnType<typeof startRun>>, cookie: string, text: string) {
  const url = new URL("/settings/workers/live", baseUrl);
  const { body } = await app.handle(new Request(url, { headers: { cookie, accept: "text/event-stream" } }));
  let read = "";
  for await (const bytes of body as ReadableStream<Uint8Array>) {
    read += new TextDecoder().decode(bytes);
    if (read.includes(text)) return;
  }
  throw new Error(`the stream ended without ${text}`);
}

/** What is wrong with a page in a browser. */
async function problemsInBrowser({ app }: Awaited<ReturnType<typeof startRun>>, cookie: string, path: string) {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.handle(request) });
  const browser = await openBrowser();
  try {
    const page = await browser.newPage({ extraHTTPHeaders: { cookie } });
    const complaints = complaintsOf(page);
    await page.goto(new URL(path, server.url).href);
    return [...(await problemsOf(page)), ...complaints];
  } finally {
    await browser.close();
    server.stop(true);
  }
}

test("the page of workers lists, drains and removes them without JavaScript", async () => {
  const run = await startRun();
  const [owner, member] = [await signedIn(run), await signedIn(run, { role: "member" })];
  const here = "/settings/workers";
  // Workers belong to no organization.
  expect((await owner.get(here)).status).toBe(403);
  expect((await owner.get("/settings")).body).not.toContain(`href="${here}"`);
  keepOneOrg(run);
  expect((await owner.get("/settings")).body).toContain(`href="${here}"`);
  expect((await owner.get(here)).body).toContain(`--gateway ${run.baseUrl}/gateway`);

  const first = startWorker("--labels", "gpu", "--slots", "3");
  await runs(first);
  const listed = async (): Promise<{ id: string; state: string }[]> => (await run.send("GET", "/api/v1/workers")).body;
  const [{ id } = { id: "" }] = await listed();
  const worker = `${here}/${id}`;
  const { body } = await owner.get(here);
  for (const part of ['data-state="ready"', "1 of 3", "gpu", version, "explorer", `action="${worker}"`])
    expect(body).toContain(part);
  expect((await member.get(here)).body).not.toContain(`action="${worker}"`);
  expect(await problemsInBrowser(run, owner.cookie(), here)).toEqual([]);
  expect((await member.post(worker, { do: "drain", confirmed: "1" })).status).toBe(403);
  expect((await owner.post(worker, { do: "restart" })).status).toBe(400);
  expect((await owner.post(`${here}/${crypto.randomUUID()}`, { do: "drain", confirmed: "1" })).status).toBe(404);

  expect((await owner.post(worker, { do: "drain" })).body).toContain('name="confirmed"');
  expect(await listed()).toMatchObject([{ id, state: "ready" }]);
  const streamed = untilStreamed(run, owner.cookie(), 'data-state="draining"');
  expect((await owner.post(worker, { do: "drain", confirmed: "1" })).body).toContain('data-state="draining"');
  await streamed;

  const second = startWorker();
  await until("both are connected", async () => (await listed()).length === 2);
  const asked = await owner.post(worker, { do: "remove" });
  expect(asked.body).toContain('name="confirmed"');
  expect(asked.body).toContain("1 session");
  expect((await listed()).length).toBe(2);
  expect((await owner.post(worker, { do: "remove", confirmed: "1" })).body).not.toContain(`action="${worker}"`);
  expect(run.workerActions()).toEqual(["worker.drained", "worker.removed"]);
  await runs(second);
  expect(await first.exited).toBe(0);
  await run.release();
  await run.untilOver();
  expect(await run.attempts()).toMatchObject([{ outcome: "retried" }, { outcome: "done" }]);
});

/** Runs a command of the CLI on the same Redis server. */
const command = (...args: string[]) => commandOn(redis.url, ...args);
const commandOn = (url: string, ...args: string[]) => commandWith({ EVALD_REDIS_URL: url }, ...args);

async function commandWith(env: Record<string, string>, ...args: string[]) {
  const child = Bun.spawn([process.execPath, "test/support/instant.ts", ...args], {
    cwd: `${import.meta.dir}/../..`,
    env: { PATH: process.env.PATH ?? "", EVALD_DATA_DIR: emptyFolder(), ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr, code };
}

test("the CLI lists, drains and removes workers", async () => {
  const worker = startWorker("--labels", "gpu");
  const run = await startRun();
  await runs(worker);
  const listed = async () => JSON.parse((await command("workers", "list", "--json")).stdout || "[]");
  const [found] = (await until("the worker is listed", async () => {
    const list = await listed();
    return list.length === 1 && list[0].runIds.length === 1 && list;
  })) as { id: string; labels: string[]; state: string }[];
  expect(found?.labels).toContain("gpu");
  expect((await command("workers", "list")).stdout).toContain(found?.id ?? "none");
  expect((await command("workers", "drain", "nobody")).code).toBe(2);
  expect(await command("workers", "drain", found?.id ?? "")).toMatchObject({ code: 0, stdout: `${found?.id}\n` });
  await until("it is draining", async () => (await listed())[0]?.state === "draining");
  expect((await command("workers", "remove", found?.id ?? "")).code).toBe(0);
  expect(await worker.exited).toBe(0);
  expect((await run.get()).status).not.toBe("completed");
});

test("the doctor checks the Redis server", async () => {
  const own = await startRedis({ password: "secret" });
  closings.push(own.kill);
  const check = async (url: string) => {
    const { stdout, code } = await commandOn(url, "doctor", "--json");
    const found: { check: string; subject: string; state: string }[] = JSON.parse(stdout);
    const states = found.filter(({ check }) => check === "redis").map(({ subject, state }) => [subject, state]);
    return { code, states: Object.fromEntries(states) };
  };
  const healthy = {
    ...{ version: "ok", access: "ok", users: "ok" },
    ...{ persistence: "ok", memory: "ok" },
  };
  expect((await check(own.url)).states).toEqual(healthy);
  await own.command("config", "set", "maxmemory-policy", "allkeys-lru");
  await own.command("config", "set", "appendonly", "no");
  await own.command("config", "set", "requirepass", "");
  expect(await check(own.url)).toEqual({
    code: 1,
    states: { ...healthy, access: "failed", persistence: "warning", memory: "failed" },
  });
  expect(await own.command("acl", "users")).toBe("default");
  await own.kill();
  expect(await check(own.url)).toEqual({ code: 1, states: { connection: "failed" } });
  // The setting names this server.
  expect((await command("doctor")).stdout).toMatch(/^ok +redis memory/m);
  expect((await commandOn("redis://192.0.2.1:6379", "doctor")).code).toBe(2);
});

test("a Redis server without ACL runs sessions of workers that have the access of the service, and the log and the doctor say so", async () => {
  const own = await startRedis({ options: ["--rename-command", "ACL", ""] });
  closings.push(own.kill);
  const doctor = await commandOn(own.url, "doctor", "--json");
  const checks: { subject: string; state: string; cause: string }[] = JSON.parse(doctor.stdout);
  const users = checks.find(({ subject }) => subject === "users");
  expect([doctor.code, users?.state, users?.cause]).toEqual([0, "warning", "redis_no_users"]);
  const refused = await commandOn(own.url, "workers", "add", "eu-1");
  expect(refused).toEqual({ code: 2, stdout: "", stderr: expect.stringMatching(/ACL SETUSER.*EVALD_REDIS_URL/) });
  const logged: { msg: string; level: number; credentials?: number }[] = [];
  const writer = { write: (line: string) => logged.push(JSON.parse(line)) };
  const run = await startRun({ url: own.url, log: pino({ level: "warn" }, writer) });
  const worker = startWorkerOn({ url: own.url });
  await runs(worker);
  await run.release();
  await run.untilOver();
  expect(await run.get()).toMatchObject({ status: "completed", attempt: 1 });
  const warnings = logged.filter(({ msg }) => msg.includes("ACL SETUSER"));
  expect(warnings).toMatchObject([{ level: 40, credentials: 0 }]);
});

test("a Redis server with a certificate of an own authority is used with NODE_EXTRA_CA_CERTS, which errors name", async () => {
  const { cert, key } = createCertificate("127.0.0.1");
  const port = await freePort();
  const tls = ["--tls-port", String(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no"];
  const own = await startRedis({ options: tls });
  closings.push(own.kill);
  const url = `rediss://127.0.0.1:${port}`;
  const refused = await commandOn(url, "workers", "list");
  expect(refused).toEqual({ code: 3, stdout: "", stderr: expect.stringContaining("NODE_EXTRA_CA_CERTS") });
  const worker = startWorkerOn({ url });
  await until("the worker says so", () => worker.said().includes("NODE_EXTRA_CA_CERTS"));
  const env = { EVALD_REDIS_URL: url, NODE_EXTRA_CA_CERTS: cert };
  const added = await commandWith(env, "workers", "add", "eu-1");
  expect([added.code, added.stderr]).toEqual([0, expect.not.stringContaining("NODE_EXTRA_CA_CERTS")]);
  expect(added.stdout).toMatch(/^rediss:\/\/evald-worker-eu-1:/);
  // Nothing listens there, and the service creates the user later.
  const later = await commandOn(`redis://127.0.0.1:${await freePort()}`, "workers", "add", "eu-1");
  expect([later.code, later.stderr]).toEqual([0, expect.stringContaining("ECONNREFUSED")]);
});

test("workers are drained and upgraded one by one", async () => {
  const open = async (of: string) => {
    const executor = createLocalExecutor(agents, Date.now, emptyFolder(), []);
    const options = { url: redis.url, gatewayUrl: gateway.url, slots: 1, agents, executor, log };
    const worker = await openWorker({ ...options, version: of });
    closings.push(
      () => executor.close(),
      () => worker.stop(0),
    );
    return worker;
  };
  const connect = (of: string) => {
    const executor = openWorkerExecutor(redis.url, of, agents, 60_000, log);
    closings.push(executor.close);
    return executor;
  };
  const states = (executor: ReturnType<typeof connect>) =>
    executor.list().map((each) => `${each.version} ${each.state}`);
  const before = connect("1");
  const [first, second] = [await open("1"), await open("1")];
  await until("both are connected", () => before.list().length === 2);
  before.dismiss(first.id, "drain");
  await first.drained;
  await first.stop(0);
  const upgraded = await open("2");
  expect(await upgraded.refused.catch(({ message }: Error) => message)).toMatch(/2.*1/);
  await until("it is refused", () => states(before).includes("2 refused"));
  await upgraded.stop(0);
  await before.close();
  const after = connect("2");
  await open("2");
  expect(await second.refused.catch(({ message }: Error) => message)).toMatch(/1.*2/);
  await until("the upgraded worker is ready", () => states(after).includes("2 ready"));
});

test("a run fails immediately if it must not wait for a worker", async () => {
  const { get, untilOver } = await startRun({ waitMs: 0 });
  await untilOver();
  expect((await get()).failureReason).toMatch(/^infrastructure: .*no worker is connected/);
});

test("a worker with a different version is refused, with both versions in the message", async () => {
  await startRun();
  const executor = createLocalExecutor(agents, Date.now, emptyFolder(), []);
  const options = { url: redis.url, gatewayUrl: gateway.url, slots: 1, agents, executor, log };
  const worker = await openWorker({ ...options, version: "0.0.1" });
  closings.push(
    () => executor.close(),
    () => worker.stop(0),
  );
  const refusal = await worker.refused.catch((error: Error) => error.message);
  expect(refusal).toContain("0.0.1");
  expect(refusal).toContain(version);
});
