// A model that writes as much as it is allowed to, by its most generous reading of the request, and keeps its own books.

type Body = Record<string, unknown>;

/** One answer, as the model billed it. */
type Bill = { model: string; input: number; output: number; usd: number };

type Options = {
  /** USD per million tokens. */
  price: { in: number; out: number };
  /** Output of a request without a limit, in tokens. */
  unlimited?: number;
  /** The longest answer that it ever writes, in tokens. */
  most?: number;
  /** Input tokens per byte of a request. */
  density?: number;
  /** Requests with a higher limit are rejected, as by a model with a small maximum. */
  maxOutput?: number;
  /** Rejects all requests with this message. */
  rejection?: string;
  reportsUsage?: boolean;
};

const outputFields = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "n_predict"];
const countFields = ["n", "candidateCount", "candidate_count"];
const configFields = ["generationConfig", "generation_config"];

const object = (value: unknown): Body => (value !== null && typeof value === "object" ? (value as Body) : {});

/** Serves chat completions, responses, messages and generateContent on a free loopback port. Answers wait for `answerAll`. */
export function serveSpendingModel({
  price,
  unlimited = 20_000,
  most: longest = Number.POSITIVE_INFINITY,
  density = 0.25,
  maxOutput = Number.POSITIVE_INFINITY,
  rejection,
  reportsUsage = true,
}: Options) {
  const bills: Bill[] = [];
  const bodies: Body[] = [];
  const waiting: (() => void)[] = [];

  /** The most that any of these fields allows, however it is written. */
  function most(body: Body, names: string[]): number | null {
    const values = [body, ...configFields.map((name) => object(body[name]))].flatMap((fields) =>
      names.flatMap((name) => (fields[name] == null ? [] : [Number(fields[name])])),
    );
    return values.length === 0
      ? null
      : Math.max(...values.map((value) => (value < 0 || Number.isNaN(value) ? 1e6 : value)));
  }

  async function answer(request: Request): Promise<Response> {
    const text = await request.text();
    const body = JSON.parse(text) as Body;
    bodies.push(body);
    const path = new URL(request.url).pathname;
    if (rejection) return Response.json({ error: { message: rejection } }, { status: 400 });
    const limit = most(body, outputFields);
    if (limit !== null && limit > maxOutput)
      return Response.json(
        { error: { message: `max_tokens is too large: ${limit}. This model supports at most ${maxOutput}.` } },
        { status: 400 },
      );
    await new Promise<void>((resolve) => waiting.push(resolve));
    const input = Math.ceil(text.length * density);
    const output = Math.min(longest, limit ?? unlimited) * (most(body, countFields) ?? 1);
    const model = /models\/([^:]+):/.exec(path)?.[1] ?? String(body.model);
    bills.push({ model, input, output, usd: (input * price.in + output * price.out) / 1e6 });
    return Response.json(toAnswer(path, model, reportsUsage ? { input, output } : null));
  }

  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: answer });
  return {
    url: `http://127.0.0.1:${server.port}`,
    bills,
    /** The bodies of all requests. */
    bodies,
    usd: () => bills.reduce((sum, bill) => sum + bill.usd, 0),
    /** Number of requests that wait for their answer. */
    waiting: () => waiting.length,
    answerAll(): void {
      for (const go of waiting.splice(0)) go();
    },
    /** Answers everything until `work` is done, always only once nothing else arrives. */
    async serve<T>(work: Promise<T>): Promise<T> {
      let isDone = false;
      const settled = work.finally(() => {
        isDone = true;
      });
      settled.catch(() => {});
      while (!isDone) {
        const before = waiting.length;
        for (let turn = 0; turn < 30 && !isDone; turn++) await new Promise((resolve) => setImmediate(resolve));
        if (waiting.length > 0 && waiting.length === before) for (const go of waiting.splice(0)) go();
      }
      return await settled;
    },
    stop: () => void server.stop(true),
  };
}

function toAnswer(path: string, model: string, usage: { input: number; output: number } | null): object {
  const text = "Yes.";
  if (path.endsWith("/messages"))
    return {
      type: "message",
      role: "assistant",
      model,
      content: [{ type: "text", text }],
      stop_reason: "end_turn",
      ...(usage && { usage: { input_tokens: usage.input, output_tokens: usage.output } }),
    };
  if (path.endsWith("/responses"))
    return {
      object: "response",
      status: "completed",
      model,
      output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text }] }],
      ...(usage && { usage: { input_tokens: usage.input, output_tokens: usage.output } }),
    };
  if (path.endsWith("generateContent"))
    return {
      modelVersion: model,
      candidates: [{ content: { parts: [{ text }] }, finishReason: "STOP" }],
      ...(usage && { usageMetadata: { promptTokenCount: usage.input, candidatesTokenCount: usage.output } }),
    };
  return {
    object: "chat.completion",
    model,
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
    ...(usage && {
      usage: {
        prompt_tokens: usage.input,
        completion_tokens: usage.output,
        total_tokens: usage.input + usage.output,
      },
    }),
  };
}
