import { afterEach, describe, expect, test } from "bun:test";
import type { AgentEvent, AgentFailure } from "../src/agents/agent.ts";
import type { ModelLimits } from "../src/agents/gateway/call-account.ts";
import { createGateway } from "../src/agents/gateway/gateway.ts";
import type { ModelProvider } from "../src/config/model-settings.ts";
import { serveSpendingModel } from "./support/spending-model.ts";
import { until } from "./support/until.ts";

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

const prices = { in: 1, out: 10 };
/** Output of a call in tokens, however little money is left. */
const minOutput = 1_000;

type Case = {
  /** In USD. */
  limit?: number;
  limits?: Partial<ModelLimits>;
  /** Prices in USD per million tokens. */
  price?: { in: number; out: number };
  /** Calls that are sent at once, as often as `rounds` says. */
  atOnce?: number;
  rounds?: number;
  body?: object | string;
  provider?: ModelProvider;
  path?: string;
  model?: Omit<Parameters<typeof serveSpendingModel>[0], "price">;
};

const chat = { model: "greedy", messages: [{ role: "user", content: "Write as much as you can." }] };
const gemini = { contents: [{ role: "user", parts: [{ text: "Write as much as you can." }] }] };

/** Sends the calls of a case to a run of its own, and returns what they cost by the model's own books. */
async function spend({
  limit = 0.1,
  limits = {},
  price = prices,
  atOnce = 1,
  rounds = 1,
  body = chat,
  provider = "openai",
  path = "/openai/v1/chat/completions",
  model: options,
}: Case) {
  const run = openRun({ limit, limits, price, body, provider, path, model: options });
  const answers: Awaited<ReturnType<typeof run.send>>[] = [];
  for (let round = 0; round < rounds; round++)
    answers.push(...(await run.model.serve(Promise.all(Array.from({ length: atOnce }, () => run.send())))));
  const { session, model, text } = run;
  const spent = session.spent();
  await session.close();
  return { ...run, usd: model.usd(), spent, answers, bytes: text.length, price, limit };
}

/** A run with its own model and gateway, and a function that sends its call. */
function openRun({
  limit = 0.1,
  limits = {},
  price = prices,
  body = chat,
  provider = "openai",
  path = "/openai/v1/chat/completions",
  model: options,
}: Case) {
  const model = serveSpendingModel({ price, ...options });
  const gateway = createGateway({ now: Date.now });
  closings.push(model.stop, () => gateway.close());
  const id = `${provider}/greedy`;
  const events: AgentEvent[] = [];
  const failures: AgentFailure[] = [];
  const session = gateway.openSession({
    model: {
      id,
      provider,
      name: "greedy",
      baseUrl: `${model.url}/v1${provider === "google" ? "beta" : ""}`,
      key: "a-test-key",
      prices: { [id]: { ...price, cached: price.in } },
      allow: null,
    },
    limits: { calls: 10_000, tokens: 1e9, costUsd: limit, ...limits },
    onEvent: (event) => events.push(event),
    onFailure: (failure) => failures.push(failure),
  });
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const send = async (signal?: AbortSignal) => {
    const response = await fetch(`http://gateway${path}`, {
      unix: session.socketPath,
      method: "POST",
      headers: { authorization: `Bearer ${session.token}` },
      body: text,
      signal,
      ...{ timeout: false },
    });
    return { status: response.status, body: (await response.json()) as unknown };
  };
  return { model, gateway, session, events, failures, text, send };
}

const google = (body: object): Case => ({
  provider: "google",
  path: "/google/v1beta/models/greedy:generateContent",
  body: { ...gemini, ...body },
});
const responses = (body: object): Case => ({
  path: "/openai/v1/responses",
  body: { model: "greedy", input: "Write as much as you can.", ...body },
});
const messages = (body: object): Case => ({
  provider: "anthropic",
  path: "/anthropic/v1/messages",
  body: { ...chat, ...body },
});
const compatible = (body: object): Case => ({
  provider: "openai-compatible",
  path: "/openai-compatible/v1/chat/completions",
  body: { ...chat, ...body },
});
const huge = 1_000_000;

describe("the money of a run is never exceeded by more than one call's input and least output", () => {
  test.each<[string, Case]>([
    ["one call for a million tokens", { body: { ...chat, max_tokens: huge } }],
    ["one call without a limit of its own", {}],
    ["128 answers of a call", { body: { ...chat, max_tokens: huge, n: 128 } }],
    ["128 answers without a limit", { body: { ...chat, n: 128 } }],
    ["both output fields, the lower one first", { body: { ...chat, max_tokens: 1, max_completion_tokens: huge } }],
    ["both output fields, the lower one last", { body: { ...chat, max_tokens: huge, max_completion_tokens: 1 } }],
    ["15 calls at once", { atOnce: 15, body: { ...chat, max_tokens: huge } }],
    ["15 calls at once with 128 answers each", { atOnce: 15, body: { ...chat, max_tokens: huge, n: 128 } }],
    ["16 calls at once without a limit of their own", { atOnce: 16 }],
    ["60 calls at once against $2", { limit: 2, price: { in: 10, out: 100 }, atOnce: 60 }],
    ["60 calls at once against $2, twice", { limit: 2, price: { in: 10, out: 100 }, atOnce: 60, rounds: 2 }],
    ["100 calls one after another", { rounds: 100, body: { ...chat, max_tokens: 3_000 } }],
    ["20 rounds of 5 calls at once", { atOnce: 5, rounds: 20, body: { ...chat, max_tokens: 700 } }],
    [
      "16 calls at once whose input is the cost",
      {
        limit: 0.5,
        price: { in: 10, out: 1 },
        atOnce: 16,
        body: { ...chat, messages: [{ role: "user", content: "word ".repeat(8_000) }], max_tokens: 10 },
      },
    ],
    [
      "16 calls at once of a token per byte",
      {
        limit: 0.5,
        price: { in: 10, out: 1 },
        atOnce: 16,
        body: { ...chat, messages: [{ role: "user", content: "9".repeat(30_000) }], max_tokens: 10 },
        model: { density: 1 },
      },
    ],
    ["responses", responses({ max_output_tokens: huge })],
    ["16 responses at once", { ...responses({ max_output_tokens: huge }), atOnce: 16 }],
    ["responses without a limit", { ...responses({}), atOnce: 16 }],
    ["responses with the field of another protocol", responses({ max_output_tokens: 1, max_tokens: huge })],
    ["messages", messages({ max_tokens: huge })],
    ["16 messages at once", { ...messages({ max_tokens: huge }), atOnce: 16 }],
    ["generateContent", google({ generationConfig: { maxOutputTokens: huge } })],
    ["generateContent in snake case", google({ generation_config: { max_output_tokens: huge } })],
    ["generateContent in mixed case", google({ generationConfig: { max_output_tokens: huge } })],
    ["generateContent in mixed case, the other way", google({ generation_config: { maxOutputTokens: huge } })],
    ["generateContent with both fields", google({ generationConfig: { maxOutputTokens: 1, max_output_tokens: huge } })],
    [
      "generateContent with both objects",
      google({ generationConfig: { maxOutputTokens: 1 }, generation_config: { max_output_tokens: huge } }),
    ],
    ["8 candidates", google({ generationConfig: { maxOutputTokens: huge, candidateCount: 8 } })],
    [
      "8 candidates in snake case",
      google({
        generationConfig: { maxOutputTokens: 1 },
        generation_config: { max_output_tokens: huge, candidate_count: 8 },
      }),
    ],
    ["16 times generateContent at once", { ...google({}), atOnce: 16 }],
    ["a compatible server", compatible({ max_tokens: huge })],
    ["a compatible server with a field of its own", compatible({ max_tokens: 1, n_predict: huge })],
    ["16 calls at once to a compatible server", { ...compatible({}), atOnce: 16 }],
    ["a model with a small maximum", { limit: 0.2, body: chat, model: { maxOutput: 16_384 } }],
  ])("%s", async (_, each) => {
    const { usd, bytes, price, limit, spent, answers } = await spend(each);
    // The model reports at most one token per byte.
    const oneCallUsd = (bytes * price.in + minOutput * price.out) / 1e6;
    expect(usd).toBeLessThanOrEqual(limit + oneCallUsd);
    expect(answers.some(({ status }) => status === 200)).toBe(true);
    expect(spent.costUsd).toBeCloseTo(usd, 9);
  });
});

describe("a limit that is no number of tokens is refused before the call", () => {
  test.each<[string, Case]>([
    ["a text", { body: { ...chat, max_tokens: "1000000" } }],
    ["a negative number", { body: { ...chat, max_tokens: -1 } }],
    ["a fraction", { body: { ...chat, max_tokens: 1_000_000.5 } }],
    ["infinity", { body: JSON.stringify({ ...chat, max_tokens: 0 }).replace('"max_tokens":0', '"max_tokens":1e999') }],
    ["a truth value", { body: { ...chat, max_completion_tokens: true } }],
    ["a list", { body: { ...chat, max_tokens: [1_000_000] } }],
    ["an object", { body: { ...chat, max_tokens: {} } }],
    ["a text as the number of answers", { body: { ...chat, max_tokens: 10, n: "128" } }],
    ["a fraction of answers", { body: { ...chat, n: 2.5 } }],
    ["no answers", { body: { ...chat, n: 0 } }],
    ["a text in a response", responses({ max_output_tokens: "1000000" })],
    ["a text in a message", messages({ max_tokens: "1000000" })],
    ["a text in a configuration", google({ generationConfig: { maxOutputTokens: "1000000" } })],
    ["a text in a configuration in snake case", google({ generation_config: { max_output_tokens: "1000000" } })],
    ["a negative number of candidates", google({ generationConfig: { candidateCount: -8 } })],
    ["a list as the configuration", google({ generationConfig: [{ maxOutputTokens: huge }] })],
    ["a text to a compatible server", compatible({ max_tokens: "1000000" })],
  ])("%s", async (_, each) => {
    const { usd, answers, spent, events } = await spend(each);
    expect(answers.map(({ status }) => status)).toEqual([400]);
    expect([usd, spent.calls, events]).toEqual([0, 0, []]);
  });
});

test.each<[string, Case, object]>([
  [
    "OpenAI",
    { body: { ...chat, max_tokens: "1" } },
    {
      error: { type: "invalid_request_error", param: "max_tokens", code: "invalid_value", message: expect.any(String) },
    },
  ],
  [
    "Anthropic",
    messages({ max_tokens: "1" }),
    { type: "error", error: { type: "invalid_request_error", message: expect.any(String) } },
  ],
  [
    "Google",
    google({ generation_config: { max_output_tokens: "1" } }),
    { error: { code: 400, status: "INVALID_ARGUMENT", message: expect.any(String) } },
  ],
])("an invalid limit is refused as by %s", async (_, each, error) => {
  const { answers } = await spend(each);
  expect(answers).toEqual([{ status: 400, body: error }]);
});

describe("the tokens of a run", () => {
  const limit = 50_000;
  const tokensOf = ({ bills }: ReturnType<typeof serveSpendingModel>) =>
    bills.reduce((sum, { input, output }) => sum + input + output, 0);

  test.each<[string, Case]>([
    ["16 calls at once", { atOnce: 16 }],
    ["16 calls at once with 8 answers each", { atOnce: 16, body: { ...chat, n: 8 } }],
    ["calls one after another", { rounds: 20, body: { ...chat, max_tokens: 9_000 } }],
  ])("are never exceeded by more than one call's input and least output: %s", async (_, each) => {
    const { model, bytes, spent } = await spend({ ...each, limits: { tokens: limit, costUsd: null } });
    expect(tokensOf(model)).toBeGreaterThan(limit - 1_000);
    expect(tokensOf(model)).toBeLessThanOrEqual(limit + bytes + minOutput);
    expect(spent.tokens).toBe(tokensOf(model));
  });

  test("end, even if the server never reports them", async () => {
    const { answers } = await spend({
      rounds: 40,
      limits: { tokens: 500, costUsd: null },
      model: { reportsUsage: false },
    });
    expect(answers.filter(({ status }) => status === 200).length).toBeWithin(5, 40);
    expect(answers.at(-1)?.status).toBe(402);
  });
});

describe("a call that must wait for others", () => {
  const limit = 0.1;
  /** One call holds all that is left, and another one waits. */
  async function openWaiting() {
    const run = openRun({ limit });
    const first = run.send();
    await until("the first call is at the model", () => run.model.waiting() === 1);
    const leaving = new AbortController();
    const second = run.send(leaving.signal);
    second.catch(() => {});
    return { ...run, first, second, leaving };
  }

  test("goes out when they have used less than they held", async () => {
    const run = openRun({ limit, body: { ...chat, max_tokens: 9_000 }, model: { most: 100 } });
    const answers = await run.model.serve(Promise.all(Array.from({ length: 10 }, () => run.send())));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
  });

  test("is refused as any call beyond a limit if they have used it all", async () => {
    const { model, first, second, events } = await openWaiting();
    const answers = await model.serve(Promise.all([first, second]));
    expect(answers.map(({ status }) => status)).toEqual([200, 402]);
    const reached = { type: "limit", limit: "model_cost", unit: "USD", value: limit };
    expect(events.filter(({ type }) => type === "limit")).toEqual([
      { ...reached, near: true },
      reached,
    ] as AgentEvent[]);
  });

  test("ends with its run, and is never sent", async () => {
    const { model, session, first, second } = await openWaiting();
    const closed = session.close();
    expect((await second).status).toBe(401);
    await model.serve(Promise.all([first.catch(() => {}), closed]));
    expect(model.bodies).toHaveLength(1);
  });

  test("is not sent after its client has left, and holds nothing up", async () => {
    const { model, session, first, second, leaving, send } = await openWaiting();
    leaving.abort();
    await expect(second).rejects.toThrow();
    await model.serve(first);
    expect(session.spent().calls).toBe(1);
    expect((await model.serve(send())).status).toBe(402);
    expect(model.bodies).toHaveLength(1);
  });
});

const outputLimits = (bodies: Record<string, unknown>[]) =>
  bodies.map(({ max_completion_tokens }) => max_completion_tokens);

test.each([
  [16_384, [30_000, 8_192, 8_192]],
  [4_096, [30_000, 8_192, 4_096, 4_096]],
])("a model with a maximum of %d gets a lower limit, which is kept for the next call", async (maxOutput, limits) => {
  const { model, answers, spent } = await spend({ limit: 0.3, rounds: 2, model: { maxOutput } });
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(outputLimits(model.bodies)).toEqual(limits);
  expect(spent.calls).toBe(2);
});

test("a request without a limit gets none while every model's maximum is left", async () => {
  const { model } = await spend({ limit: 2 });
  expect(model.bodies).toEqual([chat]);
});

test.each([
  [6_000, { type: "enabled", budget_tokens: 3_000 }],
  [1_000, { type: "disabled" }],
])("thinking fits in the %d tokens that are left", async (left, thinking) => {
  const { model } = await spend({
    limit: (left * prices.out) / 1e6,
    ...messages({ max_tokens: 32_000, thinking: { type: "enabled", budget_tokens: 20_000 } }),
  });
  expect(model.bodies).toMatchObject([{ max_tokens: left, thinking }]);
});

test("a call can't choose another price, or go on after its response", async () => {
  const { model } = await spend({
    ...responses({ service_tier: "priority", background: true, max_output_tokens: 10 }),
  });
  expect(model.bodies).toEqual([{ model: "greedy", input: "Write as much as you can.", max_output_tokens: 10 }]);
});

test("a request that is rejected for another reason is not repeated", async () => {
  const { model, answers, spent } = await spend({ model: { rejection: "The messages are too long for this model." } });
  expect(answers.map(({ status }) => status)).toEqual([400]);
  expect([model.bodies.length, spent.costUsd]).toEqual([1, 0]);
});

test("a request of many levels is counted, and its run can end", async () => {
  const nested = `${"[".repeat(50_000)}1${"]".repeat(50_000)}`;
  const { answers, model } = await spend({ body: JSON.stringify({ ...chat, nested: 0 }).replace(":0", `:${nested}`) });
  expect(answers).toHaveLength(1);
  expect(model.usd()).toBeLessThanOrEqual(0.3);
});

test("an image counts by what it is billed for, not by its length", async () => {
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(300_000)}` } };
  const messages = [{ role: "user", content: [image] }];
  const run = openRun({ limit: 1, body: { ...chat, messages, max_tokens: 100 }, model: { density: 0 } });
  const calls = Promise.all(Array.from({ length: 10 }, () => run.send()));
  // All of them are in progress at once.
  await until("all calls are at the model", () => run.model.waiting() === 10);
  await run.model.serve(calls);
  expect(run.model.bodies).toHaveLength(10);
});
