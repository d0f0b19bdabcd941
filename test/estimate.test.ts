import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Agent } from "../src/agents/agent.ts";
import { createCodingAgent } from "../src/agents/coding/coding.ts";
import type { Preset } from "../src/agents/coding/preset.ts";
import { presets } from "../src/agents/coding/presets.ts";
import { updateOrg } from "../src/auth/orgs.ts";
import { testApp } from "./support/app.ts";
import { serveFakeModel } from "./support/fake-model.ts";
import { call, finish, modelRuns } from "./support/model-runs.ts";

let fake: ReturnType<typeof serveFakeModel>;
beforeAll(() => {
  const ask = call("ask_human", { question: "Why?" });
  const done = finish("goal_not_met", "That was all.");
  fake = serveFakeModel({ scenarios: { first: { turns: [ask, done] }, second: { turns: [done] } } });
});
afterAll(() => fake.stop());

test("an estimate is the median and range of earlier runs of the same prompt, agent and model", async () => {
  const { app, runs } = await modelRuns(fake).runsOf("first", { many: 3 });
  const promptId = runs[0].prompt.id;
  const get = async () => (await app.send("GET", `/api/v1/prompts/${promptId}/estimate`)).body;
  const cost = 0.00528;
  const took = runs
    .map((run) => (Date.parse(run.completedAt) - Date.parse(run.startedAt)) / 1000)
    .sort((a, b) => a - b);
  expect(await get()).toEqual({
    runs: 1,
    agent: "llm",
    model: "openai-compatible/first",
    basis: "earlier runs",
    of: 3,
    seconds: { median: took[1], low: took[0], high: took[2] },
    costUsd: { median: cost, low: cost, high: cost },
    firstRequestTokens: null,
    others: [],
  });
  // Runs of another model don't count: only the limits apply.
  await app.send("PATCH", `/api/v1/prompts/${promptId}`, {
    body: { model: "openai-compatible/second", runsPerEval: 4, limits: { wallClockSeconds: 90 } },
  });
  const limits = { runs: 4, model: "openai-compatible/second", basis: "limits", of: 0 };
  // The second has no known price.
  expect(await get()).toMatchObject({ ...limits, seconds: { median: null, low: null, high: 90 }, costUsd: null });
});

test.each([
  ["the money limit", {}, 2],
  ["the token limit at the model's price", { EVALD_MAX_TOKENS: "1000" }, 0.03],
  ["the token limit if money is not limited", { EVALD_MAX_TOKENS: "2000", EVALD_MAX_COST_USD: "0" }, 0.06],
])("an estimate without earlier runs is at most %s", async (_, env, high) => {
  const model = "openai/gpt-x";
  const prices = { EVALD_MODEL_PRICES: `{"${model}": {"in": 10, "out": 30}}` };
  const app = testApp({
    agents: { llm: (await import("../src/agents/llm/llm.ts")).createModelAgent({ version: "test" }) },
    env: { OPENAI_API_KEY: "sk-0123456789abcdef", EVALD_AGENT_MODEL: model, ...prices, ...env },
  });
  const { id } = (await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  const get = async () => (await app.send("GET", `/api/v1/prompts/${id}/estimate`)).body;
  expect(await get()).toMatchObject({ basis: "limits", costUsd: { median: null, low: null, high } });
  updateOrg(app.service.ctx, app.a.org, { maxUsdARun: 0.01 });
  expect((await get()).costUsd.high).toBe(0.01);
  const other = await app.send("GET", `/api/v1/prompts/${id}/estimate`, {
    headers: { authorization: `Bearer ${app.b.key}` },
  });
  expect(other.status).toBe(404);
});

test("an estimate for a coding agent is at least the cost of its first request", async () => {
  const model = "openai/gpt-x";
  const codex = presets.find(({ id }) => id === "codex") as Preset;
  const coding: Agent = {
    ...createCodingAgent(codex, { path: "" }),
    // The agent counts as installed.
    preflight: () => [],
  };
  const app = testApp({
    agents: { codex: coding },
    env: { OPENAI_API_KEY: "sk-0123456789abcdef", EVALD_MODEL_PRICES: `{"${model}": {"in": 10, "out": 30}}` },
  });
  const body = { text: "See https://docs.test/", agent: "codex", model };
  const { id } = (await app.send("POST", "/api/v1/prompts", { body })).body;
  const estimate = (await app.send("GET", `/api/v1/prompts/${id}/estimate`)).body;
  const tokens = codex.firstRequestTokens ?? 0;
  expect(tokens).toBeGreaterThan(5000);
  expect(estimate).toMatchObject({
    firstRequestTokens: tokens,
    costUsd: { median: null, low: (10 * tokens) / 1e6, high: 2 },
  });
});

test("an estimate for an agent without a model is free", async () => {
  const app = testApp();
  const { id } = (await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  const { body } = await app.send("GET", `/api/v1/prompts/${id}/estimate`);
  expect(body).toMatchObject({ agent: "explorer", model: null, seconds: { high: 1800 }, costUsd: { high: 0 } });
});
