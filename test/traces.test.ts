import { afterEach, describe, expect, test } from "bun:test";
// The types of the generated module are not published.
import * as generated from "@opentelemetry/otlp-transformer/build/src/generated/root";
import { type Logger, pino } from "pino";
import { AgentFailure } from "../src/agents/agent.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { requestEval } from "../src/runs/requests.ts";
import { type Metrics, respondToScrape } from "../src/telemetry/metrics.ts";
import { instantAgent, scriptedAgent, testApp } from "./support/app.ts";
import { modelSession, rows } from "./support/judged.ts";
import { countUnfinishedJobs } from "./support/queue.ts";
import { until } from "./support/until.ts";

type Message = {
  fromObject(message: object): object;
  verify(message: object): string | null;
  encode(message: object): { finish(): Uint8Array };
  decode(bytes: Uint8Array): object;
  toObject(message: object, options: object): object;
};
const { opentelemetry } = generated as unknown as {
  opentelemetry: { proto: { collector: { trace: { v1: { ExportTraceServiceRequest: Message } } } } };
};
const { ExportTraceServiceRequest } = opentelemetry.proto.collector.trace.v1;
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** A collector that responds with these statuses in turn, of which the last one repeats. `body` is the body of its responses. */
function collector(...statuses: number[]) {
  return answeringCollector("{}", ...statuses);
}

function answeringCollector(body: string, ...statuses: number[]) {
  const received: { headers: Headers; text: string }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      received.push({ headers: request.headers, text: await request.text() });
      const status = statuses.length > 1 ? statuses.shift() : (statuses[0] ?? 200);
      return new Response(body, { status, headers: { "content-type": "application/json" } });
    },
  });
  stops.push(() => server.stop(true));
  const first = async () => {
    await until("the trace arrives", () => received.length > 0);
    return received[0] as (typeof received)[number];
  };
  return { received, first, url: `http://127.0.0.1:${server.port}/v1/traces` };
}

type Env = Record<string, string>;

type Options = { env?: Env; agent?: typeof instantAgent; log?: Logger };

function tracedApp(url: string, { env = {}, agent = instantAgent, log }: Options = {}) {
  const app = testApp({ env: { EVALD_OTLP_URL: url, EVALD_METRICS_ADDRESS: "127.0.0.1:0", ...env }, agent, log });
  const metric = async (line: RegExp) => {
    const response = await respondToScrape(
      app.service.telemetry.metrics as Metrics,
      new Request("http://localhost/metrics"),
    );
    return Number(line.exec(await response.text())?.[1] ?? 0);
  };
  const { id } = createPrompt(app.service.ctx, app.a.org, { text: `Print ${rows}. https://docs.example.com/` });
  stops.push(() => app.service.stop(0));
  return {
    ...app,
    /** Runs the prompt; the service keeps running. */
    async run(times = 1): Promise<string[]> {
      await app.service.start();
      const runs = { urlMap: {}, trigger: "api", runs: times } as const;
      const { runIds } = await requestEval(app.service.ctx, app.a.org, id, runs);
      await until("the runs end", () => countUnfinishedJobs(app.service.ctx, "runs") === 0);
      return runIds;
    },
    counted: (result: "sent" | "dropped") =>
      metric(new RegExp(`^evald_otlp_traces_total\\{result="${result}"\\} (\\d+)$`, "m")),
    rejected: () => metric(/^evald_otlp_rejected_spans_total (\d+)$/m),
  };
}

/** Replaces hex IDs, as in OTLP, by base64, as in the JSON of other protobuf messages. */
const withBytes = (text: string) =>
  JSON.parse(text, (key, value) =>
    /^(trace|span|parentSpan)Id$/.test(key) ? Buffer.from(value, "hex").toString("base64") : value,
  );

/** Throws unless the message has only fields and types of the schema, so that all of it survives the binary encoding. */
function checkSchema(text: string): void {
  const message = withBytes(text);
  const parsed = ExportTraceServiceRequest.fromObject(message);
  expect(ExportTraceServiceRequest.verify(parsed)).toBeNull();
  const bytes = ExportTraceServiceRequest.encode(parsed).finish();
  const decoded = ExportTraceServiceRequest.decode(bytes);
  expect(ExportTraceServiceRequest.toObject(decoded, { longs: String, bytes: String, enums: Number })).toEqual(message);
}

const spansOf = (text: string) => JSON.parse(text).resourceSpans[0].scopeSpans[0].spans;
const valuesOf = ({ attributes }: { attributes: { key: string; value: object }[] }) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const usage = { type: "usage", model: "claude-test", inputTokens: 1200, outputTokens: 80, costUsd: 0.01 } as const;
const modelAgent = scriptedAgent(async function* () {
  yield* modelSession({ more: [usage] });
});

describe("a collector that accepts a trace", () => {
  test.each([
    ["rejects some of its spans", JSON.stringify({ partialSuccess: { rejectedSpans: "2", errorMessage: "x" } }), 4],
    ["sends the number of spans as a number", '{"partialSuccess": {"rejectedSpans": 1}}', 2],
    ["rejects no spans", '{"partialSuccess": {}}', 0],
    ["sends something other than JSON", "ok", 0],
    ["sends a wrong number", '{"partialSuccess": {"rejectedSpans": "-5"}}', 0],
    ["sends null", "null", 0],
    ["sends a large body", `{"partialSuccess": {"rejectedSpans": "2"}, "x": "${"x".repeat(1_000_000)}"}`, 0],
  ])("and %s doesn't get the trace again", async (_, body, rejected) => {
    const { received, url } = answeringCollector(body, 200);
    const warnings: unknown[] = [];
    const log = pino({ level: "warn" }, { write: (line) => warnings.push(JSON.parse(line)) });
    const app = tracedApp(url, { log });
    await app.run(2);
    await until("both traces are sent", async () => (await app.counted("sent")) === 2);
    expect(received.length).toBe(2);
    expect(await app.rejected()).toBe(rejected);
    expect(warnings.length).toBe(rejected > 0 ? 1 : 0);
  });
});

describe("a trace", () => {
  test("is a valid OTLP request with an agent, its model calls and its tools, without contents", async () => {
    const { first, url } = collector();
    const app = tracedApp(url, { agent: modelAgent, env: { EVALD_OTLP_HEADERS: "authorization=Bearer abc" } });
    const [runId = ""] = await app.run();
    const { text, headers } = await first();
    checkSchema(text);
    expect(headers.get("authorization")).toBe("Bearer abc");
    const [root, ...children] = spansOf(text);
    expect(root).toMatchObject({ name: "invoke_agent explorer", traceId: runId.replaceAll("-", ""), kind: 1 });
    expect(valuesOf(root)).toMatchObject({ "gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": runId });
    expect(root.events).toMatchObject([{ name: "gen_ai.evaluation.result" }]);
    expect(children.map(({ name }: { name: string }) => name)).toEqual([
      "execute_tool fetch_page",
      "execute_tool run_command",
      "execute_tool run_command",
      "execute_tool finish",
      "chat claude-test",
    ]);
    expect(children.every((span: typeof root) => span.parentSpanId === root.spanId)).toBe(true);
    expect(new Set(children.map(({ spanId }: typeof root) => spanId)).size).toBe(5);
    expect(valuesOf(children[1])).toMatchObject({ "gen_ai.tool.call.id": "t2", "error.type": "tool_error" });
    expect(children[1].status).toEqual({ code: 2 });
    expect(valuesOf(children[4])).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.usage.input_tokens": "1200",
      "gen_ai.usage.output_tokens": "80",
    });
    expect(text).not.toContain(rows);
  });

  test("has contents if the operator allows them", async () => {
    const { first, url } = collector();
    const app = tracedApp(url, { agent: modelAgent, env: { EVALD_OTLP_CONTENT: "1" } });
    await app.run();
    const { text } = await first();
    checkSchema(text);
    const [root, , command] = spansOf(text);
    expect(valuesOf(root)["gen_ai.input.messages"]).toContain(rows);
    expect(JSON.parse(valuesOf(command)["gen_ai.tool.call.arguments"])).toEqual({ command: "npm i acme" });
  });

  test("of a failed run has its cause", async () => {
    const { first, url } = collector();
    const agent = scriptedAgent(async function* () {
      yield { type: "thought", text: "trying", by: "rule" };
      throw new AgentFailure("model_key_refused", "the key was rejected");
    });
    await tracedApp(url, { agent }).run();
    const [root] = spansOf((await first()).text);
    expect(valuesOf(root)["error.type"]).toBe("credentials");
    expect(root.status).toEqual({ code: 2 });
    expect(root.events).toBeUndefined();
  });

  test("of a long session arrives in several requests", async () => {
    const { received, url } = collector();
    const agent = scriptedAgent(async function* () {
      for (let i = 0; i < 450; i++) yield usage;
      yield { type: "end", outcome: "not_judged", reason: "scripted" };
    });
    const app = tracedApp(url, { agent });
    await app.run();
    await until("the trace arrives", async () => (await app.counted("sent")) === 1);
    expect(received.map(({ text }) => spansOf(text).length)).toEqual([200, 200, 51]);
  });
});

describe("a collector", () => {
  test("that fails gets the same trace again", async () => {
    const { received, url } = collector(503, 200);
    const app = tracedApp(url);
    await app.run();
    await until("the trace arrives", async () => (await app.counted("sent")) === 1);
    expect(received.map(({ text }) => text)).toEqual([received[0]?.text ?? "", received[0]?.text ?? ""]);
  });

  test("that rejects a trace doesn't get it again", async () => {
    const { received, url } = collector(400);
    const app = tracedApp(url);
    await app.run(2);
    await until("both are dropped", async () => (await app.counted("dropped")) === 2);
    expect(received.length).toBe(2);
  });

  test("that is away delays nothing, and at most 1,000 runs wait", async () => {
    const app = tracedApp("http://127.0.0.1:9/v1/traces");
    const [runId = ""] = await app.run(3);
    expect((await app.send("GET", `/api/v1/runs/${runId}`)).body.status).toBe("completed");
    for (let i = 0; i < 1000; i++) app.service.ctx.signals.runsEnded.emit([runId]);
    expect(await app.counted("dropped")).toBe(3);
    await app.service.stop(0);
  });
});
