/** The answer of a model in one turn, for any protocol. `custom`: the input of a custom tool of the Responses API, which is text. */
export type ScriptedAnswer = {
  model: string;
  reasoning?: string;
  text?: string;
  toolCalls?: { id: string; name: string; input: Record<string, unknown>; custom?: string }[];
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

/** How most protocols put these in the body of a request. */
const bodyReaders = {
  model: (body: Body) => body.model,
  isStream: (body: Body) => body.stream === true,
  offersTools,
};

const toDataBlock = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const namedEvent = (value: { type: string }) => `event: ${value.type}\n${toDataBlock(value)}`;
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
    const stream: string[] = [];
    const output: object[] = [];
    let sequence = 0;
    const answerNumber = ++answerCount;
    const add = (type: string, fields: object) =>
      stream.push(`event: ${type}\n${toDataBlock({ type, sequence_number: sequence++, ...fields })}`);
    const stopReason = stop && { refusal: "content_filter", length: "max_output_tokens" }[stop];
    const lastStatus = stop ? "incomplete" : "completed";
    const response = (status: string) => ({
      id: `resp_${answerNumber}`,
      object: "response",
      created_at: 1,
      status,
      error: null,
      incomplete_details: status === "incomplete" ? { reason: stopReason } : null,
      model,
      output: status === lastStatus ? output : [],
      usage: status === lastStatus ? counts : null,
    });
    const addItem = (empty: object, full: object, addParts: (position: object) => void) => {
      const position = { output_index: output.length };
      add("response.output_item.added", { ...position, item: { ...empty, status: "in_progress" } });
      addParts(position);
      output.push({ ...full, status: "completed" });
      add("response.output_item.done", { ...position, item: { ...full, status: "completed" } });
    };
    add("response.created", { response: response("in_progress") });
    add("response.in_progress", { response: response("in_progress") });
    if (reasoning) {
      const base = { id: `rs_${answerNumber}`, type: "reasoning", encrypted_content: null };
      addItem(
        { ...base, summary: [] },
        { ...base, summary: [{ type: "summary_text", text: reasoning }] },
        (position) => {
          const itemPosition = { ...position, item_id: base.id, summary_index: 0 };
          add("response.reasoning_summary_part.added", { ...itemPosition, part: { type: "summary_text", text: "" } });
          for (const delta of splitText(reasoning))
            add("response.reasoning_summary_text.delta", { ...itemPosition, delta });
          add("response.reasoning_summary_text.done", { ...itemPosition, text: reasoning });
          add("response.reasoning_summary_part.done", {
            ...itemPosition,
            part: { type: "summary_text", text: reasoning },
          });
        },
      );
    }
    if (text) {
      const base = { id: `msg_${answerNumber}`, type: "message", role: "assistant" };
      const part = { type: "output_text", text, annotations: [], logprobs: [] };
      addItem({ ...base, content: [] }, { ...base, content: [part] }, (position) => {
        const itemPosition = { ...position, item_id: base.id, content_index: 0 };
        add("response.content_part.added", { ...itemPosition, part: { ...part, text: "" } });
        for (const delta of splitText(text))
          add("response.output_text.delta", { ...itemPosition, delta, logprobs: [] });
        add("response.output_text.done", { ...itemPosition, text, logprobs: [] });
        add("response.content_part.done", { ...itemPosition, part });
      });
    }
    for (const call of toolCalls) {
      if (call.custom !== undefined) {
        const base = { id: `ctc_${call.id}`, type: "custom_tool_call", call_id: call.id, name: call.name };
        addItem({ ...base, input: "" }, { ...base, input: call.custom }, (position) => {
          add("response.custom_tool_call_input.done", { ...position, item_id: base.id, input: call.custom });
        });
        continue;
      }
      const base = { id: `fc_${call.id}`, type: "function_call", call_id: call.id, name: call.name };
      const input = JSON.stringify(call.input);
      addItem({ ...base, arguments: "" }, { ...base, arguments: input }, (position) => {
        const itemPosition = { ...position, item_id: base.id };
        for (const delta of splitText(input)) add("response.function_call_arguments.delta", { ...itemPosition, delta });
        add("response.function_call_arguments.done", { ...itemPosition, arguments: input });
      });
    }
    add(`response.${lastStatus}`, { response: response(lastStatus) });
    return { stream, wholeAnswer: response(lastStatus) };
  },
};

const messages: Format = {
  ...bodyReaders,
  path: /\/messages$/,
  toolResultCount: (body) =>
    body.messages.flatMap((each: Body) => each.content).filter((each: Body) => each.type === "tool_result").length,
  error: (status, message) => ({
    type: "error",
    error: {
      type: status === 401 ? "authentication_error" : status === 429 ? "rate_limit_error" : "api_error",
      message,
    },
  }),
  encode({ model, reasoning, text, toolCalls = [], stop: early, usage }) {
    const { input = 0, cached = 0, cacheWritten = 0, output = 0 } = usage ?? {};
    const startUsage = {
      input_tokens: input - cached - cacheWritten,
      cache_creation_input_tokens: cacheWritten,
      cache_read_input_tokens: cached,
      output_tokens: 1,
    };
    const messageFields = { id: `msg_${++answerCount}`, type: "message", role: "assistant", model };
    const earlyReason = early && { refusal: "refusal", length: "max_tokens" }[early];
    const stop = {
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
      { type: "message_delta", delta: stop, usage: { output_tokens: output } },
      { type: "message_stop" },
    ];
    const content = blocks.map(({ full }) => full);
    return {
      stream: events.map(namedEvent),
      wholeAnswer: { ...messageFields, content, ...stop, usage: { ...startUsage, output_tokens: output } },
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
    const chunk = (parts: object[], last = false) => ({
      candidates: [{ content: { role: "model", parts }, index: 0, ...(last ? { finishReason } : {}) }],
      ...(counts ? { usageMetadata: last ? counts : { promptTokenCount: counts.promptTokenCount } } : {}),
      modelVersion: model,
      responseId: `r${answerNumber}`,
    });
    const thoughts = splitText(reasoning ?? "").map((each) => ({ text: each, thought: true }));
    const texts = splitText(text ?? "").map((each) => ({ text: each }));
    const parts = [...thoughts, ...texts, ...calls];
    const stream = [...parts.map((part) => toDataBlock(chunk([part]))), toDataBlock(chunk([{ text: "" }], true))];
    const wholeAnswer = [
      ...(reasoning ? [{ text: reasoning, thought: true }] : []),
      ...(text ? [{ text }] : []),
      ...calls,
    ];
    return { stream, wholeAnswer: chunk(wholeAnswer, true) };
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
