import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { Redis } from "ioredis";
import pino from "pino";
import { version } from "../../package.json" with { type: "json" };
import { createLocalExecutor } from "../../src/places/local.ts";
import {
  messageStreamOf,
  operatorRequests,
  queuePrefixOf,
  serviceClaim,
  sharedCredential,
  stateKeyOf,
  userPrefix,
  workerList,
} from "../../src/places/messages.ts";
import { connectRedis } from "../../src/places/redis.ts";
import { defineScripts } from "../../src/places/redis-users.ts";
import { openWorker } from "../../src/places/worker.ts";
import { openWorkerExecutor } from "../../src/places/worker-executor.ts";
import { type Metrics, respondToScrape } from "../../src/telemetry/metrics.ts";
import { createCredential, listCredentials, revokeCredential } from "../../src/workers/credentials.ts";
import { scriptedAgent, testApp } from "../support/app.ts";
import { emptyFolder } from "../support/executable.ts";
import { serveGateway } from "../support/gateway-stub.ts";
import { startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

const silent = pino({ level: "silent" });
const gateway = serveGateway();
let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  redis = await startRedis({ password: "of-the-service" });
});
afterAll(async () => {
  gateway.stop();
  await redis.kill();
});

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

/** Whether Redis accepts the user and password in a URL. */
async function canConnect(url: string): Promise<boolean> {
  const connection = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  connection.on("error", () => {});
  try {
    await connection.connect();
    return true;
  } catch {
    return false;
  } finally {
    connection.disconnect();
  }
}

/** A service, a worker in this process with a session that waits for `release`, and the connection of another credential, which has a session too. */
async function start() {
  const released = Promise.withResolvers<void>();
  const agent = scriptedAgent(async function* () {
    yield { type: "thought", text: "before", by: "rule" };
    await released.promise;
    yield { type: "thought", text: "after", by: "rule" };
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  });
  const logged: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => logged.push(line) });
  let credentials: () => { name: string; digest: string }[] = () => [];
  const executor = openWorkerExecutor(redis.url, version, { explorer: agent }, 60_000, log, {
    credentials: () => credentials(),
  });
  const env = { EVALD_METRICS_ADDRESS: "127.0.0.1:9464", EVALD_REDIS_URL: redis.url };
  const app = testApp({ workers: () => executor, log, env });
  closings.push(() => app.service.stop(0));
  app.db.$client.run("delete from api_keys where org_id = ?", [app.b.org]);
  app.db.$client.run("delete from orgs where id = ?", [app.b.org]);
  const urls = Object.fromEntries(
    ["honest", "rogue"].map((name) => [name, createCredential(app.service.ctx, redis.url, name).url]),
  );
  credentials = () => listCredentials(app.db);
  // Users of an earlier test have the same names, and other passwords.
  await until("the users exist", async () => {
    const opened = await Promise.all(Object.values(urls).map(canConnect));
    return opened.every(Boolean);
  });

  const local = createLocalExecutor({ explorer: agent }, Date.now, emptyFolder(), []);
  const honest = await openWorker({
    ...{ url: urls.honest as string, gatewayUrl: gateway.url, version, slots: 2, labels: ["honest"] },
    ...{ agents: { explorer: agent }, executor: local, log: silent },
  });
  closings.push(
    () => local.close(),
    () => honest.stop(0),
  );
  const rogue = new Redis(urls.rogue as string, { maxRetriesPerRequest: 1 });
  rogue.on("error", () => {});
  closings.push(() => rogue.disconnect());

  const info = {
    ...{ id: crypto.randomUUID() as string, name: "rogue", version, slots: 2, labels: ["rogue"], problem: null },
    agents: [{ id: "explorer", version: "9" }],
    ...{ sandbox: { isAvailable: false, detail: "" }, browser: { isAvailable: false, detail: "" } },
    ...{ memoryBytes: 1, freeMemoryBytes: 1, busyCpus: 0, cpus: 1 },
  };
  const send = (message: unknown) =>
    rogue.xadd(messageStreamOf("rogue"), "*", "m", typeof message === "string" ? message : JSON.stringify(message));
  const hello = (change: object = {}, rest: object = {}) =>
    send({ kind: "hello", worker: { ...info, ...change }, sessions: [], isDraining: false, ...rest });
  await hello();
  await until("both are connected", () => executor.list().length === 2);

  await app.service.runner.start();
  const startRun = async (label: string) => {
    const body = { text: "See https://docs.test/", workerLabels: [label] };
    const prompt = await app.send("POST", "/api/v1/prompts", { body });
    const asked = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
    const id: string = asked.body.runId;
    return {
      key: `${id}-1`,
      get: async () => (await app.send("GET", `/api/v1/runs/${id}`)).body,
      events: () =>
        app.db.$client
          .query<{ type: string; source: string; data: string }, [string]>(
            "select type, source, data from session_events where run_id = ? order by attempt, seq",
          )
          .all(id),
    };
  };
  const own = await startRun("rogue");
  const other = await startRun("honest");
  await until("the honest session runs", () => other.events().length > 0);
  await until("the rogue has its order", async () =>
    rogue.exists(`${queuePrefixOf("rogue")}:worker-${info.id}:${own.key}`),
  );
  return {
    ...app,
    executor,
    honest,
    rogue,
    rogueUrl: urls.rogue as string,
    info,
    sendMessage: send,
    hello,
    own,
    other,
    logged,
    release: released.resolve,
  };
}

const settled = async (name: string) =>
  until("the service has read everything", async () => (await redis.command("xlen", messageStreamOf(name))) === "0");

test("a rogue worker can neither read nor change anything but its own keys", async () => {
  const { rogue, honest, info, other, release, executor } = await start();
  const operator = connectRedis(redis.url, silent);
  closings.push(() => [operator.sender, operator.reader, operator.jobs].map((each) => each.disconnect()));
  await defineScripts(operator);
  const scripts = (operator.jobs as unknown as { scriptsSet: Record<string, { sha: string }> }).scriptsSet;
  const shaOf = (name: string) => Object.entries(scripts).find(([each]) => each.startsWith(`${name}:`))?.[1].sha ?? "";
  const queue = `${queuePrefixOf("honest")}:worker-${honest.id}`;
  const [own, foreign] = [messageStreamOf("rogue"), messageStreamOf("honest")];
  const line = JSON.stringify({ kind: "lines", key: other.key, number: 2, lines: [{ end: null }] });
  const remove = JSON.stringify({ kind: "remove", worker: honest.id });
  const self = `${userPrefix}rogue`;
  const attacks: string[][] = [
    ["xadd", foreign, "*", "m", line],
    ["xadd", messageStreamOf(sharedCredential), "*", "m", line],
    ["xadd", operatorRequests, "*", "m", remove],
    ["xadd", stateKeyOf("honest", honest.id), "*", "m", "{}"],
    ["xrange", stateKeyOf("honest", honest.id), "-", "+"],
    ["xread", "STREAMS", own, foreign, "0", "0"],
    ["xtrim", foreign, "MAXLEN", "0"],
    ["xgroup", "CREATE", foreign, "g", "0"],
    ["del", stateKeyOf("honest", honest.id)],
    ["unlink", queue],
    ["hgetall", `${queue}:${other.key}`],
    ["hset", `${queue}:${other.key}`, "data", "{}"],
    ["lmove", `${queue}:active`, own, "LEFT", "LEFT"],
    ["zunionstore", `${queuePrefixOf("rogue")}:x`, "1", `${queue}:completed`],
    ["copy", `${queue}:meta`, `${queuePrefixOf("rogue")}:x`],
    ["rename", own, foreign],
    ["sort", `${queuePrefixOf("rogue")}:x`, "BY", `${queue}:*`],
    ["evalsha", shaOf("obliterate"), "2", `${queue}:meta`, `${queue}:`, "1000", "1"],
    ["evalsha", shaOf("obliterate"), "2", `${queuePrefixOf("rogue")}:x:meta`, `${queue}:`, "1000", "1"],
    ["evalsha", shaOf("pause"), "1", `${queue}:wait`],
    ["get", serviceClaim],
    ["set", serviceClaim, JSON.stringify({ owner: "me", service: "x" })],
    ["get", workerList],
    ["set", workerList, "[]"],
    ["set", "anything", "1"],
    ["keys", "*"],
    ["scan", "0"],
    ["randomkey"],
    ["dbsize"],
    ["flushall"],
    ["flushdb"],
    ["swapdb", "0", "1"],
    ["config", "get", "requirepass"],
    ["config", "set", "maxmemory", "1"],
    ["acl", "list"],
    ["acl", "setuser", self, "allkeys", "allcommands"],
    ["eval", "while true do end", "0"],
    ["eval", "return redis.call('get', KEYS[1])", "1", serviceClaim],
    ["script", "flush"],
    ["script", "load", "return 1"],
    ["script", "kill"],
    ["function", "load", "#!lua name=x\nredis.register_function('x', function() end)"],
    ["client", "list"],
    ["client", "kill", "TYPE", "normal"],
    ["client", "pause", "60000"],
    ["debug", "sleep", "60"],
    ["shutdown", "nosave"],
    ["replicaof", "127.0.0.1", "1"],
    ["save"],
    ["slowlog", "get"],
    ["publish", "evald", "x"],
    ["subscribe", "evald"],
    ["psubscribe", "*"],
    ["monitor"],
    ["migrate", "127.0.0.1", "1", own, "0", "1"],
    ["memory", "usage", foreign],
    ["object", "encoding", foreign],
  ];
  const before = executor.list().find(({ id }) => id === honest.id);
  for (const [command = "", ...args] of attacks) {
    const answer = await rogue.call(command, ...args).catch((error: Error) => error.message);
    expect([command, args, String(answer)]).toEqual([command, args, expect.stringMatching(/permissions|not allowed/)]);
  }
  expect(executor.list().find(({ id }) => id === honest.id)).toMatchObject({
    ...{ state: "ready", runIds: before?.runIds, credential: "honest", name: "honest" },
  });
  // What it may do is in its own keys.
  expect(await rogue.xlen(stateKeyOf("rogue", info.id))).toBeNumber();
  release();
  await until("the honest run is over", async () => (await other.get()).completedAt !== null);
  expect(await other.get()).toMatchObject({ status: "completed", attempt: 1 });
  console.log(`${attacks.length} commands: 0 allowed`);
}, 300_000);

test("messages of a rogue worker change nothing but its own session", async () => {
  const { rogue, honest, info, sendMessage, hello, own, other, release, executor, ...app } = await start();
  const from = performance.now();
  const event = { type: "thought", text: "forged", by: "rule" };
  const lines = (key: string, number: unknown, list: unknown) =>
    sendMessage({ kind: "lines", key, number, lines: list });
  const ofOther = [{ event, source: "agent" }, { end: null }];
  const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  const attacks: (() => Promise<unknown>)[] = [
    // Sessions and workers of others.
    ...[1, 2, 3, 4].map((number) => () => lines(other.key, number, ofOther)),
    () => lines(other.key, 2, [{ end: { code: "model_key_refused", detail: "forged", retryable: false } }]),
    () => lines(other.key, 2, [{ secrets: ["before", "after", "thought"] }]),
    () => sendMessage({ kind: "bye", worker: honest.id }),
    () => hello({ id: honest.id }),
    () => hello({ id: honest.id, name: "honest", slots: 1 }, { isDraining: true }),
    () => hello({ name: "honest" }, { sessions: [other.key] }),
    // What is not a message of a worker.
    ...["drain", "remove", "forget", "constructor", "__proto__", "toString", "hello2", "", 5, null, {}].map(
      (kind) => () => sendMessage({ kind, worker: honest.id }),
    ),
    ...["", "{", "null", "5", "[]", '"text"', "{}", deep(100_000), '{"__proto__":{"kind":"bye"}}', "\u0000"].map(
      (text) => () => sendMessage(text),
    ),
    // Malformed descriptions of itself.
    ...[undefined, null, 5, "", "a\nb", "x".repeat(10_000), {}, []].map((name) => () => hello({ name })),
    ...["9", 0, -1, 0.5, 1e9, null, undefined, [], {}].map((slots) => () => hello({ slots })),
    ...[null, undefined, {}, [null], [{ id: "explorer" }], { constructor: null }, Array(1_000).fill({})].map(
      (agents) => () => hello({ agents }),
    ),
    ...[null, "eu", [null], [{}], ["a\nb"], ["__proto__"], Array(1_000).fill("x")].map(
      (labels) => () => hello({ labels }),
    ),
    ...["__proto__", "constructor", "", null, 5, "../../x", `${info.id}\n`].map((id) => () => hello({ id })),
    ...["cpus", "busyCpus", "memoryBytes", "freeMemoryBytes"].flatMap((field) =>
      [null, "1", -1, 1e300].map((value) => () => hello({ [field]: value })),
    ),
    ...["sandbox", "browser", "problem", "version"].map((field) => () => hello({ [field]: { isAvailable: 1 } })),
    () => hello({}, { sessions: null }),
    () => hello({}, { sessions: Array(100_000).fill("x") }),
    () => hello({}, { isDraining: "no" }),
    ...Array.from({ length: 20 }, () => () => hello({ id: crypto.randomUUID() })),
    // Entries that are no messages, and keys that are no streams.
    () => rogue.xadd(messageStreamOf("rogue"), "*", "other", "field", "and", "another"),
    () => rogue.del(messageStreamOf("rogue")),
    () => rogue.xadd(messageStreamOf("rogue"), "18446744073709551615-1", "m", "{}"),
    () => rogue.del(messageStreamOf("rogue")),
    // Its own session.
    () => lines(own.key, 0, ofOther),
    () => lines(own.key, "1", ofOther),
    () => lines(own.key, 1e300, ofOther),
    () => lines(own.key, 1, null),
    () => lines(own.key, 1, [null]),
    ...["gateway", "runner", "__proto__", null].map(
      (source) => () => lines(own.key, 1, [{ event: { type: "usage", model: "m", costUsd: -1000 }, source }]),
    ),
    () => lines(own.key, 1, [{ event: { type: "usage", model: "m", costUsd: -1000 }, source: "egress" }]),
    () => lines(own.key, 1, [{ event: { type: "__proto__" }, source: "agent" }]),
    () => lines(own.key, 1, [{ event: null, source: "agent" }]),
    () => lines(own.key, 1, [{ end: { cause: "unknown", detail: "", retryable: true } }]),
    () => lines(own.key, 1, [{ secrets: [null] }]),
  ];
  for (const [i, attack] of attacks.entries()) {
    await attack();
    // Its worker stays connected.
    if (i % 20 === 0) await hello();
  }
  await hello();
  await settled("rogue");
  expect(executor.list().filter(({ credential }) => credential === "honest")).toMatchObject([
    { id: honest.id, name: "honest", state: "ready", slots: 2, runIds: [other.key.slice(0, -2)] },
  ]);
  expect(executor.list().filter(({ credential }) => credential === "rogue").length).toBe(1);
  expect(own.events().filter(({ source }) => source !== "runner")).toEqual([]);
  const listed = await app.send("GET", "/api/v1/workers");
  expect([listed.status, listed.body.length]).toEqual([200, 2]);
  const metrics = await respondToScrape(
    app.service.telemetry.metrics as Metrics,
    new Request("http://localhost/metrics"),
  );
  expect(metrics.status).toBe(200);
  expect(await metrics.text()).toContain('evald_worker_slots{worker="honest"} 2');
  for (const token of ["", "x", other.key, "__proto__.x", "constructor.x"]) {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await app.service.answerModelCall(new Request("http://localhost/files/archive", { headers }));
    expect(answer.status).toBe(401);
  }
  // It is reported once, not for each message.
  expect(app.logged.filter((line) => line.includes("dropped malformed messages")).length).toBe(1);

  // A key that is no stream must not keep the service from reading the others.
  await rogue.del(messageStreamOf("rogue"));
  await rogue.set(messageStreamOf("rogue"), "x");
  release();
  await until("the honest run is over", async () => (await other.get()).completedAt !== null);
  expect(await other.get()).toMatchObject({ status: "completed", attempt: 1 });
  const ofAgent = other.events().filter(({ source }) => source === "agent");
  expect(ofAgent.map(({ data }) => JSON.parse(data).text)).toEqual(["before", "after", undefined]);
  expect(app.db.$client.query("select * from spending").all()).toEqual([]);
  console.log(`${attacks.length} messages: 0 effects; ${Math.round(performance.now() - from)} ms`);
}, 300_000);

test("a revoked credential ends the connections and the sessions of its worker", async () => {
  const { rogue, rogueUrl, own, executor, ...app } = await start();
  revokeCredential(app.service.ctx, "rogue");
  await until("it is gone", () => executor.list().every(({ credential }) => credential !== "rogue"));
  await until("it can't connect", async () => rogue.status !== "ready" && !(await canConnect(rogueUrl)));
  expect((await redis.command("acl", "users")).split("\n")).not.toContain(`${userPrefix}rogue`);
  expect((await own.get()).status).not.toBe("completed");
}, 300_000);
