import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";
import type { AgentEvent, AgentFailure } from "../src/agents/agent.ts";
import type { ModelLimits } from "../src/agents/gateway/call-account.ts";
import { createGateway, type GatewaySession } from "../src/agents/gateway/gateway.ts";
import type { ModelAccess } from "../src/agents/gateway/prices.ts";
import { readConfig } from "../src/config/config.ts";
import { type ModelProvider, modelProviders } from "../src/config/model-settings.ts";
import { serveFakeModel } from "./support/fake-model.ts";
import { until } from "./support/until.ts";

const key = "sk-the-real-key-0123456789";
globalThis.AI_SDK_LOG_WARNINGS = false;
let fake: ReturnType<typeof serveFakeModel>;
let gateway: ReturnType<typeof createGateway>;
/** Waits only briefly for abandoned responses. */
let impatient: typeof gateway;
const outage = [500, 529, 500, 529].map((status) => ({ fail: { status } }));
const at = Date.UTC(2026, 0, 1);
const now = () => at;
beforeAll(() => {
  fake = serveFakeModel({
    key,
    scenarios: {
      unread: { turns: [{ fail: { status: 400, message: "no such parameter" } }] },
      recovers: { first: [...outage, { text: "At last." }, ...outage], turns: [{ text: "For good." }] },
      dated: { turns: [{ fail: { status: 503, headers: { "retry-after": new Date(at + 9000).toUTCString() } } }] },
      badkey: { turns: [{ fail: { status: 400, message: "API key not valid. Please pass a valid API key." } }] },
      opus: { turns: [{ model: "claude-opus-4-8", text: "Hi.", usage: { input: 1000, cached: 400, output: 100 } }] },
      written: {
        turns: [
          {
            model: "claude-opus-4-8",
            text: "Hi.",
            usage: { input: 1000, cached: 400, cacheWritten: 200, output: 100 },
          },
        ],
      },
      flash: { turns: [{ model: "gemini-2.5-flash", text: "Hi.", usage: { input: 1000, cached: 400, output: 100 } }] },
      mini: {
        turns: [{ model: "gpt-4.1-mini-2025-04-14", text: "Hi.", usage: { input: 1000, cached: 400, output: 100 } }],
      },
    },
  });
  gateway = createGateway({ now });
  impatient = createGateway({ now, drainMs: 50 });
});
afterAll(async () => {
  await Promise.all([gateway.close(), impatient.close()]);
  fake.stop();
});

const price = { in: 10, out: 100, cached: 1 };

/** A run of the model `provider/scenario`, its events, and a fetch over its socket. */
function openRun(
  provider: ModelProvider,
  name: string,
  {
    limits = {},
    priced = true,
    of = gateway,
    allow = null,
    waitForTurn,
  }: {
    limits?: Partial<ModelLimits>;
    priced?: boolean;
    of?: typeof gateway;
    allow?: ModelAccess["allow"];
    waitForTurn?: () => Promise<void>;
  } = {},
) {
  const id = `${provider}/${name}`;
  const events: AgentEvent[] = [];
  const failures: AgentFailure[] = [];
  const session = of.openSession({
    model: { id, provider, name, baseUrl: fake.baseUrls[provider], key, prices: priced ? { [id]: price } : {}, allow },
    limits: { calls: 100, tokens: 1_000_000, costUsd: null, ...limits },
    ...(waitForTurn && { waitForTurn }),
    onEvent: (event) => events.push(event),
    onFailure: (failure) => failures.push(failure),
  });
  return { session, events, failures, usage: () => events.filter((event) => event.type === "usage") };
}

const viaSocket = ({ socketPath }: GatewaySession) =>
  ((url: string, init: RequestInit) => fetch(url, { ...init, unix: socketPath })) as unknown as typeof fetch;

const paths = {
  "openai chat": { provider: "openai", make: (s: GatewaySession, m: string) => openai(s).chat(m) },
  "openai responses": { provider: "openai", make: (s: GatewaySession, m: string) => openai(s).responses(m) },
  anthropic: {
    provider: "anthropic",
    make: (s: GatewaySession, m: string) =>
      createAnthropic({ baseURL: "http://gateway/anthropic/v1", apiKey: s.token, fetch: viaSocket(s) })(m),
  },
  google: {
    provider: "google",
    make: (s: GatewaySession, m: string) =>
      createGoogle({ baseURL: "http://gateway/google/v1beta", apiKey: s.token, fetch: viaSocket(s) })(m),
  },
  "openai-compatible": {
    provider: "openai-compatible",
    make: (s: GatewaySession, m: string) =>
      createOpenAICompatible({
        name: "compatible",
        baseURL: "http://gateway/openai-compatible/v1",
        apiKey: s.token,
        fetch: viaSocket(s),
      })(m),
  },
} as const;
const openai = (s: GatewaySession) =>
  createOpenAI({ baseURL: "http://gateway/openai/v1", apiKey: s.token, fetch: viaSocket(s) });
const names = Object.keys(paths) as (keyof typeof paths)[];

const tools = {
  weather: tool({ inputSchema: z.object({ city: z.string() }), execute: ({ city }) => `sunny in ${city}` }),
};

/** Makes one call by hand, as any client could send it. */
const call = (session: GatewaySession, path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`http://gateway${path}`, {
    unix: session.socketPath,
    method: "POST",
    headers: { authorization: `Bearer ${session.token}`, ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
const ask = (session: GatewaySession, model: string, more: object = {}, headers = {}) =>
  call(
    session,
    "/openai/v1/chat/completions",
    { model, messages: [{ role: "user", content: "Hi" }], ...more },
    headers,
  );

describe.each(names)("the gateway for %s", (name) => {
  const { provider, make } = paths[name];

  test.each([["streamed"], ["whole"]])(
    "passes a tool call and its response through, %s, with usage and cost as reported",
    async (how) => {
      const { session, usage, failures } = openRun(provider, "tool");
      const options = {
        model: make(session, "tool"),
        prompt: "Weather?",
        tools,
        stopWhen: isStepCount(3),
        maxRetries: 0,
      };
      const result = how === "whole" ? await generateText(options) : streamText(options);
      const steps = await result.steps;
      expect(await result.text).toBe("It is sunny in Bern.");
      expect(steps[0]?.toolCalls.map(({ toolName, input }) => [toolName, input])).toEqual([
        ["weather", { city: "Bern" }],
      ]);
      expect(usage()).toEqual([
        {
          type: "usage",
          model: "tool",
          inputTokens: 100,
          outputTokens: 20,
          cachedTokens: 40,
          reasoningTokens: provider === "anthropic" ? 0 : 5,
          costUsd: 0.00264,
        },
        {
          type: "usage",
          model: "tool",
          inputTokens: 200,
          outputTokens: 10,
          cachedTokens: 150,
          reasoningTokens: 0,
          costUsd: 0.00165,
        },
      ]);
      // The client and the gateway read the same figures.
      expect(steps.map((step) => [step.usage.inputTokens, step.usage.outputTokens])).toEqual([
        [100, 20],
        [200, 10],
      ]);
      expect(session.spent()).toEqual({ calls: 2, tokens: 330, costUsd: 0.00429, unpriced: 0 });
      expect(failures).toEqual([]);
      await session.close();
    },
  );

  test("passes reasoning through", async () => {
    const { session } = openRun(provider, "think");
    const result = streamText({ model: make(session, "think"), prompt: "Think." });
    expect([await result.reasoningText, await result.text]).toEqual(
      name === "openai chat" ? [undefined as never, "I thought."] : ["Let me think.", "I thought."],
    );
    await session.close();
  });

  test("rejects another model without calling the provider", async () => {
    const { session, events } = openRun(provider, "text");
    const before = fake.requests.length;
    const failed = generateText({ model: make(session, "think"), prompt: "Hi.", maxRetries: 0 });
    await expect(failed).rejects.toThrow("this run may only call the model text");
    expect([fake.requests.length, events]).toEqual([before, []]);
    await session.close();
  });

  test("sends the real key to the provider, and never to the client", async () => {
    const { session, events } = openRun(provider, "text");
    await generateText({ model: make(session, "text"), prompt: "Hi." });
    const sent = JSON.stringify(fake.requests.at(-1)?.headers);
    expect([sent.includes(key), sent.includes(session.token)]).toEqual([true, false]);
    expect(JSON.stringify([session, events])).not.toContain(key);
    await session.close();
  });

  test("reads an abandoned response to its end, and counts it", async () => {
    const { session, usage } = openRun(provider, "held");
    const leaving = new AbortController();
    const result = streamText({ model: make(session, "held"), prompt: "Hi.", abortSignal: leaving.signal });
    for await (const part of result.stream) if (part.type === "text-delta") leaving.abort();
    // Meanwhile it has time to notice that the client is gone.
    const other = openRun("openai", "text");
    for (let i = 0; i < 20; i++) await (await ask(other.session, "text")).text();
    fake.release("held");
    await session.close();
    expect(usage()).toMatchObject([{ inputTokens: 100, outputTokens: 20, costUsd: 0.00264 }]);
  });

  test.each([
    ["the operator's", null],
    ["an organization's", [{ host: "127.0.0.1", port: null }]],
  ])("passes on a cut stream of %s server as an error, and its cost is unknown", async (_, allow) => {
    const { session, events, usage } = openRun(provider, "half", { allow });
    const result = streamText({ model: make(session, "half"), prompt: "Hi.", maxRetries: 0 });
    let text = "";
    const reading = (async () => {
      for await (const part of result.stream) if (part.type === "text-delta") text += part.text;
    })();
    await expect(reading).rejects.toThrow();
    expect("This will be cut.").toStartWith(text);
    await session.close();
    expect(usage()).toMatchObject([{ costUsd: null }]);
    expect(events).toContainEqual({
      type: "message",
      text: "The response of half did not report its token usage, so the cost of this call is unknown.",
    });
    expect(events).toContainEqual(expect.objectContaining({ type: "error", where: "model", retryable: true }));
    expect(session.spent().unpriced).toBe(1);
  });

  test("doesn't take a stream without its end for complete", async () => {
    const { session, events, usage } = openRun(provider, "endless");
    const result = streamText({ model: make(session, "endless"), prompt: "Hi.", maxRetries: 0, onError() {} });
    await result.consumeStream();
    await session.close();
    expect(usage()).toMatchObject([{ costUsd: null }]);
    expect(events).toContainEqual({
      type: "error",
      where: "model",
      message: `${provider} sent an incomplete response: the response ended early`,
      url: null,
      retryable: true,
    });
  });

  test("ends the run immediately for a rejected key, with the cause and without the key", async () => {
    for (const status of [401, 403]) {
      const scenario = status === 401 ? "unauthorized" : "forbidden";
      const { session, failures, usage } = openRun(provider, scenario);
      const model = make(session, scenario);
      await expect(generateText({ model, prompt: "Hi." })).rejects.toThrow();
      expect(failures).toMatchObject([{ failure: { cause: "credentials" }, options: { retryable: false } }]);
      expect(failures[0]?.detail).toStartWith(`${provider} rejected the API key (${status}): `);
      await expect(generateText({ model, prompt: "Hi." })).rejects.toThrow(/the run has ended/);
      expect([failures.length, usage()]).toEqual([1, []]);
      await session.close();
    }
  });

  test("ends the run after five failures in a row, with the provider's Retry-After", async () => {
    const { session, failures, events, usage } = openRun(provider, "limited");
    const model = make(session, "limited");
    for (let i = 0; i < 5; i++) {
      expect(failures).toEqual([]);
      await expect(generateText({ model, prompt: "Hi.", maxRetries: 0 })).rejects.toMatchObject({
        statusCode: 429,
        responseHeaders: { "retry-after": "7" },
      });
    }
    expect(failures).toMatchObject([
      { failure: { cause: "infrastructure" }, options: { retryable: true, retryAfterMs: 7000 } },
    ]);
    expect(failures[0]?.detail).toBe(`${provider} returned 429: slow down (5 failures in a row)`);
    expect(events.filter(({ type }) => type === "error").length).toBe(5);
    expect(usage()).toEqual([]);
    await session.close();
  });
});

describe("a failure of the provider", () => {
  test("is forgotten after a success", async () => {
    const { session, failures, usage } = openRun("openai", "recovers");
    const statuses: number[] = [];
    for (let i = 0; i < 9; i++) {
      const answer = await ask(session, "recovers");
      await answer.text();
      statuses.push(answer.status);
    }
    expect([statuses, failures, usage().length]).toEqual([[500, 529, 500, 529, 200, 500, 529, 500, 529], [], 1]);
    await session.close();
  });

  test("such as garbage, silence or a closed port is passed on, and five of them end the run", async () => {
    for (const [scenario, status, words] of [
      [
        "garbage",
        200,
        `openai sent an incomplete response: the response is not from a model API; check the base URL ${fake.baseUrls.openai}`,
      ],
      ["silent", 502, "openai sent an incomplete response: no data for 0.2 seconds"],
      ["broken", 500, "openai returned 500: something broke"],
    ] as const) {
      const strict = createGateway({ now, silenceMs: scenario === "silent" ? 200 : 60_000 });
      const { session, failures } = openRun("openai", scenario, { of: strict });
      const answers = await Promise.all(Array.from({ length: 5 }, () => ask(session, scenario)));
      await Promise.all(answers.map((answer) => answer.text()));
      expect(answers.map((answer) => answer.status)).toEqual(Array(5).fill(status));
      await session.close();
      await strict.close();
      expect(failures.map(({ message }) => message)).toEqual([`infrastructure: ${words} (5 failures in a row)`]);
    }
    const { session, failures } = openRun("openai", "text", { of: createGatewayTo("http://127.0.0.1:1") });
    for (let i = 0; i < 5; i++) expect((await ask(session, "text")).status).toBe(502);
    expect(failures[0]?.detail).toContain("openai did not respond: ");
    await session.close();
  });

  test("and no property of JavaScript objects is a file", async () => {
    const session = gateway.openSession({
      model: {
        ...{ id: "openai/text", provider: "openai", name: "text", baseUrl: fake.baseUrls.openai, key, prices: {} },
        allow: null,
      },
      limits: { calls: 100, tokens: 1_000_000, costUsd: null },
      onEvent: () => {},
      onFailure: () => {},
      files: { archive: new Uint8Array([1, 2]) },
    });
    const headers = { authorization: `Bearer ${session.token}` };
    const statusOf = async (name: string) =>
      (await fetch(`http://gateway/files/${name}`, { unix: session.socketPath, headers })).status;
    expect(await statusOf("archive")).toBe(200);
    for (const name of ["constructor", "__proto__", "toString", "other"]) expect(await statusOf(name)).toBe(404);
    await session.close();
  });

  test("is passed on without the key that it repeats", async () => {
    const { session, events, failures } = openRun("openai", "text", {
      of: createGatewayTo(fake.baseUrls.openai, "sk-a-wrong-key-99999999"),
    });
    const text = await (await ask(session, "text")).text();
    expect(text).toContain("the key [redacted] is not known");
    expect(text + JSON.stringify(events) + failures[0]?.message).not.toContain("wrong-key");
    await session.close();
  });

  test("can have a date as Retry-After", async () => {
    const { session, failures } = openRun("openai", "dated");
    for (let i = 0; i < 5; i++) await ask(session, "dated");
    expect(failures).toMatchObject([{ failure: { cause: "infrastructure" }, options: { retryAfterMs: 9000 } }]);
    await session.close();
  });

  test("for an unknown key is a 400 from Google", async () => {
    const { session, failures } = openRun("google", "badkey");
    const answer = await call(session, "/google/v1beta/models/badkey:generateContent", { contents: [] });
    expect([answer.status, failures.map(({ failure }) => failure.cause)]).toEqual([400, ["credentials"]]);
    const other = openRun("openai", "badkey");
    await ask(other.session, "badkey");
    expect(other.failures).toEqual([]);
    await Promise.all([session.close(), other.session.close()]);
  });

  test("that is a redirect is not followed, so the key goes nowhere else", async () => {
    const elsewhere = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => Response.redirect(`${fake.baseUrls.openai}/chat/completions`, 307),
    });
    const { session, events } = openRun("openai", "text", { of: createGatewayTo(elsewhere.url.href) });
    const before = fake.requests.length;
    expect((await ask(session, "text")).status).toBe(502);
    expect([fake.requests.length, events.map(({ type }) => type)]).toEqual([before, ["error"]]);
    await session.close();
    elsewhere.stop(true);
  });

  test("that rejects the request is the agent's problem", async () => {
    const { session, events, failures } = openRun("openai", "unread");
    expect((await ask(session, "unread")).status).toBe(400);
    expect([events, failures]).toEqual([[], []]);
    await session.close();
  });
});

/** The gateway of these tests, except for the model's URL and key. */
function createGatewayTo(baseUrl: string, otherKey = key, by = gateway): typeof gateway {
  return {
    ...by,
    openSession: (options) => by.openSession({ ...options, model: { ...options.model, baseUrl, key: otherKey } }),
  };
}

describe("a budget", () => {
  test.each([
    [
      "calls",
      { calls: 5 },
      5,
      "the run has used its model budget of 5 calls",
      { limit: "model_calls", value: 5, unit: "calls" },
      4,
    ],
    [
      "tokens",
      { tokens: 360 },
      3,
      "the run has used its model budget of 360 tokens",
      { limit: "model_tokens", value: 360, unit: "tokens" },
      3,
    ],
    [
      "costUsd",
      { costUsd: 0.006 },
      3,
      "the run has used its model budget of $0.006",
      { limit: "model_cost", value: 0.006, unit: "USD" },
      2,
    ],
  ] as const)(
    "of %s warns at 80 %, and rejects calls beyond it",
    async (_, limits, allowed, words, limit, callsBeforeWarning) => {
      const { session, events } = openRun("openai", "text", { limits });
      const isWarned = () => events.some(({ type }) => type === "limit");
      const warnedAfter: boolean[] = [];
      for (let i = 0; i < allowed; i++) {
        await (await ask(session, "text")).text();
        warnedAfter.push(isWarned());
      }
      expect(warnedAfter.indexOf(true) + 1).toBe(callsBeforeWarning);
      for (let i = 0; i < 2; i++) {
        const refused = await ask(session, "text");
        expect([refused.status, ((await refused.json()) as { error: { message: string } }).error.message]).toEqual([
          402,
          words,
        ]);
      }
      expect(events.filter(({ type }) => type === "limit")).toEqual([
        { type: "limit", ...limit, near: true },
        { type: "limit", ...limit },
      ]);
      expect(session.spent().calls).toBe(allowed);
      await session.close();
    },
  );

  test.each(names)("of money limits the output of %s, so no call generates more than is left", async (name) => {
    const { provider, make } = paths[name];
    const usual = provider === "anthropic" ? 4096 : undefined;
    for (const [costUsd, maxOutputTokens, sent] of [
      [null, undefined, usual],
      [1, undefined, usual ?? 10_000],
      [1, 50_000, 10_000],
      [1, 500, 500],
      [0.25, undefined, 2500],
      [0.000001, undefined, 1000],
    ] as const) {
      const { session } = openRun(provider, "text", { limits: { costUsd } });
      await generateText({ model: make(session, "text"), prompt: "Hi", maxOutputTokens, maxRetries: 0 });
      await session.close();
      const { generationConfig, ...body } = (fake.requests.at(-1)?.body ?? {}) as Record<
        string,
        Record<string, number>
      >;
      const fields = Object.entries({ ...body, ...generationConfig });
      const limits = fields.flatMap(([field, value]) => (/^max.*tokens$/i.test(field) ? [value] : []));
      expect([name, costUsd, ...limits]).toEqual([name, costUsd, ...(sent === undefined ? [] : [sent])]);
    }
  });

  test("for a model without a price has an unknown cost, never 0, and the run gets one notice", async () => {
    const { session, events, usage } = openRun("openai", "text", { priced: false, limits: { costUsd: 0.001 } });
    for (let i = 0; i < 3; i++) expect((await ask(session, "text")).status).toBe(200);
    expect(usage().map(({ costUsd }) => costUsd)).toEqual([null, null, null]);
    expect(events.filter(({ type }) => type === "message")).toEqual([
      {
        type: "message",
        text: "The price of text is unknown, so its budget of $0.001 cannot be enforced. Tokens are limited to 1000000. Set prices in EVALD_MODEL_PRICES.",
      },
    ]);
    expect(session.spent()).toEqual({ calls: 3, tokens: 360, costUsd: 0, unpriced: 3 });
    await session.close();
  });

  test("for a response without usage has an unknown cost", async () => {
    const { session, events, usage, failures } = openRun("openai-compatible", "uncounted");
    const answer = await call(session, "/openai-compatible/v1/chat/completions", { model: "uncounted", messages: [] });
    await answer.text();
    expect(usage()).toMatchObject([{ inputTokens: 0, outputTokens: 0, costUsd: null }]);
    expect(events.filter(({ type }) => type === "error")).toEqual([]);
    expect(failures).toEqual([]);
    await session.close();
  });
});

describe("the price of a call", () => {
  // Opus costs $5 in, $0.50 from the cache, $6.25 into it, $25 out; Flash 0.3, 0.03, 2.5; Mini 0.4, 0.1, 1.6.
  test.each([
    ["anthropic", "opus", 600 * 5 + 400 * 0.5 + 100 * 25],
    ["anthropic", "written", 400 * 5 + 400 * 0.5 + 200 * 6.25 + 100 * 25],
    ["google", "flash", 600 * 0.3 + 400 * 0.03 + 100 * 2.5],
    ["openai chat", "mini", 600 * 0.4 + 400 * 0.1 + 100 * 1.6],
    ["openai responses", "mini", 600 * 0.4 + 400 * 0.1 + 100 * 1.6],
    ["openai-compatible", "mini", null],
  ] as const)("to %s, %s is set by the model that answered", async (name, scenario, microUsd) => {
    const { provider, make } = paths[name];
    const { session, usage } = openRun(provider, scenario, { priced: false });
    await streamText({ model: make(session, scenario), prompt: "Hi." }).consumeStream();
    const costUsd = usage()[0]?.costUsd;
    if (microUsd === null) expect(costUsd).toBeNull();
    else expect(costUsd).toBeCloseTo(microUsd / 1e6, 12);
    await session.close();
  });
});

describe("the gateway", () => {
  test("requires the token of an active run", async () => {
    const { session } = openRun("openai", "text");
    const other = openRun("openai", "think");
    const closed = openRun("openai", "text");
    await closed.session.close();
    const before = fake.requests.length;
    const [id = "", secret = ""] = session.token.split(".");
    for (const token of [
      "",
      "x",
      id,
      `${id}.`,
      `${id}.${"x".repeat(secret.length)}`,
      `.${secret}`,
      key,
      closed.session.token,
    ]) {
      expect([token, (await ask(session, "text", {}, { authorization: `Bearer ${token}` })).status]).toEqual([
        token,
        401,
      ]);
    }
    expect((await ask(session, "text", {}, { authorization: `Bearer ${other.session.token}` })).status).toBe(403);
    expect(fake.requests.length).toBe(before);
    await Promise.all([session.close(), other.session.close()]);
  });

  test.each([
    [
      "openai",
      [
        "/openai/v1/files",
        "/openai/v1/models",
        "/openai/v1/fine_tuning/jobs",
        "/openai/v1/responses/resp_1",
        "/openai/v1/chat/completions/x",
        "/openai/v1/embeddings",
        "/openai/v1/organization/usage",
        "/openai/chat/completions",
        "/anthropic/v1/messages",
        "/",
        "/openai/v1/../v1/files",
        "/openai/v1/%63hat/completions",
      ],
    ],
    [
      "anthropic",
      [
        "/anthropic/v1/messages/batches",
        "/anthropic/v1/files",
        "/anthropic/v1/organizations",
        "/openai/v1/chat/completions",
      ],
    ],
    [
      "google",
      [
        "/google/v1beta/models",
        "/google/v1beta/files",
        "/google/v1beta/models/text:countTokens",
        "/google/v1beta/tunedModels/text:generateContent",
        "/google/v1beta/models/x/y:generateContent",
      ],
    ],
    [
      "openai-compatible",
      ["/openai-compatible/v1/responses", "/openai-compatible/v1/completions", "/openai-compatible/v1/models"],
    ],
  ] as const)("returns 404 for anything but a model call: %s", async (provider, addresses) => {
    const { session } = openRun(provider, "text");
    const before = fake.requests.length;
    for (const path of addresses)
      expect([path, (await call(session, path, { model: "text" })).status]).toEqual([path, 404]);
    const read = await fetch(`http://gateway/${provider}/v1/messages`, {
      unix: session.socketPath,
      headers: { "x-api-key": session.token },
    });
    expect([read.status, fake.requests.length]).toEqual([404, before]);
    await session.close();
  });

  test.each([
    ["openai", "/openai/v1/chat/completions", { web_search_options: {} }, "web_search_options"],
    ["openai", "/openai/v1/responses", { tools: [{ type: "mcp", server_url: "https://example.com" }] }, "mcp"],
    ["openai", "/openai/v1/responses", { tools: [{ type: "function" }, { type: "web_search" }] }, "web_search"],
    [
      "openai",
      "/openai/v1/responses",
      { tools: [{ type: "namespace", name: "web", tools: [{ type: "function" }, { type: "web_search" }] }] },
      "namespace",
    ],
    ["openai", "/openai/v1/responses", { tools: [{ type: "tool_search" }] }, "tool_search"],
    ["openai", "/openai/v1/responses", { tools: [{ type: "", web_search: {} }] }, "web_search"],
    ["openai", "/openai/v1/chat/completions", { tools: [{}] }, "a tool without a type"],
    [
      "openai",
      "/openai/v1/responses",
      { input: [{ type: "additional_tools", tools: [{ type: "function" }, { type: "code_interpreter" }] }] },
      "code_interpreter",
    ],
    [
      "anthropic",
      "/anthropic/v1/messages",
      { tools: [{ name: "a" }, { type: "web_fetch_20250910" }] },
      "web_fetch_20250910",
    ],
    ["anthropic", "/anthropic/v1/messages", { mcp_servers: [{ url: "https://example.com" }] }, "mcp_servers"],
    ["google", "/google/v1beta/models/text:generateContent", { tools: [{ googleSearch: {} }] }, "googleSearch"],
    [
      "google",
      "/google/v1beta/models/text:generateContent",
      { tools: [[{ googleSearch: {} }]] },
      "a list in place of a tool",
    ],
    ["openai-compatible", "/openai-compatible/v1/chat/completions", { plugins: [{ id: "web" }] }, "plugins"],
  ] as const)("rejects provider-side web tools: %s %s", async (provider, path, more, what) => {
    const { session } = openRun(provider, "text");
    const before = fake.requests.length;
    const refused = await call(session, path, { model: "text", messages: [], ...more });
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      { error: { message: `tools that run at the provider are not allowed: ${what}` } },
    ]);
    expect(fake.requests.length).toBe(before);
    await session.close();
  });

  test("accepts client-side tools in a namespace, searched for or added later", async () => {
    const { session } = openRun("openai", "text");
    const own = { type: "function", name: "shell" };
    const answer = await call(session, "/openai/v1/responses", {
      model: "text",
      tools: [
        { type: "namespace", name: "functions", tools: [own, { type: "custom", name: "exec" }] },
        { type: "tool_search", execution: "client" },
      ],
      input: [{ type: "additional_tools", tools: [{ type: "namespace", name: "more", tools: [own] }] }],
    });
    expect(answer.status).toBe(200);
    await answer.text();
    await session.close();
  });

  test("accepts only limited bodies that are JSON objects", async () => {
    const small = createGateway({ now, maxBodyBytes: 1000 });
    const { session } = openRun("openai", "text", { of: small });
    expect((await ask(session, "text", { padding: "x".repeat(1000) })).status).toBe(413);
    let sent = 0;
    const stream = new ReadableStream({
      pull(controller) {
        if (sent++ < 10) controller.enqueue(new Uint8Array(400).fill(32));
        else controller.close();
      },
    });
    const unannounced = await fetch("http://gateway/openai/v1/chat/completions", {
      unix: session.socketPath,
      method: "POST",
      headers: { authorization: `Bearer ${session.token}` },
      body: stream,
    });
    expect(unannounced.status).toBe(413);
    for (const body of ["", "[]", "null", "{", '"text"'])
      expect([body, (await call(session, "/openai/v1/chat/completions", body)).status]).toEqual([body, 400]);
    await session.close();
    await small.close();
  });

  test("sends the provider the model that it checked, however the request is written", async () => {
    const { session } = openRun("openai", "text");
    const twice = '{"model": "think", "messages": [], "model": "text"}';
    expect((await call(session, "/openai/v1/chat/completions", twice)).status).toBe(200);
    expect(fake.requests.at(-1)?.body).toEqual({ model: "text", messages: [] });
    await session.close();
  });

  test("has a socket that only this user can access", () => {
    const { session } = openRun("openai", "text");
    expect(statSync(dirname(session.socketPath)).mode & 0o777).toBe(0o700);
    expect(session.socketPath.length).toBeLessThan(108);
  });
});

test("a stream is passed on as it arrives, and made to report its usage", async () => {
  const { session, usage } = openRun("openai", "held");
  const answer = await ask(session, "held", { stream: true, stream_options: { include_obfuscation: false } });
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  // The rest is sent after this has arrived: a gateway that waits for more would wait forever.
  while (!text.includes("First half")) text += decoder.decode((await reader?.read())?.value);
  expect(text).not.toContain("[DONE]");
  fake.release("held");
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read())
    text += decoder.decode(part.value);
  expect(text).toEndWith("data: [DONE]\n\n");
  expect(fake.requests.at(-1)?.body).toMatchObject({
    stream_options: { include_obfuscation: false, include_usage: true },
  });
  expect(usage()).toMatchObject([{ inputTokens: 100, outputTokens: 20 }]);
  await session.close();
});

test("an abandoned response is dropped after a while, and its cost is unknown", async () => {
  const { session, events, failures, usage } = openRun("openai", "held");
  const own = serveFakeModel({ key });
  const held = openRun("openai", "held", { of: createGatewayTo(own.baseUrls.openai, key, impatient) });
  const leaving = new AbortController();
  const answer = await fetch("http://gateway/openai/v1/chat/completions", {
    unix: held.session.socketPath,
    method: "POST",
    headers: { authorization: `Bearer ${held.session.token}` },
    body: JSON.stringify({ model: "held", stream: true, messages: [] }),
    signal: leaving.signal,
  });
  await answer.body?.getReader().read();
  leaving.abort();
  await own.left;
  await held.session.close();
  expect(held.usage()).toMatchObject([{ model: "held", costUsd: null }]);
  expect(held.events.filter(({ type }) => type === "error")).toEqual([]);
  own.stop();
  expect([events, failures, usage()]).toEqual([[], [], []]);
  await session.close();
});

test("a call abandoned before its response has unknown cost, and counts as no failure", async () => {
  const { session, events, usage } = openRun("openai", "silent", { of: impatient });
  const before = fake.requests.length;
  const asking = ask(session, "silent");
  asking.catch(() => {});
  await until("the model is asked", () => fake.requests.length > before);
  await session.close();
  expect(usage()).toMatchObject([{ model: "silent", costUsd: null }]);
  expect(events.filter(({ type }) => type === "error")).toEqual([]);
});

test("closing a run aborts its active calls", async () => {
  const { session, usage } = openRun("openai", "held", { of: impatient });
  const answer = await ask(session, "held", { stream: true });
  const reading = answer.text();
  reading.catch(() => {});
  await session.close();
  await expect(reading).rejects.toThrow();
  expect(usage()).toMatchObject([{ costUsd: null }]);
});

test("each of fifty streams of fifty concurrent runs is complete and counted for its own run", async () => {
  const runs = Array.from({ length: 50 }, (_, i) => {
    const name = names[i % names.length] as keyof typeof paths;
    return { ...openRun(paths[name].provider, "slow"), make: paths[name].make };
  });
  const texts = await Promise.all(
    runs.map(({ session, make }) => streamText({ model: make(session, "slow"), prompt: "Hi." }).text),
  );
  expect(texts).toEqual(Array(50).fill("Slowly."));
  for (const { usage, session } of runs) {
    expect(usage()).toMatchObject([{ inputTokens: 100, outputTokens: 20, costUsd: 0.00264 }]);
    await session.close();
  }
});

test("a run makes up to sixteen concurrent calls", async () => {
  const { session } = openRun("openai", "held", { limits: { tokens: 10_000_000 } });
  const calls = Array.from({ length: 17 }, () => ask(session, "held", { stream: true }));
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 429).length).toBe(1);
  fake.release("held");
  await session.close();
});

test("calls wait for their turns, at most sixteen of them go on, and none after the end of the run", async () => {
  const turns: (() => void)[] = [];
  const waitForTurn = () => new Promise<void>((resolve) => turns.push(resolve));
  const takeTurns = async (count: number) => {
    await until(`${count} calls wait`, () => turns.length === count);
    for (const go of turns.splice(0)) go();
  };
  const { session } = openRun("openai", "held", { limits: { tokens: 10_000_000 }, waitForTurn });
  const asked = fake.requests.length;
  const calls = Array.from({ length: 17 }, () => ask(session, "held", { stream: true }));
  await takeTurns(17);
  await until("all of them are read", () => turns.length === 17);
  expect(fake.requests.length).toBe(asked);
  await takeTurns(17);
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 429).length).toBe(1);
  expect(fake.requests.length).toBe(asked + 16);

  const late = ask(session, "held");
  await takeTurns(1);
  await until("it is read", () => turns.length === 1);
  fake.release("held");
  await session.close();
  await takeTurns(1);
  expect((await late).status).toBe(401);
  expect(fake.requests.length).toBe(asked + 16);
});

test("the fake model serves every provider", () => {
  expect(Object.keys(fake.baseUrls).sort()).toEqual([...modelProviders].sort());
  expect(Object.keys(readConfig({}).modelEndpoints).sort()).toEqual([...modelProviders].sort());
});
