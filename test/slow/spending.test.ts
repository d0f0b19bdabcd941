import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createModelAgent } from "../../src/agents/llm/llm.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import { transaction } from "../../src/db/open.ts";
import { recordSpending } from "../../src/runs/paid-calls.ts";
import { testApp } from "../support/app.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { call, finish, modelKey, modelRuns } from "../support/model-runs.ts";

/** Cost of one call of the fake model at the prices of the tests, in USD. */
const callUsd = 0.00264;
const ask = (question: string) => call("ask_human", { question });
const fail: Turn = { fail: { status: 500, headers: { "retry-after-ms": "1" } } };

let fake: ReturnType<typeof serveFakeModel>;
beforeAll(() => {
  const done = finish("goal_not_met", "That was all.");
  fake = serveFakeModel({
    scenarios: {
      short: { turns: [...Array.from({ length: 5 }, (_, i) => ask(`Why ${i}?`)), done] },
      thinks: { turns: [{ text: "Let me think about it." }] },
      stumbles: { first: [ask("Why?"), fail, fail, fail, fail, fail], turns: [done] },
    },
  });
});
afterAll(() => fake.stop());

type App = ReturnType<typeof testApp>;
const capped = (patch: Parameters<typeof updateOrg>[2], also = (_: App) => {}) => ({
  before: (app: App) => {
    updateOrg(app.service.ctx, app.a.org, patch);
    also(app);
  },
});
const spendingOf = async ({ send }: App) => (await send("GET", "/api/v1/spending")).body;

describe("the monthly budget", () => {
  test("isn't spent twice by 50 concurrent runs, which use what is left in turn and then fail with the cause", async () => {
    const cap = 0.6;
    const { app, runs } = await modelRuns(fake).runsOf("short", {
      many: 50,
      env: { EVALD_CONCURRENCY: "50", EVALD_RUNS_PER_HOST: "50", EVALD_MAX_COST_USD: "0.02" },
      ...capped({ maxUsdAMonth: cap }),
    });
    const { spentUsd, reservedUsd, unpricedCalls } = await spendingOf(app);
    expect(spentUsd).toBeGreaterThanOrEqual(cap);
    expect(spentUsd).toBeLessThan(cap + callUsd);
    expect([reservedUsd, unpricedCalls]).toEqual([0, 0]);
    // Each run makes six calls, and the last one gets the rest.
    const whole = runs.filter(({ status }) => status === "completed").length;
    expect(whole).toBe(Math.ceil(cap / (6 * callUsd)));
    const reasons = new Set(runs.filter(({ status }) => status === "failed").map((run) => run.failureReason));
    expect([...reasons]).toEqual([
      expect.stringMatching(/^budget: The organization has spent \$0\.60 of its monthly budget of \$0\.6\. /),
    ]);
  }, 300_000);

  test("leads to rejected requests once it is spent, and scheduled evaluations have the reason", async () => {
    let at = Date.UTC(2026, 10, 21, 9, 30);
    const app = testApp({
      now: () => at,
      env: {
        OPENAI_API_KEY: "sk-0123456789abcdef",
        EVALD_AGENT_MODEL: "openai/gpt-5",
        EVALD_JUDGE_MODEL: "openai/gpt-5",
      },
      agents: { llm: createModelAgent({ version: "test" }) },
    });
    const { service, a, send, db } = app;
    updateOrg(service.ctx, a.org, { maxUsdAMonth: 5, timeZone: "Asia/Tokyo" });
    const body = { text: "See https://docs.test/", frequency: "0 * * * *" };
    const { id } = (await send("POST", "/api/v1/prompts", { body })).body;
    const { body: before } = await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
    const call = { at, model: "gpt-5", purpose: "agent", usd: 5, estimatedUsd: 0 } as const;
    transaction(db, (tx) => recordSpending(service.ctx, tx, before.runId, call));
    const refused = await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
    const detail = expect.stringMatching(
      /^The organization has spent \$5\.00 of its monthly budget of \$5\. .* December 1\.$/,
    );
    expect([refused.status, refused.body]).toEqual([409, { error: "conflict", detail }]);
    at += 3600_000;
    await service.scheduler.tick();
    const evaluations = (await send("GET", `/api/v1/prompts/${id}/scheduled-evaluations`)).body;
    expect(evaluations).toMatchObject([{ outcome: "failed", reason: detail }]);
    // An agent without a model is free.
    const { id: free } = (await send("POST", "/api/v1/prompts", { body: { ...body, agent: "explorer" } })).body;
    expect((await send("POST", `/api/v1/prompts/${free}/run`, { body: { urlMap: {} } })).status).toBe(200);
    // The month is the organization's: in Tokyo it is already December.
    at = Date.UTC(2026, 10, 30, 15, 0);
    expect(await spendingOf(app)).toMatchObject({
      from: "2026-11-30T15:00:00.000Z",
      until: "2026-12-31T15:00:00.000Z",
      spentUsd: 0,
      reservedUsd: 0,
      unpricedCalls: 0,
      maxUsdAMonth: 5,
      maxUsdARun: null,
    });
    expect((await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } })).status).toBe(200);
    updateOrg(service.ctx, a.org, { timeZone: "America/New_York" });
    expect(await spendingOf(app)).toMatchObject({ from: "2026-11-01T04:00:00.000Z", spentUsd: 5 });
    const { key } = app.b;
    const other = await send("GET", "/api/v1/spending", { headers: { authorization: `Bearer ${key}` } });
    expect(other.body).toMatchObject({ spentUsd: 0, maxUsdAMonth: null });
  });

  test("includes lost attempts", async () => {
    const { app, runs } = await modelRuns(fake).runsOf("stumbles");
    expect(runs).toMatchObject([{ status: "completed", attempt: 2 }]);
    const attempts = (await app.send("GET", `/api/v1/runs/${runs[0].runId}/attempts`)).body;
    expect(attempts).toMatchObject([
      { outcome: "retried", costUsd: callUsd },
      { outcome: "done", costUsd: callUsd },
    ]);
    expect((await spendingOf(app)).spentUsd).toBe(2 * callUsd);
  });
});

test("runs of a tag wait while others have reserved its budget, then fail once it is spent, and Home says so", async () => {
  const cap = 0.03;
  const { app, runs } = await modelRuns(fake).runsOf("short", {
    many: 3,
    prompt: { tags: ["paid"] },
    env: { EVALD_CONCURRENCY: "3", EVALD_RUNS_PER_HOST: "3" },
    before: async ({ send }) => {
      await send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/", tags: ["paid"] } });
      const { status, body } = await send("PUT", "/api/v1/budgets", { body: { tag: "paid", maxUsdAMonth: cap } });
      expect([status, body]).toMatchObject([200, [{ tag: "paid", promptId: null, maxUsdAMonth: cap, spentUsd: 0 }]]);
    },
  });
  const { spentUsd, budgets } = await spendingOf(app);
  expect(spentUsd).toBeGreaterThanOrEqual(cap);
  expect(spentUsd).toBeLessThan(cap + callUsd);
  expect(budgets).toMatchObject([{ tag: "paid", spentUsd, reservedUsd: 0 }]);
  const attempts = await Promise.all(
    runs.map(async ({ runId }) => (await app.send("GET", `/api/v1/runs/${runId}/attempts`)).body),
  );
  expect(attempts.flat().some(({ outcome }) => outcome === "released")).toBe(true);
  const reason = /The tag "paid" has spent \$0\.03 of its monthly budget of \$0\.03\. /;
  expect(runs.map(({ failureReason }) => failureReason).filter(Boolean)).toEqual([expect.stringMatching(reason)]);
  const { problems } = (await app.send("GET", "/api/v1/inbox")).body;
  expect(problems).toContainEqual(
    expect.objectContaining({
      kind: "budget_spent",
      maxUsd: cap,
      budget: { promptId: null, tag: "paid", name: "paid" },
    }),
  );
  // Another prompt of the tag is refused; one without the tag is not.
  const [tagged] = (await app.send("GET", "/api/v1/prompts?tag=paid")).body.slice(-1);
  const refused = await app.send("POST", `/api/v1/prompts/${tagged.id}/run`, { body: { urlMap: {} } });
  expect([refused.status, refused.body.detail]).toEqual([409, expect.stringMatching(reason)]);
  const { id } = (await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  expect((await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } })).status).toBe(200);
  const removed = await app.send("PUT", "/api/v1/budgets", { body: { tag: "paid", maxUsdAMonth: null } });
  expect(removed.body).toEqual([]);
  const again = await app.send("POST", `/api/v1/prompts/${tagged.id}/run`, { body: { urlMap: {} } });
  expect(again.status).toBe(200);
}, 120_000);

test("a cancelled run frees its slot immediately, and its last call is counted when its cost is known", async () => {
  const app = testApp({
    agents: { llm: createModelAgent({ version: "test" }) },
    env: {
      EVALD_CONCURRENCY: "1",
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: modelKey,
      EVALD_MODEL_PRICES: '{"openai-compatible/held": {"in": 10, "out": 100, "cached": 1}}',
    },
  });
  const { send, service } = app;
  const begin = async (body: object) => {
    const { id } = (await send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/", ...body } })).body;
    return (await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } })).body.runId as string;
  };
  const until = async (isSo: () => Promise<boolean>) => {
    while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve));
  };
  const held = await begin({ model: "openai-compatible/held" });
  await service.runner.start();
  await until(async () => fake.requests.some(({ model }) => model === "held"));
  expect((await send("POST", `/api/v1/runs/${held}/cancel`)).status).toBe(200);
  const next = await begin({ agent: "explorer" });
  await until(async () => (await send("GET", `/api/v1/runs/${next}`)).body.status === "completed");
  expect((await spendingOf(app)).spentUsd).toBe(0);
  fake.release("held");
  await until(async () => (await spendingOf(app)).spentUsd > 0);
  expect(await spendingOf(app)).toMatchObject({ spentUsd: callUsd, unpricedCalls: 0 });
  await service.stop(0);
});

describe("the budget of one run", () => {
  test("is the lowest of the organization's, the prompt's and the operator's", async () => {
    const { run, report, events } = await modelRuns(fake).runOf("short", capped({ maxUsdARun: 0.005 }));
    expect([run.status, report.outcome]).toEqual(["completed", "goal_not_met"]);
    const hits = events.filter(({ type, near }: { type: string; near?: true }) => type === "limit" && !near);
    expect(hits).toMatchObject([{ limit: "model_cost", value: 0.005, source: "gateway" }]);
  });

  test.each([
    ["prompt_cost_limit", { prompt: { limits: { costUsd: 0.001 } } }],
    ["organization_cost_limit", capped({ maxUsdARun: 0.001 })],
    ["server_cost_limit", { env: { EVALD_MAX_COST_USD: "0.001" } }],
  ])("that ends before the agent did anything fails the run, and says whose it is: %s", async (code, options) => {
    const { run } = await modelRuns(fake).runOf("thinks", options);
    expect([run.status, run.failure]).toMatchObject(["failed", { code, cause: "budget", subject: "0.001" }]);
  });

  test.each([
    ["an organization's limit per run", { maxUsdARun: 1 }, {}],
    ["an organization's limit per month", { maxUsdAMonth: 1 }, {}],
    ["a prompt's limit", { maxRunsAtOnce: 4 }, { limits: { costUsd: 1 } }],
  ])("rejects a model without a known price for %s, which couldn't be enforced", async (_, patch, prompt) => {
    const { run } = await modelRuns(fake).runOf("short", {
      ...capped(patch),
      prompt,
      env: { EVALD_MODEL_PRICES: "" },
    });
    expect(run).toMatchObject({
      status: "failed",
      failureReason:
        "budget: the price of short is unknown, so the spending limit cannot be enforced; set it in EVALD_MODEL_PRICES, or remove the limit",
    });
  });

  test("of the operator allows such a model within its tokens, and says so", async () => {
    const { run, events } = await modelRuns(fake).runOf("short", { env: { EVALD_MODEL_PRICES: "" } });
    expect(run.status).toBe("completed");
    const words = events.filter(({ type }: { type: string }) => type === "message");
    expect(words.map(({ text }: { text: string }) => text)).toEqual([
      expect.stringContaining("The price of short is unknown, so its budget of $2 cannot be enforced"),
    ]);
  });
});
