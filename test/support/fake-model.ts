// A model with scripted answers, over the protocols of real providers. `bun test/support/fake-model.ts
// [scenarios.json]` serves it alone and prints its URL to stderr; GET /requests then lists the requests, POST
// /release?model=… releases held answers.
import { contentType, readScriptedRequest, type ScriptedAnswer } from "../../src/agents/coding/model-formats.ts";
import { toCommandCall } from "../../src/agents/coding/scripted-model.ts";

/** One turn of a scripted model: its answer, and its failures. */
export type Turn = Partial<Omit<ScriptedAnswer, "toolCalls">> & {
  /** A `ref` in an input is the text before a reference in the last page that the model got, such as `button "Add"`. */
  toolCalls?: { name: string; input: Record<string, unknown>; custom?: string }[];
  /** A command that the model runs, with whatever tool the agent offers for that. */
  command?: string;
  /** Answers to the first requests for this turn, one each. */
  before?: Turn[];
  /** The model's text, computed from all texts in the request. */
  says?: (asked: string) => string;
  /** The turn that is taken instead, by all texts in the request and the number of tool results. */
  decides?: (asked: string, toolResults: number) => Turn;
  /** An error instead of an answer. */
  fail?: { status: number; message?: string; headers?: Record<string, string>; body?: string };
  /** `half`: the connection is cut in the middle. `end`: the stream ends in the middle as if it were complete. */
  cut?: "half" | "end";
  /** Sent in place of an answer, as HTML unless it has another type. */
  garbage?: string;
  garbageType?: string;
  /** Nothing is ever sent. */
  silent?: boolean;
  /** The first half is sent, the rest after its release. */
  hold?: boolean;
  /** Delay before each block of a stream. */
  paceMs?: number;
};

/** Turns in order: the next one comes once the tools of the previous ones have results. `first` answers the first calls instead, one each. */
type Scenario = {
  first?: Turn[];
  turns: Turn[];
  /** Answers to requests without tools, which agents send for titles and summaries. */
  side?: Turn;
  /** Longer requests are rejected, as by a model with a small context. */
  maxChars?: number;
};

const usage = { input: 100, cached: 40, output: 20, reasoning: 5 };
const turns = (...all: Turn[]): Scenario => ({ turns: all });
const fail = (status: number, message: string, headers = {}): Turn => ({ fail: { status, message, headers } });

/** By model name. */
const scenarios: Record<string, Scenario> = {
  text: turns({ text: "Hello from the model.", usage }),
  think: turns({ reasoning: "Let me think.", text: "I thought.", usage }),
  tool: turns(
    { reasoning: "I need the weather.", toolCalls: [{ name: "weather", input: { city: "Bern" } }], usage },
    { text: "It is sunny in Bern.", usage: { input: 200, cached: 150, output: 10 } },
  ),
  unauthorized: turns(fail(401, "invalid key")),
  forbidden: turns(fail(403, "this key may not use the model")),
  limited: turns(fail(429, "slow down", { "retry-after": "7" })),
  broken: turns(fail(500, "something broke")),
  recovers: { first: [fail(500, "once"), fail(529, "twice")], turns: [{ text: "At last.", usage }] },
  half: turns({ text: "This will be cut.", usage, cut: "half" }),
  endless: turns({ text: "This has no end.", usage, cut: "end" }),
  garbage: turns({ garbage: "<html>It works!</html>" }),
  silent: turns({ silent: true }),
  held: turns({ text: "First half, second half.", usage, hold: true }),
  slow: turns({ text: "Slowly.", usage, paceMs: 20 }),
  uncounted: turns({ text: "Nobody counts.", usage: null }),
};

type Options = {
  scenarios?: Record<string, Scenario>;
  /** The only valid key; others are quoted in the error, as careless servers do. */
  key?: string;
};

/** `at`: epoch milliseconds. */
type Asked = { at: number; path: string; model: string; headers: Record<string, string>; body: unknown };

/** Serves the scenarios on a free loopback port. */
export function serveFakeModel({ scenarios: own = {}, key }: Options = {}) {
  const all = { ...scenarios, ...own };
  const requests: Asked[] = [];
  const calls = new Map<string, number>();
  const turnCounts = new Map<string, number>();
  const held = new Map<string, (() => void)[]>();
  const left = Promise.withResolvers<void>();

  function release(model: string): void {
    for (const go of held.get(model) ?? []) go();
    held.delete(model);
  }
  const released = (model: string) =>
    new Promise<void>((resolve) => held.set(model, [...(held.get(model) ?? []), resolve]));

  async function* send(blocks: string[], turn: Turn, model: string) {
    for (const [i, block] of blocks.entries()) {
      if (turn.paceMs) await Bun.sleep(turn.paceMs);
      if (i === Math.ceil(blocks.length / 2)) {
        if (turn.cut === "end") return;
        if (turn.cut === "half") {
          // Earlier data must have been read, or the cut comes before the response. A client in this process reads between two of these turns.
          for (let n = 0; n < 10; n++) await Bun.sleep(5);
          throw undefined;
        }
        if (turn.hold) await released(model);
      }
      yield block;
    }
  }

  async function answer(received: Request): Promise<Response> {
    const request = withoutProvider(received);
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/requests") return Response.json(requests);
    if (pathname === "/release") {
      release(searchParams.get("model") ?? "");
      return new Response();
    }
    const modelRequest = await readScriptedRequest(request);
    if (!modelRequest) return new Response("nothing is here", { status: 404 });
    const { model, body, isStream, offersTools, toolResultCount: toolResults, encode, toError } = modelRequest;
    requests.push({ at: Date.now(), path: pathname, model, headers: Object.fromEntries(request.headers), body });
    const error = (status: number, message: string, headers = {}) =>
      Response.json(toError(status, message), { status, headers });
    const sent =
      request.headers.get("x-api-key") ??
      request.headers.get("x-goog-api-key") ??
      request.headers.get("authorization")?.replace("Bearer ", "");
    if (key !== undefined && sent !== key) return error(401, `the key ${sent} is not known`);
    const scenario = all[model];
    if (!scenario) return error(404, `the model ${model} does not exist`);

    if (JSON.stringify(body).length > (scenario.maxChars ?? Number.POSITIVE_INFINITY))
      return error(400, "This model's maximum context length is 32768 tokens. However, you requested 40000.");

    const nth = calls.get(model) ?? 0;
    calls.set(model, nth + 1);
    const side = offersTools ? undefined : scenario.side;
    const scriptedTurn = scenario.first?.[nth] ?? side ?? turnAfter(scenario.turns, toolResults);
    const turnKey = `${model} ${scenario.turns.indexOf(scriptedTurn)}`;
    const nthOfTurn = turnCounts.get(turnKey) ?? 0;
    turnCounts.set(turnKey, nthOfTurn + 1);
    const { decides, before } = scriptedTurn;
    const turn = before?.[nthOfTurn] ?? decides?.(textsOf(body).join("\n"), toolResults) ?? scriptedTurn;
    if (turn.silent) return new Promise(() => {});
    if (turn.fail?.body !== undefined) return new Response(turn.fail.body, { status: turn.fail.status });
    if (turn.fail) return error(turn.fail.status, turn.fail.message ?? "an error", turn.fail.headers);
    if (turn.garbage !== undefined)
      return new Response(turn.garbage, { headers: { "content-type": turn.garbageType ?? "text/html" } });
    const madeCalls = turn.command === undefined ? turn.toolCalls : [toCommandCall(body, turn.command)];
    const toolCalls = madeCalls?.map(({ name, input, custom }, i) => {
      const id = `call_${nth}_${i}`;
      const filled = typeof input.ref === "string" ? { ...input, ref: refIn(body, input.ref) } : input;
      return { id, name, input: filled, custom };
    });
    const text = turn.says ? turn.says(textsOf(body).join("\n")) : turn.text;
    const blocks = encode({ usage, ...turn, text, toolCalls });
    const [json = ""] = blocks;
    const halves = isStream ? blocks : [json.slice(0, json.length / 2), json.slice(json.length / 2)];
    request.signal.addEventListener("abort", () => left.resolve());
    return new Response(toStream(send(halves, turn, model)), {
      headers: { "content-type": contentType(modelRequest) },
    });
  }

  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: answer });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    /** The settings of each provider. */
    baseUrls: {
      anthropic: `${url}/v1`,
      openai: `${url}/v1`,
      google: `${url}/v1beta`,
      "openai-compatible": `${url}/v1`,
    },
    requests,
    /** Adds a scenario. */
    add(model: string, scenario: Scenario): void {
      all[model] = scenario;
    },
    release,
    /** Resolves when a client disconnects before its answer is complete. */
    left: left.promise,
    stop: () => void server.stop(true),
  };
}

/** A request without the provider in its path, as agents send it to a gateway. */
function withoutProvider(request: Request): Request {
  const url = request.url.replace(/^(http:\/\/[^/]+)\/(?:openai|anthropic|google|openai-compatible)(?=\/v1)/, "$1");
  return url === request.url ? request : new Request(url, request);
}

const textsOf = (value: unknown): string[] =>
  typeof value === "string"
    ? [value]
    : value !== null && typeof value === "object"
      ? Object.values(value).flatMap(textsOf)
      : [];

/** The last reference after a text. */
function refIn(body: unknown, before: string): string {
  const said = JSON.stringify(body).replaceAll("\\", "");
  const [, ref = "e0"] = /^ \[(e\d+)\]/.exec(said.slice(said.lastIndexOf(`${before} [`) + before.length)) ?? [];
  return ref;
}

/** The turn after this many tool results; the last one repeats. */
function turnAfter(all: Turn[], results: number): Turn {
  let rest = results;
  for (const turn of all) {
    const calls = turn.command === undefined ? (turn.toolCalls?.length ?? 0) : 1;
    if (calls === 0 || rest < calls) return turn;
    rest -= calls;
  }
  return all.at(-1) ?? {};
}

/** An exception in the source cuts the connection (without a reason, which would be printed). */
function toStream(source: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(stream) {
      try {
        const { done, value } = await source.next();
        if (done) stream.close();
        else stream.enqueue(encoder.encode(value));
      } catch {
        stream.error(undefined);
      }
    },
  });
}

if (import.meta.main) {
  const file = process.argv[2];
  const { url } = serveFakeModel({ scenarios: file ? await Bun.file(file).json() : {} });
  process.stderr.write(`listening on ${url}\n`);
}
