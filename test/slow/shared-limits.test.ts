import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import pino from "pino";
import type { Agent, AgentContext, AgentEvent } from "../../src/agents/agent.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import { createLocalExecutor } from "../../src/places/local.ts";
import { openWorker } from "../../src/places/worker.ts";
import { openWorkerExecutor } from "../../src/places/worker-executor.ts";
import { testApp } from "../support/app.ts";
import { startRedis } from "../support/redis.ts";
import { serveSpendingModel } from "../support/spending-model.ts";
import { until } from "../support/until.ts";

const price = { in: 1, out: 10 };
/** The least output of a call and the input of the longest one, which is a judge's. */
const oneCallUsd = (1_000 * price.out + 40_000 * price.in) / 1e6;
const silent = pino({ level: "silent" });
const modelId = "openai-compatible/greedy";

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.kill());

type Model = NonNullable<AgentContext["resources"]>["model"];

/** One call over a run's socket. */
const callModel = ({ provider, name, socketPath }: Model, token: string, signal?: AbortSignal, body: object = {}) =>
  fetch(`http://gateway/${provider}/v1/chat/completions`, {
    unix: socketPath,
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ model: name, messages: [{ role: "user", content: "Write." }], ...body }),
    signal,
    ...{ timeout: false },
  });

/** Number of calls that greedy agents have sent. */
let sentCalls = 0;

/** An agent that sends its calls at once, each of which may write as much as it likes. */
const greedyAgent = (calls: number, body: object = {}): Agent => ({
  describe: () => ({ id: "greedy", version: "1", model: null, kind: "model" }),
  preflight: () => [],
  async *run(task, { resources, signal }): AsyncGenerator<AgentEvent> {
    const model = resources?.model;
    if (!model) throw new Error("The agent has no model.");
    const started = { agent: "greedy", version: "1", kind: "model" as const, model: modelId, goal: task.text };
    yield { type: "milestone", name: "started", detail: { ...started, starts: task.startUrls } };
    yield { type: "tool_call", id: "t1", tool: "run_command", input: { command: "true" } };
    yield { type: "tool_result", id: "t1", tool: "run_command", ok: true, output: { exitCode: 0 } };
    const send = async () => {
      sentCalls++;
      return await (await callModel(model, model.token, signal, body)).text();
    };
    await Promise.all(Array.from({ length: calls }, send));
    yield { type: "end", outcome: "not_judged", reason: "All calls were answered." };
  },
});

type App = ReturnType<typeof testApp>;
type Case = {
  org?: Parameters<typeof updateOrg>[2];
  runs?: number;
  calls?: number;
  judged?: boolean;
  workers?: number;
  prompt?: object;
  env?: Record<string, string>;
};

let answerCall: App["service"]["answerModelCall"] = async () => new Response(null, { status: 503 });
const gateway = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: (request) => answerCall(request) });
afterAll(() => gateway.stop(true));

/** Workers in this process, each with its own connection to Redis and its own socket. */
const onWorkers = (count: number) => (agents: Record<string, Agent>) => {
  const executor = openWorkerExecutor(redis.url, "1", agents, 60_000, silent);
  closings.push(() => executor.close());
  for (let i = 0; i < count; i++) {
    const local = createLocalExecutor(agents, Date.now, null, []);
    const gatewayUrl = `http://127.0.0.1:${gateway.port}`;
    const options = { url: redis.url, gatewayUrl, version: "1", slots: 2, agents, executor: local, log: silent };
    const starting = openWorker(options);
    closings.push(
      async () => (await starting).stop(0),
      () => local.close(),
    );
  }
  return executor;
};

/** Runs of a greedy agent at once, in an organization with limits. Returns what they cost by the model's own books. */
async function start({ calls = 15, ...options }: Case) {
  const model = serveSpendingModel({ price });
  closings.push(model.stop);
  return startRuns({ model, agent: greedyAgent(calls), ...options });
}

async function startRuns({
  model,
  agent,
  org = {},
  runs = 1,
  judged = false,
  workers = 0,
  prompt = {},
  env = {},
}: Case & { model: ReturnType<typeof serveSpendingModel>; agent: Agent }) {
  const app = testApp({
    agents: { greedy: agent },
    env: {
      OPENAI_COMPATIBLE_BASE_URL: `${model.url}/v1`,
      EVALD_MODEL_PRICES: JSON.stringify({ [modelId]: price }),
      EVALD_AGENT_MODEL: modelId,
      ...(judged && { EVALD_JUDGE_MODEL: modelId }),
      EVALD_CONCURRENCY: "8",
      EVALD_RUNS_PER_HOST: "8",
      ...env,
    },
    ...(workers > 0 && { workers: onWorkers(workers) }),
  });
  answerCall = app.service.answerModelCall;
  if (Object.keys(org).length > 0) updateOrg(app.service.ctx, app.a.org, org);
  const body = { text: "See https://docs.test/", agent: "greedy", ...prompt };
  const ids: string[] = [];
  const promptIds: string[] = [];
  for (let i = 0; i < runs; i++) {
    const { id } = (await app.send("POST", "/api/v1/prompts", { body })).body;
    promptIds.push(id);
    ids.push((await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } })).body.runId);
  }
  const run = (id: string) => app.send("GET", `/api/v1/runs/${id}`).then((response) => response.body);
  return { app, model, ids, promptIds, run };
}

async function spend(options: Case) {
  const started = await start(options);
  await started.model.serve(started.app.runJobs());
  await started.app.service.stop(0);
  const runs = await Promise.all(started.ids.map(started.run));
  const spending = (await started.app.send("GET", "/api/v1/spending")).body;
  return { ...started, runs, usd: started.model.usd(), spending };
}

describe("a limit that several calls share is never exceeded by more than one call's input and least output", () => {
  test.each<[string, number, Case]>([
    ["of the operator, per run", 0.1, { env: { EVALD_MAX_COST_USD: "0.1" } }],
    ["of a prompt", 0.1, { prompt: { limits: { costUsd: 0.1 } } }],
    ["of an organization, per run", 0.1, { org: { maxUsdARun: 0.1 } }],
    ["of an organization, per month", 0.5, { org: { maxUsdAMonth: 0.5 } }],
    ["per month, for three runs at once", 0.5, { org: { maxUsdAMonth: 0.5 }, runs: 3 }],
    [
      "per month, for six runs at once with a limit each",
      0.9,
      { org: { maxUsdAMonth: 0.9, maxUsdARun: 0.05 }, runs: 6 },
    ],
    ["per month, for an agent and its judge", 0.4, { org: { maxUsdAMonth: 0.4 }, judged: true, calls: 3 }],
    [
      "per month, for agents and judges at once",
      0.8,
      { org: { maxUsdAMonth: 0.8, maxUsdARun: 0.1 }, judged: true, runs: 4 },
    ],
    ["per month, for runs on two workers", 0.5, { org: { maxUsdAMonth: 0.5 }, runs: 3, workers: 2 }],
    [
      "per month, for runs on two workers with a limit each",
      1,
      { org: { maxUsdAMonth: 1, maxUsdARun: 0.1 }, runs: 4, workers: 2 },
    ],
    ["per run, on two workers", 0.1, { org: { maxUsdARun: 0.1 }, workers: 2 }],
  ])(
    "%s",
    async (_, limit, each) => {
      const { usd, spending } = await spend(each);
      expect(usd).toBeGreaterThan(0);
      expect(usd).toBeLessThanOrEqual(limit + oneCallUsd);
      expect(spending.spentUsd).toBeCloseTo(usd, 6);
    },
    60_000,
  );

  test("per month, for a cancelled run whose calls are still answered, and the next run", async () => {
    const limit = 0.3;
    const sentBefore = sentCalls;
    const { app, model, ids, run } = await start({ org: { maxUsdAMonth: limit }, runs: 2, calls: 1 });
    await app.service.runner.start();
    await until("the first run calls the model", () => model.waiting() > 0);
    const states = await Promise.all(ids.map(run));
    const first = ids[states.findIndex(({ status }) => status === "running")];
    expect((await app.send("POST", `/api/v1/runs/${first}/cancel`)).status).toBe(200);
    const others = ids.filter((id) => id !== first);
    const isOver = async () =>
      (await Promise.all(others.map(run))).every(({ status }) => status === "completed" || status === "failed");
    await until("the next run sends its call beside that of the cancelled one", () => sentCalls === sentBefore + 2);
    // Long enough for it to arrive, unless it waits.
    for (let turn = 0; turn < 2_000 && model.waiting() < 2; turn++) await new Promise((done) => setImmediate(done));
    await model.serve(until("the others are over", isOver));
    await model.serve(app.service.stop(0));
    expect(model.usd()).toBeLessThanOrEqual(limit + oneCallUsd);
  }, 60_000);

  test("per month, for a judge that judges again", async () => {
    const limit = 0.1;
    const { app, model, promptIds } = await start({ calls: 1 });
    await model.serve(app.runJobs());
    const before = model.usd();
    updateOrg(app.service.ctx, app.a.org, { maxUsdAMonth: before + limit });
    const regrade = { since: "2020-01-01", promptId: promptIds[0], judge: modelId, maxUsd: 5 };
    expect((await app.send("POST", "/api/v1/regrades", { body: regrade })).status).toBe(200);
    await model.serve(app.runJobs());
    await app.service.stop(0);
    const usd = model.usd() - before;
    expect(usd).toBeGreaterThan(0);
    expect(usd).toBeLessThanOrEqual(limit + oneCallUsd);
  }, 60_000);
});

describe.each([
  ["this machine", 0],
  ["two workers", 2],
])("on %s", (_, workers) => {
  test("the token of a run works only on the run's own socket", async () => {
    const model = serveSpendingModel({ price });
    closings.push(model.stop);
    const met: Model[] = [];
    const statuses: Record<string, number> = {};
    const meeting = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    const spy: Agent = {
      ...greedyAgent(0),
      async *run(task, context) {
        const own = context.resources?.model;
        if (!own) throw new Error("no model");
        met.push(own);
        if (met.length === 2) meeting.resolve();
        await meeting.promise;
        const other = met.find(({ token }) => token !== own.token);
        if (own === met[0]) {
          statuses.other = (await callModel(own, other?.token ?? "")).status;
          statuses.own = (await callModel(own, own.token)).status;
          over.resolve();
        }
        await over.promise;
        yield* greedyAgent(0).run(task, context);
      },
    };
    const { app } = await startRuns({ model, agent: spy, runs: 2, workers });
    await model.serve(app.runJobs());
    await app.service.stop(0);
    expect(statuses).toEqual({ other: 401, own: 200 });
    expect(model.bills).toHaveLength(1);
  }, 60_000);
});
