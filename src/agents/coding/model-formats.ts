/** The answer of a model in one turn, for any protocol. */
export type Said = {
  model: string;
  reasoning?: string;
  text?: string;
  toolCalls?: { id: string; name: string; input: Record<string, unknown>; custom?: string }[];
  /** null: the server reports no usage. `input` includes cache reads and writes, `output` includes reasoning. */
  usage: { input: number; cached?: number; cacheWritten?: number; output: number; reasoning?: number } | null;
};

/** An answer in both forms: the blocks of its stream, and one object. */
type Answer = { stream: string[]; whole: object };

// biome-ignore lint/suspicious/noExplicitAny: what a client sent, read where a protocol has it
type Sent = any;

type Format = {
  path: RegExp;
  model: (body: Sent, path: string) => string;
  streams: (body: Sent, path: string) => boolean;
  /** Number of tool results in the request: the progress of the conversation. */
  toolResults: (body: Sent) => number;
  offersTools: (body: Sent) => boolean;
  answer: (said: Said, body: Sent) => Answer;
  error: (status: number, message: string) => object;
};

/** Clients treat two messages with one ID as the same message. */
let answers = 0;

const offersTools = (body: Sent) => Array.isArray(body.tools) && body.tools.length > 0;

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: { type: string }) => `event: ${value.type}\n${data(value)}`;
/** A text in two pieces, as in streams. */
const pieces = (text: string) =>
  [text.slice(0, text.length / 2), text.slice(text.length / 2)].filter((each) => each !== "");

const chat: Format = {
  offersTools,
  path: /\/chat\/completions$/,
  model: (body) => body.model,
  streams: (body) => body.stream === true,
  toolResults: (body) => body.messages.filter((each: Sent) => each.role === "tool").length,
  error: (status, message) => ({ error: { message, type: "error", param: null, code: String(status) } }),
  answer({ model, reasoning, text, toolCalls = [], usage }, body) {
    const id = `chatcmpl-${++answers}`;
    const finish = toolCalls.length > 0 ? "tool_calls" : "stop";
    const used = usage && {
      prompt_tokens: usage.input,
      completion_tokens: usage.output,
      total_tokens: usage.input + usage.output,
      prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
      completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    };
    const calls = toolCalls.map((call) => ({
      id: call.id,
      type: "function",
      function: { name: call.name, arguments: JSON.stringify(call.input) },
    }));
    const chunk = (delta: object, finish_reason: string | null = null) =>
      data({
        id,
        object: "chat.completion.chunk",
        created: 1,
        model,
        choices: [{ index: 0, delta, logprobs: null, finish_reason }],
        ...(body.stream_options?.include_usage ? { usage: null } : {}),
      });
    const stream = [
      chunk({ role: "assistant", content: "" }),
      ...pieces(reasoning ?? "").map((each) => chunk({ reasoning_content: each })),
      ...pieces(text ?? "").map((each) => chunk({ content: each })),
      ...calls.flatMap((call, index) => [
        chunk({ tool_calls: [{ index, ...call, function: { name: call.function.name, arguments: "" } }] }),
        ...pieces(call.function.arguments).map((each) =>
          chunk({ tool_calls: [{ index, function: { arguments: each } }] }),
        ),
      ]),
      chunk({}, finish),
      ...(used && body.stream_options?.include_usage
        ? [data({ id, object: "chat.completion.chunk", created: 1, model, choices: [], usage: used })]
        : []),
      "data: [DONE]\n\n",
    ];
    const message = {
      role: "assistant",
      content: text ?? null,
      ...(reasoning ? { reasoning_content: reasoning } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: finish }];
    return {
      stream,
      whole: { id, object: "chat.completion", created: 1, model, choices, ...(used ? { usage: used } : {}) },
    };
  },
};

const responses: Format = {
  offersTools: (body) =>
    offersTools(body) ||
    (Array.isArray(body.input) && body.input.some((each: Sent) => each.type === "additional_tools")),
  path: /\/responses$/,
  model: (body) => body.model,
  streams: (body) => body.stream === true,
  toolResults: (body) =>
    Array.isArray(body.input)
      ? body.input.filter((each: Sent) => /^(function|custom_tool)_call_output$/.test(each.type)).length
      : 0,
  error: chat.error,
  answer({ model, reasoning, text, toolCalls = [], usage }) {
    const used = usage && {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: usage.cached ?? 0 },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
      total_tokens: usage.input + usage.output,
    };
    const stream: string[] = [];
    const output: object[] = [];
    let sequence = 0;
    const nth = ++answers;
    const say = (type: string, fields: object) =>
      stream.push(`event: ${type}\n${data({ type, sequence_number: sequence++, ...fields })}`);
    const response = (status: string) => ({
      id: `resp_${nth}`,
      object: "response",
      created_at: 1,
      status,
      error: null,
      incomplete_details: null,
      model,
      output: status === "completed" ? output : [],
      usage: status === "completed" ? used : null,
    });
    const item = (empty: object, full: object, between: (place: object) => void) => {
      const place = { output_index: output.length };
      say("response.output_item.added", { ...place, item: { ...empty, status: "in_progress" } });
      between(place);
      output.push({ ...full, status: "completed" });
      say("response.output_item.done", { ...place, item: { ...full, status: "completed" } });
    };
    say("response.created", { response: response("in_progress") });
    say("response.in_progress", { response: response("in_progress") });
    if (reasoning) {
      const base = { id: `rs_${nth}`, type: "reasoning", encrypted_content: null };
      item({ ...base, summary: [] }, { ...base, summary: [{ type: "summary_text", text: reasoning }] }, (place) => {
        const at = { ...place, item_id: base.id, summary_index: 0 };
        say("response.reasoning_summary_part.added", { ...at, part: { type: "summary_text", text: "" } });
        for (const delta of pieces(reasoning)) say("response.reasoning_summary_text.delta", { ...at, delta });
        say("response.reasoning_summary_text.done", { ...at, text: reasoning });
        say("response.reasoning_summary_part.done", { ...at, part: { type: "summary_text", text: reasoning } });
      });
    }
    if (text) {
      const base = { id: `msg_${nth}`, type: "message", role: "assistant" };
      const part = { type: "output_text", text, annotations: [], logprobs: [] };
      item({ ...base, content: [] }, { ...base, content: [part] }, (place) => {
        const at = { ...place, item_id: base.id, content_index: 0 };
        say("response.content_part.added", { ...at, part: { ...part, text: "" } });
        for (const delta of pieces(text)) say("response.output_text.delta", { ...at, delta, logprobs: [] });
        say("response.output_text.done", { ...at, text, logprobs: [] });
        say("response.content_part.done", { ...at, part });
      });
    }
    for (const call of toolCalls) {
      if (call.custom !== undefined) {
        const own = { id: `ctc_${call.id}`, type: "custom_tool_call", call_id: call.id, name: call.name };
        item({ ...own, input: "" }, { ...own, input: call.custom }, (place) => {
          say("response.custom_tool_call_input.done", { ...place, item_id: own.id, input: call.custom });
        });
        continue;
      }
      const base = { id: `fc_${call.id}`, type: "function_call", call_id: call.id, name: call.name };
      const input = JSON.stringify(call.input);
      item({ ...base, arguments: "" }, { ...base, arguments: input }, (place) => {
        const at = { ...place, item_id: base.id };
        for (const delta of pieces(input)) say("response.function_call_arguments.delta", { ...at, delta });
        say("response.function_call_arguments.done", { ...at, arguments: input });
      });
    }
    say("response.completed", { response: response("completed") });
    return { stream, whole: response("completed") };
  },
};

const messages: Format = {
  offersTools,
  path: /\/messages$/,
  model: (body) => body.model,
  streams: (body) => body.stream === true,
  toolResults: (body) =>
    body.messages.flatMap((each: Sent) => each.content).filter((each: Sent) => each.type === "tool_result").length,
  error: (status, message) => ({
    type: "error",
    error: {
      type: status === 401 ? "authentication_error" : status === 429 ? "rate_limit_error" : "api_error",
      message,
    },
  }),
  answer({ model, reasoning, text, toolCalls = [], usage }) {
    const { input = 0, cached = 0, cacheWritten = 0, output = 0 } = usage ?? {};
    const start = {
      input_tokens: input - cached - cacheWritten,
      cache_creation_input_tokens: cacheWritten,
      cache_read_input_tokens: cached,
      output_tokens: 1,
    };
    const head = { id: `msg_${++answers}`, type: "message", role: "assistant", model };
    const stop = { stop_reason: toolCalls.length > 0 ? "tool_use" : "end_turn", stop_sequence: null };
    const blocks: { full: object; empty: object; deltas: object[] }[] = [];
    if (reasoning)
      blocks.push({
        full: { type: "thinking", thinking: reasoning, signature: "c2lnbmVk" },
        empty: { type: "thinking", thinking: "", signature: "" },
        deltas: [
          ...pieces(reasoning).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature: "c2lnbmVk" },
        ],
      });
    if (text)
      blocks.push({
        full: { type: "text", text },
        empty: { type: "text", text: "" },
        deltas: pieces(text).map((each) => ({ type: "text_delta", text: each })),
      });
    for (const { id, name, input } of toolCalls)
      blocks.push({
        full: { type: "tool_use", id, name, input },
        empty: { type: "tool_use", id, name, input: {} },
        deltas: pieces(JSON.stringify(input)).map((partial_json) => ({ type: "input_json_delta", partial_json })),
      });
    const events: { type: string; [key: string]: unknown }[] = [
      {
        type: "message_start",
        message: { ...head, content: [], stop_reason: null, stop_sequence: null, usage: start },
      },
      { type: "ping" },
      ...blocks.flatMap(({ empty, deltas }, index) => [
        { type: "content_block_start", index, content_block: empty },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index },
      ]),
      { type: "message_delta", delta: stop, usage: { output_tokens: output } },
      { type: "message_stop" },
    ];
    const content = blocks.map(({ full }) => full);
    return {
      stream: events.map(named),
      whole: { ...head, content, ...stop, usage: { ...start, output_tokens: output } },
    };
  },
};

const gemini: Format = {
  offersTools,
  path: /\/models\/[^/]+:(streamGenerateContent|generateContent)$/,
  model: (_, path) => /\/models\/([^/:]+):/.exec(path)?.[1] ?? "",
  streams: (_, path) => path.endsWith(":streamGenerateContent"),
  toolResults: (body) =>
    body.contents.flatMap((each: Sent) => each.parts).filter((each: Sent) => each.functionResponse).length,
  error: (code, message) => ({ error: { code, message, status: code === 429 ? "RESOURCE_EXHAUSTED" : "INTERNAL" } }),
  answer({ model, reasoning, text, toolCalls = [], usage }) {
    const nth = ++answers;
    const counts = usage && {
      promptTokenCount: usage.input,
      cachedContentTokenCount: usage.cached ?? 0,
      candidatesTokenCount: usage.output - (usage.reasoning ?? 0),
      thoughtsTokenCount: usage.reasoning ?? 0,
      totalTokenCount: usage.input + usage.output,
    };
    const calls = toolCalls.map(({ name, input }) => ({ functionCall: { name, args: input } }));
    const chunk = (parts: object[], last = false) => ({
      candidates: [{ content: { role: "model", parts }, index: 0, ...(last ? { finishReason: "STOP" } : {}) }],
      ...(counts ? { usageMetadata: last ? counts : { promptTokenCount: counts.promptTokenCount } } : {}),
      modelVersion: model,
      responseId: `r${nth}`,
    });
    const thoughts = pieces(reasoning ?? "").map((each) => ({ text: each, thought: true }));
    const texts = pieces(text ?? "").map((each) => ({ text: each }));
    const parts = [...thoughts, ...texts, ...calls];
    const stream = [...parts.map((part) => data(chunk([part]))), data(chunk([{ text: "" }], true))];
    const whole = [...(reasoning ? [{ text: reasoning, thought: true }] : []), ...(text ? [{ text }] : []), ...calls];
    return { stream, whole: chunk(whole, true) };
  },
};

/** OpenAI's chat completions and responses, Anthropic's messages, Gemini's generateContent. */
export const formats: Format[] = [chat, responses, messages, gemini];
