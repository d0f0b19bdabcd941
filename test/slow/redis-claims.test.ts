import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import pino from "pino";
import { version } from "../../package.json" with { type: "json" };
import { createLocalExecutor } from "../../src/places/local.ts";
import { credentialOf, messageStreamOf, serviceClaim, sharedCredential } from "../../src/places/messages.ts";
import { openWorker } from "../../src/places/worker.ts";
import { openWorkerExecutor } from "../../src/places/worker-executor.ts";
import { instantAgent, testApp } from "../support/app.ts";
import { emptyFolder } from "../support/executable.ts";
import { serveGateway } from "../support/gateway-stub.ts";
import { startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

const log = pino({ level: process.env.TEST_LOG ?? "silent" });
const agents = { explorer: instantAgent };
const gateway = serveGateway();
let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  gateway.stop();
  await redis.kill();
});

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

async function openLocalWorker(gatewayUrl = gateway.url, goneMs?: number) {
  const executor = createLocalExecutor(agents, Date.now, emptyFolder(), []);
  const worker = await openWorker({ url: redis.url, gatewayUrl, version, slots: 1, agents, executor, log, goneMs });
  closings.push(
    () => executor.close(),
    () => worker.stop(0),
  );
  return worker;
}

/** Runs the service with a setting; returns how it ended, or null if it listens. */
async function serveOnce(dataDir: string) {
  const child = Bun.spawn([process.execPath, "test/support/instant.ts", "serve", "--port", "0", "--data", dataDir], {
    cwd: `${import.meta.dir}/../..`,
    env: { PATH: process.env.PATH ?? "", EVALD_REDIS_URL: redis.url, EVALD_WELCOME: "0", GONE_MS: "6000" },
    ...{ stdout: "ignore", stderr: "pipe" },
  });
  let said = "";
  for await (const bytes of child.stderr) {
    said += new TextDecoder().decode(bytes);
    if (said.includes("listening on")) break;
  }
  closings.push(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  return { child, said, isListening: said.includes("listening on") };
}

test("a second service on a Redis server is refused, until the claim of the first expires", async () => {
  const [first, second] = [emptyFolder(), emptyFolder()];
  const one = await serveOnce(first);
  expect(one.isListening).toBe(true);
  await until("it has claimed Redis", async () => (await redis.command("get", serviceClaim)).includes(first));
  const two = await serveOnce(second);
  expect([await two.child.exited, two.said]).toEqual([2, expect.stringContaining(first)]);
  // The same service takes over from its process at once.
  one.child.kill("SIGKILL");
  await one.child.exited;
  const again = await serveOnce(first);
  expect(again.isListening).toBe(true);
  again.child.kill("SIGKILL");
  await again.child.exited;
  await until("the claim has expired", async () => (await redis.command("get", serviceClaim)) === "");
  expect((await serveOnce(second)).isListening).toBe(true);
}, 300_000);

test("a service that finds another one on its Redis server sends nothing until that one has stopped", async () => {
  const options = { goneMs: 6_000 };
  const one = openWorkerExecutor(redis.url, version, agents, 60_000, log, { ...options, owner: "one" });
  closings.push(one.close);
  await openLocalWorker();
  await until("the worker is connected", () => one.list().length === 1);
  const two = openWorkerExecutor(redis.url, version, agents, 60_000, log, { ...options, owner: "two" });
  const app = testApp({ workers: () => two, log });
  closings.push(() => app.service.stop(0));
  const prompt = await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } });
  const { body } = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  const get = async () => (await app.send("GET", `/api/v1/runs/${body.runId}`)).body;
  await app.service.runner.start();
  await until("its run waits without a limit", async () => {
    const { waitingFor } = await get();
    return waitingFor?.what === "worker" && waitingFor.failsAt === null;
  });
  expect([one.list().length, two.list().length]).toEqual([1, 0]);
  await one.close();
  await until("the run is over", async () => (await get()).completedAt !== null);
  expect((await get()).status).toBe("completed");
}, 300_000);

test("messages arrive after Redis was replaced by one whose clock is behind", async () => {
  const executor = openWorkerExecutor(redis.url, version, agents, 60_000, log, { goneMs: 6_000 });
  closings.push(executor.close);
  const worker = await openLocalWorker();
  await until("the worker is connected", () => executor.list().length === 1);
  // A stream whose last ID is that of a later time, as one that was read before the replacement.
  const stream = messageStreamOf(sharedCredential);
  const later = `${Date.now() + 600_000}-0`;
  const message = JSON.stringify({ kind: "bye", worker: crypto.randomUUID() });
  await redis.command("xadd", stream, later, "m", message);
  await until("it was read", async () => (await redis.command("xlen", stream)) === "0");
  await redis.command("del", stream);
  const connected = () => executor.list().find(({ id }) => id === worker.id);
  const before = connected()?.connectedMs ?? 0;
  await until("the worker was silent for less than a beat, long after", () => {
    const { connectedMs = 0, silentMs = 0 } = connected() ?? {};
    return connectedMs > before + 8_000 && silentMs < 4_000;
  });
}, 300_000);

test("a worker without its gateway takes no sessions, says so, and recovers", async () => {
  const own = serveGateway();
  const executor = openWorkerExecutor(redis.url, version, agents, 60_000, log, { goneMs: 6_000 });
  const app = testApp({ workers: () => executor, log });
  closings.push(() => app.service.stop(0), own.stop);
  app.db.$client.run("delete from api_keys where org_id = ?", [app.b.org]);
  app.db.$client.run("delete from orgs where id = ?", [app.b.org]);
  const worker = await openLocalWorker(own.url);
  const listed = async () => (await app.send("GET", "/api/v1/workers")).body;
  const inState = (state: string) => until(`it is ${state}`, async () => (await listed())[0]?.state === state);
  await inState("ready");
  expect(await listed()).toMatchObject([{ id: worker.id, credential: null, problem: null }]);
  await own.stop();
  await inState("not_ready");
  expect((await listed())[0].problem).toContain(new URL(own.url).host);
  const prompt = await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } });
  const { body } = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  const get = async () => (await app.send("GET", `/api/v1/runs/${body.runId}`)).body;
  await app.service.runner.start();
  await until("the run waits", async () => (await get()).waitingFor?.what === "worker");
  await own.restart();
  await until("the run is over", async () => (await get()).completedAt !== null);
  expect(await get()).toMatchObject({ status: "completed", attempt: 1 });
  await inState("ready");
}, 300_000);

test("something else in place of the gateway is no gateway", async () => {
  const site = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("Hello.", { status: 401 }) });
  closings.push(() => site.stop(true));
  const executor = openWorkerExecutor(redis.url, version, agents, 60_000, log);
  closings.push(executor.close);
  await openLocalWorker(`http://127.0.0.1:${site.port}/gateway`);
  await until("it is listed", () => executor.list()[0]?.state === "not_ready");
}, 300_000);

test("the URL of a worker names its credential", () => {
  expect(credentialOf("redis://evald-worker-eu-1:x@127.0.0.1:6379")).toBe("eu-1");
  for (const url of ["redis://127.0.0.1:6379", "redis://:x@127.0.0.1:6379", "redis://evald:x@127.0.0.1:6379"])
    expect(credentialOf(url)).toBe(sharedCredential);
});
