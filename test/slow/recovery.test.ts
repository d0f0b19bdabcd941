import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { buildInstant, call, client, emptyFolder, instant, serve, untilRun } from "../support/executable.ts";
import { serveGateway } from "../support/gateway-stub.ts";
import { startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

const gateway = serveGateway();
beforeAll(buildInstant, 300_000);
afterAll(() => gateway.stop());
const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

/** Starts `evald worker` with one slot as a separate process. */
function startWorker(redisUrl: string) {
  const child = Bun.spawn([instant, "worker", "--slots", "1", "--gateway", gateway.url], {
    env: { PATH: process.env.PATH ?? "", EVALD_REDIS_URL: redisUrl, EVALD_LOG_LEVEL: "silent" },
    ...{ stdin: "ignore", stdout: "ignore", stderr: "ignore" },
  });
  closings.push(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  return child;
}

test("a service restored on another machine continues the runs of a backup with the same workers", async () => {
  const redis = await startRedis();
  closings.push(redis.kill);
  const env = { EVALD_REDIS_URL: redis.url };
  const [before, after] = [emptyFolder(), emptyFolder()];
  const run = async (cwd: string, ...args: string[]) => {
    const { code, stdout, stderr } = await call(args, { cwd, file: instant });
    expect([args, code, code === 0 || stderr]).toEqual([args, 0, true]);
    return stdout.trim();
  };
  await run(before, "org", "create", "Acme");
  const key = await run(before, "key", "create", "--name", "test");
  const released = join(before, "go");
  const prompts = await Promise.all(
    ["", ` until ${released}`].map((end) => run(before, "prompt", "create", "--text", `See https://docs.test/${end}`)),
  );

  const first = await serve({ cwd: before, env, file: instant });
  closings.push(() => first.stop("SIGKILL"));
  const worker = startWorker(redis.url);
  let ask = client(first.url, key);
  const list = async () => (await ask("GET", "/api/v1/workers")).body as { id: string; runIds: string[] }[];
  const start = async (prompt = "") =>
    (await ask("POST", `/api/v1/prompts/${prompt}/run`, { urlMap: {} })).body.runId as string;
  const completed = await start(prompts[0]);
  await untilRun(ask, completed, "completed");
  const active = await start(prompts[1]);
  const known = await until("the worker has the session", async () => {
    return (await list()).find(({ runIds }) => runIds.includes(active));
  });
  const waiting = await start(prompts[0]);
  const backup = join(before, "evald.backup");
  await run(before, "backup", backup);
  await first.stop("SIGKILL");

  await run(after, "restore", backup);
  const second = await serve({ cwd: after, env, file: instant });
  closings.push(() => second.stop("SIGKILL"));
  ask = client(second.url, key);
  await Bun.write(released, "");
  for (const id of [completed, active, waiting])
    expect(await untilRun(ask, id, "completed", "failed")).toMatchObject({ runId: id, status: "completed" });
  expect((await list()).map(({ id }) => id)).toEqual([known?.id ?? ""]);
  expect([(await ask("GET", "/api/v1/reports")).body.length, worker.exitCode]).toEqual([3, null]);
}, 300_000);
