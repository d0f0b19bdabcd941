import { afterEach, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  buildExecutable,
  client,
  emptyFolder,
  executable,
  filesIn,
  serve,
  startWorker,
  untilRun,
} from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { environmentOf, findInMemory, treeOf } from "../support/memory.ts";
import { call as use } from "../support/model-runs.ts";
import { startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

beforeAll(buildExecutable, 300_000);
const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

const canary = () => crypto.randomUUID().replaceAll("-", "");
const operatorKey = `sk-operator-${canary()}`;
const orgKey = `sk-organization-${canary()}`;
const redisPassword = `redis-${canary()}`;
const masterKey = Buffer.from(canary()).toString("base64");

/** The service with a session on each of two workers, whose models don't finish their answers. */
async function startSessions() {
  const redis = await startRedis({ password: redisPassword });
  closings.push(redis.kill);
  const answer = { ...use("finish", { outcome: "succeeded", summary: "Done." }), hold: true };
  const turns = [use("run_command", { command: "echo made > /workspace/note" }), answer];
  const fake = serveFakeModel({ scenarios: { held: { turns } } });
  closings.push(fake.stop);
  const cwd = emptyFolder();
  const env = {
    OPENAI_COMPATIBLE_API_KEY: operatorKey,
    OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
    EVALD_AGENT_MODEL: "openai-compatible/held",
    EVALD_SECRET_KEY: masterKey,
    EVALD_REDIS_URL: redis.url,
  };
  const run = async (args: string[], input = "") => {
    const child = Bun.spawn([executable, ...args], {
      ...{ cwd, env: { PATH: process.env.PATH ?? "", ...env }, stdin: Buffer.from(input), stderr: "pipe" },
    });
    const text = (await new Response(child.stdout).text()).trim();
    if ((await child.exited) !== 0) throw new Error(await new Response(child.stderr).text());
    return text;
  };
  const keys = [];
  for (const org of ["Acme", "Globex"]) {
    await run(["org", "create", org]);
    keys.push(await run(["key", "create", "--org", org, "--name", "test"]));
    await run(["model", "set-key", "openai", "--org", org], orgKey);
  }
  const service = await serve({ cwd, env });
  closings.push(() => service.stop("SIGKILL"));

  /** A new worker, which gets the next session because the others are busy. */
  async function startSession(key: string) {
    const { child, folder: tmp } = startWorker({
      EVALD_REDIS_URL: redis.url,
      EVALD_GATEWAY_URL: `${service.url}/gateway`,
    });
    closings.push(async () => {
      child.kill("SIGKILL");
      await child.exited;
    });
    const ask = client(service.url, key);
    const marker = `the-task-${canary()}`;
    const { body: prompt } = await ask("POST", "/api/v1/prompts", {
      text: `Do ${marker} by https://docs.test/.`,
      agent: "llm",
    });
    const asked = fake.requests.length;
    const { body } = await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    await until("the model was asked for its second turn", () => fake.requests.length === asked + 2);
    const order = await orderOf(body.runId);
    const tokens = [...order.matchAll(/"token":"([^"]+)"/g)].map(([, token]) => token as string);
    return { pid: child.pid, tmp, marker, tokens, order, done: () => untilRun(ask, body.runId, "completed", "failed") };
  }

  /** The order of a run as Redis stores it. */
  async function orderOf(runId: string): Promise<string> {
    const names = (await redis.command("keys", `evald:jobs:*:${runId}-1`)).split("\n");
    return await redis.command("hget", names[0] ?? "", "data");
  }

  /** The current data of Redis, as it writes it to disk. */
  async function readRdb(): Promise<string> {
    await redis.command("config", "set", "rdbcompression", "no");
    await redis.command("save");
    return readFileSync(join(redis.folder, "dump.rdb"), "latin1");
  }

  /** The data and all commands that Redis has logged. */
  async function readRedis(): Promise<string> {
    await readRdb();
    return filesIn(redis.folder);
  }

  const [one, other] = [await startSession(keys[0] as string), await startSession(keys[1] as string)];
  return { one, other, service, readRdb, readRedis, release: () => fake.release("held"), data: join(cwd, "data") };
}

test("a worker knows only its own session: no provider key, no database and no other run", async () => {
  const { one, other, service, readRdb, readRedis, release, data } = await startSessions();
  const secrets = { operatorKey, orgKey, masterKey, database: data };
  const texts = Object.values(secrets);
  expect([one.tokens.length, other.tokens.length]).toEqual([1, 1]);

  for (const [own, foreign] of [
    [one, other],
    [other, one],
  ] as const) {
    const others = [...texts, foreign.marker, ...foreign.tokens];
    const mine = [own.marker, ...own.tokens];
    const processes = treeOf(own.pid);
    const searches = processes.map((pid) => findInMemory(pid, [...others, ...mine]));
    const found = searches.flatMap((search) => search.found);
    expect(others.filter((text) => found.includes(text))).toEqual([]);
    // Each search finds what it should.
    expect(mine.filter((text) => !found.includes(text))).toEqual([]);
    expect(Math.min(...searches.map(({ bytes }) => bytes))).toBeGreaterThan(1_000_000);
    const environment = processes.map(environmentOf).join("\n");
    expect([...others, ...mine].filter((text) => (environment + filesIn(own.tmp)).includes(text))).toEqual([]);
    expect(environment).toContain(redisPassword);
    writeFileSync(join(own.tmp, "planted"), operatorKey);
    expect(filesIn(own.tmp)).toContain(operatorKey);
  }
  // In the memory of the service, it finds the keys and the database.
  const inService = findInMemory(service.pid, [operatorKey, masterKey, data]);
  expect(inService.found.length).toBe(3);

  const inRedis = await readRedis();
  // The service says there which data directory it has, so that no other service takes this Redis.
  const secretTexts = texts.filter((text) => text !== data);
  expect(secretTexts.filter((text) => inRedis.includes(text))).toEqual([]);
  for (const { marker } of [one, other]) for (const text of [inRedis, await readRdb()]) expect(text).toContain(marker);
  release();
  expect([(await one.done()).status, (await other.done()).status]).toEqual(["completed", "completed"]);
  const stored = filesIn(data) + service.stderr();
  expect([one, other].flatMap(({ tokens }) => tokens).filter((token) => stored.includes(token))).toEqual([]);
  const sessions = [one, other].flatMap(({ marker, tokens }) => [marker, ...tokens]);
  await until("Redis has nothing of the sessions", async () => {
    const after = await readRdb();
    return sessions.every((text) => !after.includes(text));
  });
}, 300_000);
