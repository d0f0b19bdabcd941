/**
 * A tool call of the scripted model, which plays a provider's model to test an agent. `custom`: the text
 * input of a custom tool of the Responses API.
 */
export type ScriptedToolCall = { id: string; name: string; input: Record<string, unknown>; custom?: string };

/** The answer of a model in one turn, for any protocol. */
export type ScriptedAnswer = {
  model: string;
  reasoning?: string;
  text?: string;
  toolCalls?: ScriptedToolCall[];
  /** Why the model stops early. Default: it doesn't. */
  stop?: "refusal" | "length";
  /** null: the server reports no usage. `input` includes cache reads and writes, `output` includes reasoning. */
  usage: { input: number; cached?: number; cacheWritten?: number; output: number; reasoning?: number } | null;
};

/** An answer in both forms: the blocks of its stream, and one object. */
type EncodedAnswer = { stream: string[]; wholeAnswer: object };

// biome-ignore lint/suspicious/noExplicitAny: the body of a request, read where a protocol has it
type Body = any;

type Format = {
  path: RegExp;
  model: (body: Body, path: string) => string;
  isStream: (body: Body, path: string) => boolean;
  /** Number of tool results in the request: the progress of the conversation. */
  toolResultCount: (body: Body) => number;
  offersTools: (body: Body) => boolean;
  encode: (answer: ScriptedAnswer, body: Body) => EncodedAnswer;
  error: (status: number, message: string) => object;
};

/** Clients treat two messages with one ID as the same message. */
let answerCount = 0;

const offersTools = (body: Body) => Array.isArray(body.tools) && body.tools.length > 0;

/** How most protocols put these values in the body of a request. */
const bodyReaders = {
  model: (body: Body) => body.model,
  isStream: (body: Body) => body.stream === true,
  offersTools,
};

const toDataBlock = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const namedEvent = (value: { type: string; [field: string]: unknown }) => `event: ${value.type}\n${toDataBlock(value)}`;
/** A text in two pieces, as in streams. */
const splitText = (text: string) =>
  [text.slice(0, text.length / 2), text.slice(text.length / 2)].filter((each) => each !== "");

const chat: Format = {
  ...bodyReaders,
  path: /\/chat\/completions$/,
  toolResultCount: (body) => body.messages.filter((each: Body) => each.role === "tool").length,
  error: (status, message) => ({ error: { message, type: "error", param: null, code: String(status) } }),
  encode({ model, reasoning, text, toolCalls = [], stop, usage }, body) {
    const id = `chatcmpl-${++answerCount}`;
    const stopReason = stop && { refusal: "content_filter", length: "length" }[stop];
    const finish = stopReason ?? (toolCalls.length > 0 ? "tool_calls" : "stop");
    const counts = usage && {
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
      toDataBlock({
        id,
        object: "chat.completion.chunk",
        created: 1,
        model,
        choices: [{ index: 0, delta, logprobs: null, finish_reason }],
        ...(body.stream_options?.include_usage ? { usage: null } : {}),
      });
    const stream = [
      chunk({ role: "assistant", content: "" }),
      ...splitText(reasoning ?? "").map((each) => chunk({ reasoning_content: each })),
      ...splitText(text ?? "").map((each) => chunk({ content: each })),
      ...calls.flatMap((call, index) => [
        chunk({ tool_calls: [{ index, ...call, function: { name: call.function.name, arguments: "" } }] }),
        ...splitText(call.function.arguments).map((each) =>
          chunk({ tool_calls: [{ index, function: { arguments: each } }] }),
        ),
      ]),
      chunk({}, finish),
      ...(counts && body.stream_options?.include_usage
        ? [toDataBlock({ id, object: "chat.completion.chunk", created: 1, model, choices: [], usage: counts })]
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
      wholeAnswer: { id, object: "chat.completion", created: 1, model, choices, ...(counts ? { usage: counts } : {}) },
    };
  },
};

/** An item of a response: as it starts and as it ends, and the events in between. */
type ResponseItem = { id: string; empty: object; full: object; events: ({ type: string } & Record<string, unknown>)[] };

function toReasoningItem(id: string, reasoning: string): ResponseItem {
  const base = { id, type: "reasoning", encrypted_content: null };
  const part = { type: "summary_text", text: reasoning };
  const events = [
    { type: "response.reasoning_summary_part.added", part: { ...part, text: "" } },
    ...splitText(reasoning).map((delta) => ({ type: "response.reasoning_summary_text.delta", delta })),
    { type: "response.reasoning_summary_text.done", text: reasoning },
    { type: "response.reasoning_summary_part.done", part },
  ].map((event) => ({ ...event, summary_index: 0 }));
  return { id, empty: { ...base, summary: [] }, full: { ...base, summary: [part] }, events };
}

function toMessageItem(id: string, text: string): ResponseItem {
  const base = { id, type: "message", role: "assistant" };
  const part = { type: "output_text", text, annotations: [], logprobs: [] };
  const events = [
    { type: "response.content_part.added", part: { ...part, text: "" } },
    ...splitText(text).map((delta) => ({ type: "response.output_text.delta", delta, logprobs: [] })),
    { type: "response.output_text.done", text, logprobs: [] },
    { type: "response.content_part.done", part },
  ].map((event) => ({ ...event, content_index: 0 }));
  return { id, empty: { ...base, content: [] }, full: { ...base, content: [part] }, events };
}

function toCallItem({ id: call_id, name, input, custom }: ScriptedToolCall): ResponseItem {
  if (custom !== undefined) {
    const base = { id: `ctc_${call_id}`, type: "custom_tool_call", call_id, name };
    const events = [{ type: "response.custom_tool_call_input.done", input: custom }];
    return { id: base.id, empty: { ...base, input: "" }, full: { ...base, input: custom }, events };
  }
  const base = { id: `fc_${call_id}`, type: "function_call", call_id, name };
  const json = JSON.stringify(input);
  const events = [
    ...splitText(json).map((delta) => ({ type: "response.function_call_arguments.delta", delta })),
    { type: "response.function_call_arguments.done", arguments: json },
  ];
  return { id: base.id, empty: { ...base, arguments: "" }, full: { ...base, arguments: json }, events };
}

const responses: Format = {
  ...bodyReaders,
  offersTools: (body) =>
    offersTools(body) ||
    (Array.isArray(body.input) && body.input.some((each: Body) => each.type === "additional_tools")),
  path: /\/responses$/,
  toolResultCount: (body) =>
    Array.isArray(body.input)
      ? body.input.filter((each: Body) => /^(function|custom_tool)_call_output$/.test(each.type)).length
      : 0,
  error: chat.error,
  encode({ model, reasoning, text, toolCalls = [], stop, usage }) {
    const counts = usage && {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: usage.cached ?? 0 },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
      total_tokens: usage.input + usage.output,
    };
    const answerNumber = ++answerCount;
    const items = [
      ...(reasoning ? [toReasoningItem(`rs_${answerNumber}`, reasoning)] : []),
      ...(text ? [toMessageItem(`msg_${answerNumber}`, text)] : []),
      ...toolCalls.map(toCallItem),
    ];
    const base = { id: `resp_${answerNumber}`, object: "response", created_at: 1, error: null, model };
    const initial = { ...base, status: "in_progress", incomplete_details: null, output: [], usage: null };
    const stopReason = stop && { refusal: "content_filter", length: "max_output_tokens" }[stop];
    const final = {
      ...base,
      status: stop ? "incomplete" : "completed",
      incomplete_details: stop ? { reason: stopReason } : null,
      output: items.map(({ full }) => ({ ...full, status: "completed" })),
      usage: counts,
    };
    const events = [
      { type: "response.created", response: initial },
      { type: "response.in_progress", response: initial },
      ...items.flatMap((item, output_index) => [
        { type: "response.output_item.added", output_index, item: { ...item.empty, status: "in_progress" } },
        ...item.events.map((event) => ({ ...event, output_index, item_id: item.id })),
        { type: "response.output_item.done", output_index, item: { ...item.full, status: "completed" } },
      ]),
      { type: `response.${final.status}`, response: final },
    ];
    const stream = events.map((event, sequence_number) => namedEvent({ ...event, sequence_number }));
    return { stream, wholeAnswer: final };
  },
};

/** Types of errors by status. */
const messagesErrors: Record<number, string> = { 401: "authentication_error", 429: "rate_limit_error" };

const messages: Format = {
  ...bodyReaders,
  path: /\/messages$/,
  toolResultCount: (body) =>
    body.messages.flatMap((each: Body) => each.content).filter((each: Body) => each.type === "tool_result").length,
  error: (status, message) => ({
    type: "error",
    error: { type: messagesErrors[status] ?? "api_error", message },
  }),
  encode({ model, reasoning, text, toolCalls = [], stop, usage }) {
    const { input = 0, cached = 0, cacheWritten = 0, output = 0 } = usage ?? {};
    const startUsage = {
      input_tokens: input - cached - cacheWritten,
      cache_creation_input_tokens: cacheWritten,
      cache_read_input_tokens: cached,
      output_tokens: 1,
    };
    const messageFields = { id: `msg_${++answerCount}`, type: "message", role: "assistant", model };
    const earlyReason = stop && { refusal: "refusal", length: "max_tokens" }[stop];
    const stopFields = {
      stop_reason: earlyReason ?? (toolCalls.length > 0 ? "tool_use" : "end_turn"),
      stop_sequence: null,
    };
    const blocks: { full: object; empty: object; deltas: object[] }[] = [];
    if (reasoning)
      blocks.push({
        full: { type: "thinking", thinking: reasoning, signature: "c2lnbmVk" },
        empty: { type: "thinking", thinking: "", signature: "" },
        deltas: [
          ...splitText(reasoning).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature: "c2lnbmVk" },
        ],
      });
    if (text)
      blocks.push({
        full: { type: "text", text },
        empty: { type: "text", text: "" },
        deltas: splitText(text).map((each) => ({ type: "text_delta", text: each })),
      });
    for (const { id, name, input } of toolCalls)
      blocks.push({
        full: { type: "tool_use", id, name, input },
        empty: { type: "tool_use", id, name, input: {} },
        deltas: splitText(JSON.stringify(input)).map((partial_json) => ({ type: "input_json_delta", partial_json })),
      });
    const events: { type: string; [key: string]: unknown }[] = [
      {
        type: "message_start",
        message: { ...messageFields, content: [], stop_reason: null, stop_sequence: null, usage: startUsage },
      },
      { type: "ping" },
      ...blocks.flatMap(({ empty, deltas }, index) => [
        { type: "content_block_start", index, content_block: empty },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index },
      ]),
      { type: "message_delta", delta: stopFields, usage: { output_tokens: output } },
      { type: "message_stop" },
    ];
    const content = blocks.map(({ full }) => full);
    return {
      stream: events.map(namedEvent),
      wholeAnswer: { ...messageFields, content, ...stopFields, usage: { ...startUsage, output_tokens: output } },
    };
  },
};

const gemini: Format = {
  offersTools,
  path: /\/models\/[^/]+:(streamGenerateContent|generateContent)$/,
  model: (_, path) => /\/models\/([^/:]+):/.exec(path)?.[1] ?? "",
  isStream: (_, path) => path.endsWith(":streamGenerateContent"),
  toolResultCount: (body) =>
    body.contents.flatMap((each: Body) => each.parts).filter((each: Body) => each.functionResponse).length,
  error: (code, message) => ({ error: { code, message, status: code === 429 ? "RESOURCE_EXHAUSTED" : "INTERNAL" } }),
  encode({ model, reasoning, text, toolCalls = [], stop, usage }) {
    const answerNumber = ++answerCount;
    const finishReason = stop ? { refusal: "SAFETY", length: "MAX_TOKENS" }[stop] : "STOP";
    const counts = usage && {
      promptTokenCount: usage.input,
      cachedContentTokenCount: usage.cached ?? 0,
      candidatesTokenCount: usage.output - (usage.reasoning ?? 0),
      thoughtsTokenCount: usage.reasoning ?? 0,
      totalTokenCount: usage.input + usage.output,
    };
    const calls = toolCalls.map(({ name, input }) => ({ functionCall: { name, args: input } }));
    const chunk = (parts: object[]) => ({
      candidates: [{ content: { role: "model", parts }, index: 0 }],
      ...(counts ? { usageMetadata: { promptTokenCount: counts.promptTokenCount } } : {}),
      modelVersion: model,
      responseId: `r${answerNumber}`,
    });
    const lastChunk = (parts: object[]) => ({
      ...chunk(parts),
      candidates: [{ content: { role: "model", parts }, index: 0, finishReason }],
      ...(counts ? { usageMetadata: counts } : {}),
    });
    const thoughts = splitText(reasoning ?? "").map((each) => ({ text: each, thought: true }));
    const texts = splitText(text ?? "").map((each) => ({ text: each }));
    const parts = [...thoughts, ...texts, ...calls];
    const stream = [...parts.map((part) => toDataBlock(chunk([part]))), toDataBlock(lastChunk([{ text: "" }]))];
    const wholeAnswer = [
      ...(reasoning ? [{ text: reasoning, thought: true }] : []),
      ...(text ? [{ text }] : []),
      ...calls,
    ];
    return { stream, wholeAnswer: lastChunk(wholeAnswer) };
  },
};

/** OpenAI's chat completions and responses, Anthropic's messages, Gemini's generateContent. */
const formats = [chat, responses, messages, gemini];

/** A request to a model, in the terms that all protocols have. */
export type ScriptedRequest = {
  path: string;
  model: string;
  body: Record<string, unknown>;
  isStream: boolean;
  offersTools: boolean;
  /** The number of tool results in the conversation. */
  toolResultCount: number;
  /** An answer in the protocol of the request: the blocks of its stream, or one block of JSON. */
  encode: (answer: Omit<ScriptedAnswer, "model">) => string[];
  /** An error in the protocol of the request. */
  toError: (status: number, message: string) => object;
};

/** Reads a request in the protocol of its path; null if the path belongs to none. */
export async function readScriptedRequest(request: Request): Promise<ScriptedRequest | null> {
  const { pathname: path } = new URL(request.url);
  const format = formats.find((each) => each.path.test(path));
  if (!format || request.method !== "POST") return null;
  const body = await request.json();
  const model = format.model(body, path);
  const isStream = format.isStream(body, path);
  return {
    path,
    model,
    body,
    isStream,
    offersTools: format.offersTools(body),
    toolResultCount: format.toolResultCount(body),
    encode(answer) {
      const { stream, wholeAnswer } = format.encode({ model, ...answer }, body);
      return isStream ? stream : [JSON.stringify(wholeAnswer)];
    },
    toError: format.error,
  };
}

/** The content type of an answer. */
export const contentType = ({ isStream }: ScriptedRequest): string =>
  isStream ? "text/event-stream" : "application/json";
