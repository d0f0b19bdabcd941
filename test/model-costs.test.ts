import { afterAll, describe, expect, test } from "bun:test";
import type { AgentEvent } from "../src/agents/agent.ts";
import { createGateway } from "../src/agents/gateway/gateway.ts";
import { type ModelProvider, parsePrices } from "../src/config/model-settings.ts";
import { randomOf } from "./support/random.ts";

type Usage = Extract<AgentEvent, { type: "usage" }>;
/** A response, and how it is sent: as one object, or as the events of a stream, which ends after them, or is cut once `cut` resolves. */
type Script = { events: object[]; isStream: boolean; cut?: PromiseWithResolvers<void> };

const scripts: Script[] = [];
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch() {
    const { events, isStream, cut } = scripts.shift() as Script;
    if (!isStream) return Response.json(events[0]);
    const blocks = blocksOf(events);
    const body = new ReadableStream({
      async pull(stream) {
        const block = blocks.shift();
        if (block !== undefined) stream.enqueue(new TextEncoder().encode(block));
        else if (cut) {
          await cut.promise;
          stream.error(undefined);
        } else stream.close();
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  },
});
const blocksOf = (events: object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`);
const gateway = createGateway({ now: Date.now });
afterAll(async () => {
  await gateway.close();
  await server.stop(true);
});

const paths: Record<Wire, { provider: ModelProvider; path: (model: string) => string }> = {
  chat: { provider: "openai", path: () => "/openai/v1/chat/completions" },
  compatible: { provider: "openai-compatible", path: () => "/openai-compatible/v1/chat/completions" },
  responses: { provider: "openai", path: () => "/openai/v1/responses" },
  messages: { provider: "anthropic", path: () => "/anthropic/v1/messages" },
  gemini: { provider: "google", path: (model) => `/google/v1beta/models/${model}:generateContent` },
};
type Wire = "chat" | "compatible" | "responses" | "messages" | "gemini";

/** Makes one call to a model that answers by a script; returns its usage event and what the run has spent. */
async function callModel(wire: Wire, name: string, prices: object, script: Script) {
  const { provider, path } = paths[wire];
  const id = `${provider}/${name}`;
  const events: AgentEvent[] = [];
  scripts.push(script);
  const session = gateway.openSession({
    model: {
      id,
      provider,
      name,
      baseUrl: `http://127.0.0.1:${server.port}/v1`,
      key: "a-test-key",
      prices: parsePrices(JSON.stringify(Object.keys(prices).length > 0 ? { [id]: prices } : {})),
      allow: null,
    },
    limits: { calls: 10, tokens: 1e9, costUsd: null },
    onEvent: (event) => events.push(event),
    onFailure() {},
  });
  const response = await fetch(`http://gateway${path(name)}`, {
    unix: session.socketPath,
    method: "POST",
    headers: { authorization: `Bearer ${session.token}` },
    body: JSON.stringify({ model: name, messages: [], stream: script.isStream }),
  });
  const reader = response.body?.getReader();
  let bytes = 0;
  try {
    for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) {
      bytes += chunk.value.length;
      // What the client has read, the gateway has counted.
      if (bytes >= blocksOf(script.events).join("").length) script.cut?.resolve();
    }
  } catch {
    // It was cut.
  }
  await session.close();
  const usage = events.find((event) => event.type === "usage") as Usage;
  return { usage, spent: session.spent() };
}

/** What a call used, by hand: input that is neither read from nor written to the cache, both of those, and output. */
type Parts = { fresh: number; read: number; written: number; writtenHour: number; output: number; reasoning: number };

const ended = { finish_reason: "stop" };

/** The response of each kind of server that reports these parts. */
const dialects: Record<string, { wire: Wire; keeps?: Partial<Parts>; script: (parts: Parts) => Script }> = {
  OpenAI: {
    wire: "chat",
    keeps: { written: 0, writtenHour: 0 },
    script: ({ fresh, read, output, reasoning }) =>
      whole({
        choices: [ended],
        usage: {
          prompt_tokens: fresh + read,
          completion_tokens: output,
          total_tokens: fresh + read + output,
          prompt_tokens_details: { cached_tokens: read },
          completion_tokens_details: { reasoning_tokens: reasoning },
        },
      }),
  },
  "OpenAI, streamed": {
    wire: "chat",
    keeps: { written: 0, writtenHour: 0 },
    script: ({ fresh, read, output }) =>
      streamed(
        { choices: [{ delta: { content: "Yes." } }], usage: null },
        { choices: [{ delta: {}, ...ended }], usage: null },
        {
          choices: [],
          usage: {
            prompt_tokens: fresh + read,
            completion_tokens: output,
            prompt_tokens_details: { cached_tokens: read },
          },
        },
      ),
  },
  "the Responses API": {
    wire: "responses",
    keeps: { written: 0, writtenHour: 0 },
    script: ({ fresh, read, output, reasoning }) =>
      streamed({
        type: "response.completed",
        response: {
          status: "completed",
          usage: {
            input_tokens: fresh + read,
            output_tokens: output,
            input_tokens_details: { cached_tokens: read },
            output_tokens_details: { reasoning_tokens: reasoning },
          },
        },
      }),
  },
  Anthropic: {
    wire: "messages",
    script: ({ fresh, read, written, writtenHour, output }) =>
      whole({
        type: "message",
        stop_reason: "end_turn",
        usage: {
          input_tokens: fresh,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: written + writtenHour,
          cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: writtenHour },
          output_tokens: output,
        },
      }),
  },
  "Anthropic, streamed": {
    wire: "messages",
    script: ({ fresh, read, written, writtenHour, output }) =>
      streamed(
        {
          type: "message_start",
          message: {
            usage: {
              input_tokens: fresh,
              cache_read_input_tokens: read,
              cache_creation_input_tokens: written + writtenHour,
              cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: writtenHour },
              output_tokens: 1,
            },
          },
        },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: output } },
      ),
  },
  Gemini: {
    wire: "gemini",
    keeps: { written: 0, writtenHour: 0 },
    script: ({ fresh, read, output, reasoning }) =>
      whole({
        candidates: [{ finishReason: "STOP" }],
        usageMetadata: {
          promptTokenCount: fresh + read,
          cachedContentTokenCount: read,
          candidatesTokenCount: output - reasoning,
          thoughtsTokenCount: reasoning,
        },
      }),
  },
  DeepSeek: {
    wire: "compatible",
    keeps: { written: 0, writtenHour: 0 },
    script: ({ fresh, read, output }) =>
      whole({
        choices: [ended],
        usage: {
          prompt_tokens: fresh + read,
          prompt_cache_hit_tokens: read,
          prompt_cache_miss_tokens: fresh,
          completion_tokens: output,
          total_tokens: fresh + read + output,
        },
      }),
  },
  Moonshot: {
    wire: "compatible",
    keeps: { written: 0, writtenHour: 0 },
    script: ({ fresh, read, output }) =>
      streamed({
        choices: [
          {
            delta: {},
            ...ended,
            usage: { prompt_tokens: fresh + read, cached_tokens: read, completion_tokens: output },
          },
        ],
      }),
  },
  OpenRouter: {
    wire: "compatible",
    keeps: { writtenHour: 0 },
    script: ({ fresh, read, written, output }) =>
      whole({
        choices: [ended],
        usage: {
          prompt_tokens: fresh + read + written,
          completion_tokens: output,
          prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
        },
      }),
  },
  xAI: {
    wire: "compatible",
    keeps: { written: 0, writtenHour: 0 },
    script: ({ fresh, read, output, reasoning }) =>
      whole({
        choices: [ended],
        usage: {
          prompt_tokens: fresh + read,
          completion_tokens: output - reasoning,
          total_tokens: fresh + read + output,
          prompt_tokens_details: { cached_tokens: read },
          completion_tokens_details: { reasoning_tokens: reasoning },
        },
      }),
  },
  "a server that reports its cache apart from the input": {
    wire: "compatible",
    keeps: { written: 0, writtenHour: 0 },
    script: ({ fresh, read, output }) => {
      // More from the cache than input can mean nothing else.
      const [input, cached] = read > fresh ? [fresh, read] : [fresh + read, read];
      return whole({
        choices: [ended],
        usage: {
          prompt_tokens: input,
          completion_tokens: output,
          prompt_tokens_details: { cached_tokens: cached },
        },
      });
    },
  },
};

const whole = (event: object): Script => ({ events: [event], isStream: false });
const streamed = (...events: object[]): Script => ({ events, isStream: true });

/** Prices in USD per million tokens. Listed ones as of the providers' pages; Opus is for an hour $10. */
const listed: Partial<Record<Wire, { name: string } & Price>> = {
  messages: { name: "claude-opus-4-8", in: 5, cached: 0.5, cacheWritten: 6.25, cacheWrittenForHour: 10, out: 25 },
  gemini: { name: "gemini-2.5-flash", in: 0.3, cached: 0.03, cacheWritten: 0, cacheWrittenForHour: 0, out: 2.5 },
  chat: { name: "gpt-4.1-mini", in: 0.4, cached: 0.1, cacheWritten: 0, cacheWrittenForHour: 0, out: 1.6 },
  responses: { name: "gpt-4.1-mini", in: 0.4, cached: 0.1, cacheWritten: 0, cacheWrittenForHour: 0, out: 1.6 },
};
type Price = { in: number; cached: number; cacheWritten: number; cacheWrittenForHour: number; out: number };

/** The cost in USD, term by term. */
function countByHand({ fresh, read, written, writtenHour, output }: Parts, price: Price): number {
  let usd = 0;
  usd += (fresh / 1e6) * price.in;
  usd += (read / 1e6) * price.cached;
  usd += (written / 1e6) * price.cacheWritten;
  usd += (writtenHour / 1e6) * price.cacheWrittenForHour;
  usd += (output / 1e6) * price.out;
  return usd;
}

test("the cost of 200 random calls is that of a count by hand, and their events hold all that it needs", async () => {
  const random = randomOf(20_261_126);
  const upTo = (max: number) => Math.floor(random() * (max + 1));
  const names = Object.keys(dialects);
  const differences: string[] = [];
  for (let i = 0; i < 200; i++) {
    const dialect = names[i % names.length] ?? "";
    const { wire, keeps = {}, script } = dialects[dialect] as (typeof dialects)[string];
    const output = upTo(20_000);
    const parts = {
      ...{ fresh: upTo(100_000), read: upTo(100_000), written: upTo(50_000), writtenHour: upTo(50_000), output },
      reasoning: upTo(output),
      ...keeps,
    };
    const list = listed[wire];
    const configured: Price = {
      ...{ in: upTo(2_000) / 100, cached: upTo(2_000) / 100, out: upTo(10_000) / 100 },
      ...{ cacheWritten: upTo(3_000) / 100, cacheWrittenForHour: upTo(4_000) / 100 },
    };
    const isListed = list !== undefined && random() < 0.5;
    const { usage, spent } = await callModel(wire, list?.name ?? "m", isListed ? {} : configured, script(parts));
    const expected = countByHand(parts, isListed ? list : configured);
    const written = usage.cacheWrittenTokens ?? 0;
    const fromEvent = countByHand(
      {
        fresh: usage.inputTokens - (usage.cachedTokens ?? 0) - written,
        read: usage.cachedTokens ?? 0,
        written: written - (usage.cacheWrittenForHourTokens ?? 0),
        writtenHour: usage.cacheWrittenForHourTokens ?? 0,
        ...{ output: usage.outputTokens, reasoning: 0 },
      },
      isListed ? list : configured,
    );
    for (const usd of [usage.costUsd, spent.costUsd, fromEvent])
      if (usd === null || Math.abs(usd - expected) > 1e-9)
        differences.push(`${dialect} ${JSON.stringify({ parts, isListed, usd, expected })}`);
  }
  expect(differences).toEqual([]);
});

test("the cost of what a cache holds is never negative", async () => {
  const { usage } = await callModel(
    "compatible",
    "m",
    { in: 10, out: 100, cached: 1 },
    whole({
      choices: [ended],
      usage: { prompt_tokens: 100, completion_tokens: 50, prompt_tokens_details: { cached_tokens: 500 } },
    }),
  );
  expect(usage).toMatchObject({ inputTokens: 600, cachedTokens: 500, costUsd: 0.0065 });
});

test.each([
  ["messages", { in: 10, out: 100 }, 12.5, 20],
  ["messages", { in: 10, out: 100, cacheWritten: 11 }, 11, 17.6],
  ["compatible", { in: 10, out: 100 }, 10, 10],
  ["compatible", { in: 10, out: 100, cacheWritten: 11 }, 11, 11],
] as const)("the price of %s cache writes with %j follows the provider's", async (wire, prices, written, forHour) => {
  const script =
    wire === "messages"
      ? dialects.Anthropic?.script({ ...noParts, written: 1_000_000, writtenHour: 1_000_000 })
      : whole({
          choices: [ended],
          usage: { prompt_tokens: 2_000_000, completion_tokens: 0, cache_creation_input_tokens: 2_000_000 },
        });
  const { usage } = await callModel(wire, "m", prices, script as Script);
  expect(usage.costUsd).toBeCloseTo(written + forHour, 9);
});

const noParts: Parts = { fresh: 0, read: 0, written: 0, writtenHour: 0, output: 0, reasoning: 0 };

describe("a call without its full usage", () => {
  const prices = { in: 10, out: 100, cached: 1, cacheWritten: 20 };
  const start = {
    input_tokens: 1_000,
    cache_read_input_tokens: 2_000,
    cache_creation_input_tokens: 3_000,
    output_tokens: 1,
  };

  test("that was cut counts what its provider had reported, and the text that it had sent", async () => {
    const { usage, spent } = await callModel("messages", "m", prices, {
      isStream: true,
      cut: Promise.withResolvers<void>(),
      events: [
        { type: "message_start", message: { model: "m", usage: start } },
        { type: "content_block_delta", delta: { type: "text_delta", text: "x".repeat(4_000) } },
      ],
    });
    const inputUsd = (1_000 * 10 + 2_000 * 1 + 3_000 * 20) / 1e6;
    expect(usage).toMatchObject({ costUsd: null, inputTokens: 6_000, cacheWrittenTokens: 3_000 });
    expect(usage.estimate?.outputTokens).toBeWithin(1_000, 1_100);
    expect(usage.estimate?.costUsd).toBeCloseTo(inputUsd + ((usage.estimate?.outputTokens ?? 0) * 100) / 1e6, 9);
    expect(spent).toMatchObject({ tokens: 6_000 + (usage.estimate?.outputTokens ?? 0), unpriced: 1 });
    expect(spent.costUsd).toBeCloseTo(usage.estimate?.costUsd ?? 0, 12);
  });

  test("whose server reports none counts an estimate by its length", async () => {
    const answer = { model: "m", choices: [{ message: { content: "y".repeat(400) }, ...ended }] };
    const { usage, spent } = await callModel("compatible", "m", prices, whole(answer));
    expect(usage).toMatchObject({ costUsd: null, inputTokens: 0, outputTokens: 0 });
    expect(usage.estimate?.inputTokens).toBeWithin(5, 50);
    expect(usage.estimate?.outputTokens).toBeWithin(100, 110);
    expect(spent.tokens).toBe((usage.estimate?.inputTokens ?? 0) + (usage.estimate?.outputTokens ?? 0));
    expect(spent.costUsd).toBe(usage.estimate?.costUsd ?? 0);
  });

  test("without a known price counts its tokens only", async () => {
    const answer = { model: "m", choices: [{ message: { content: "y".repeat(400) }, ...ended }] };
    const { usage, spent } = await callModel("compatible", "m", {}, whole(answer));
    expect(usage.estimate?.costUsd).toBeNull();
    expect([spent.costUsd, spent.tokens > 100]).toEqual([0, true]);
  });
});
