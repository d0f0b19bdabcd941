import type { ModelProvider } from "../../config/model-settings.ts";
import { type Fields, list, object } from "../fields.ts";
import { createEventReader } from "./event-reader.ts";

/** OpenAI chat completions and responses, Anthropic messages, Gemini generateContent. */
export type Format = "chat" | "responses" | "messages" | "gemini";

/** A request to a model: its path below the base URL, and the model that it names (null: none). */
export type ModelRequest = { format: Format; path: string; model: string | null; body: Record<string, unknown> };

const endpoints: Record<ModelProvider, Record<string, Format>> = {
  anthropic: { "/v1/messages": "messages" },
  openai: { "/v1/chat/completions": "chat", "/v1/responses": "responses" },
  google: {},
  "openai-compatible": { "/v1/chat/completions": "chat" },
};
const geminiPath = /^\/v1beta(\/models\/([^/:]+):(?:g|streamG)enerateContent)$/;

/** What a path below `/<provider>` does; null if it isn't a model call. */
export function findEndpoint(provider: ModelProvider, url: URL) {
  const path = url.pathname.slice(provider.length + 1);
  if (!url.pathname.startsWith(`/${provider}/`)) return null;
  const gemini = provider === "google" ? geminiPath.exec(path) : null;
  if (gemini) {
    const query = url.searchParams.get("alt") === "sse" ? "?alt=sse" : "";
    return { format: "gemini" as const, path: `${gemini[1]}${query}`, model: gemini[2] ?? null };
  }
  const format = endpoints[provider][path];
  return format ? { format, path: path.replace(/^\/v1/, ""), model: null } : null;
}

/** Fields that change the price of a call, or let it go on after its response. */
const unaccountableField = /^(service_?tier|speed|background)$/i;

/** The request as it is forwarded, without fields that would make its cost unknown. Streamed chat completions are told to report their usage. */
export function toModelRequest(
  { format, path, model }: NonNullable<ReturnType<typeof findEndpoint>>,
  requestBody: Record<string, unknown>,
): ModelRequest {
  const body = Object.fromEntries(Object.entries(requestBody).filter(([name]) => !unaccountableField.test(name)));
  if (format === "gemini") return { format, path, model, body };
  const modelName = typeof body.model === "string" ? body.model : null;
  if (format !== "chat" || body.stream !== true) return { format, path, model: modelName, body };
  return {
    format,
    path,
    model: modelName,
    body: { ...body, stream_options: { ...object(body.stream_options), include_usage: true } },
  };
}

/** Kinds of tools that run on the client; all others run at the provider. */
const clientTools: Record<Format, (tool: Record<string, unknown>) => boolean> = {
  chat: ({ type }) => type === "function" || type === "custom",
  responses(tool) {
    if (tool.type === "namespace") return list(tool.tools).map(object).every(clientTools.responses);
    if (tool.type === "tool_search") return tool.execution === "client";
    return ["function", "custom", "local_shell", "apply_patch"].includes(String(tool.type));
  },
  messages: ({ type }) => type === undefined || /^(custom$|bash_|text_editor_|memory_|computer_)/.test(String(type)),
  gemini: (tool) => Object.keys(tool).every((key) => /^function_?declarations$/i.test(key)),
};
/** The tools that search the web at the provider. */
const searchTools: Record<Format, (tool: Record<string, unknown>) => boolean> = {
  chat: () => false,
  responses: ({ type }) => /^web_search(_preview)?(_\d+)*$/.test(String(type)),
  messages: ({ type }) => /^web_search_\d+$/.test(String(type)),
  gemini: (tool) => Object.keys(tool).length > 0 && Object.keys(tool).every((key) => /^google_?search$/i.test(key)),
};
const providerToolFields = ["web_search_options", "plugins", "mcp_servers", "container"];

/**
 * The tools of a request that run at the provider, such as web search or code execution; null: none. They would bypass the run's network rules.
 * `allowsWebSearch`: whether the prompt turned web search on.
 */
export function findProviderTool({ format, body }: ModelRequest, allowsWebSearch: boolean): string | null {
  const isAllowed = (tool: Record<string, unknown>) => allowsWebSearch && searchTools[format](tool);
  const field = providerToolFields.find(
    (name) => body[name] != null && !(allowsWebSearch && name === "web_search_options"),
  );
  if (field) return field;
  // A conversation with the Responses API can add tools later.
  const inputItems = format === "responses" ? list(body.input).map(object) : [];
  const addedTools = inputItems.flatMap(({ type, tools }) => (type === "additional_tools" ? list(tools) : []));
  // A list in place of a tool is refused, because a provider may read what is in it.
  const tool = [...list(body.tools), ...addedTools].find(
    (each) => Array.isArray(each) || !(clientTools[format](object(each)) || isAllowed(object(each))),
  );
  if (tool === undefined) return null;
  if (Array.isArray(tool)) return "a list in place of a tool";
  const { type, ...fields } = object(tool);
  return String(type ?? "") || Object.keys(fields).join(", ") || "a tool without a type";
}

/** The header for a provider's API key. */
export function keyHeader(provider: ModelProvider, key: string): Record<string, string> {
  if (provider === "anthropic") return { "x-api-key": key };
  if (provider === "google") return { "x-goog-api-key": key };
  return { authorization: `Bearer ${key}` };
}

/** Tokens of one call. `input` includes cache reads and writes, `output` includes reasoning. */
export type Usage = {
  input: number;
  cached: number;
  cacheWritten: number;
  /** Part of `cacheWritten` that is kept for an hour, which costs more. */
  cacheWrittenForHour: number;
  output: number;
  reasoning: number;
};

/** What a response reported. `usage`: for an incomplete response, the usage reported so far. `chars`: the length of what the model wrote. */
export type ResponseSummary = {
  model: string | null;
  usage: Usage | null;
  chars: number;
  isComplete: boolean;
  error: string | null;
};

/** The summary of a response that has reported nothing. */
export const emptySummary: ResponseSummary = { model: null, usage: null, chars: 0, isComplete: false, error: null };

/** Reads usage and other details from a response as its bytes pass through. */
export function createMeter(format: Format, isStream: boolean) {
  const summary: ResponseSummary = { ...emptySummary };
  const events = createEventReader(isStream, (event) => {
    if (event === "done") summary.isComplete = true;
    else readerByFormat[format](event, summary);
  });
  return {
    /** What was reported so far. */
    summary,
    push: events.push,
    end(): ResponseSummary {
      events.end();
      return summary;
    },
  };
}

/** One function per format: reads an event of a stream, or a complete response. */
const readerByFormat: Record<Format, (event: Fields, summary: ResponseSummary) => void> = {
  chat(event, summary) {
    setModel(event.model, summary);
    setError(event.error, summary);
    const choices = list(event.choices).map(object);
    for (const { delta, message, finish_reason } of choices) {
      summary.chars += charsIn(delta ?? message);
      if (finish_reason) summary.isComplete = true;
    }
    // Moonshot reports it with the last choice.
    const reported = event.usage ?? choices.find(({ usage }) => usage)?.usage;
    if (reported) summary.usage = toChatUsage(object(reported));
  },

  responses(event, summary) {
    const response = event.object === "response" ? event : object(event.response);
    setModel(response.model, summary);
    setError(response.error ?? (event.type === "error" ? (event.error ?? event) : event.error), summary);
    if (["completed", "incomplete", "failed"].includes(String(response.status))) summary.isComplete = true;
    summary.chars += charsIn(event.delta ?? (event === response ? response.output : null));
    if (!response.usage) return;
    const usage = object(response.usage);
    summary.usage = toUsage({
      input: usage.input_tokens,
      cached: object(usage.input_tokens_details).cached_tokens,
      output: usage.output_tokens,
      reasoning: object(usage.output_tokens_details).reasoning_tokens,
    });
  },

  messages(event, summary) {
    const message = event.type === "message_start" ? object(event.message) : event;
    setModel(message.model, summary);
    setError(event.error, summary);
    if (object(event.delta).stop_reason || message.stop_reason) summary.isComplete = true;
    summary.chars += charsIn(event.delta ?? event.content_block ?? message.content);
    if (!message.usage) return;
    // The end of a stream repeats only what has changed since its start.
    const usage = object(message.usage);
    const previous = summary.usage;
    const creation = object(usage.cache_creation);
    const cached = usage.cache_read_input_tokens ?? previous?.cached;
    const cacheWritten = usage.cache_creation_input_tokens ?? previous?.cacheWritten;
    const uncached = usage.input_tokens ?? (previous ? previous.input - previous.cached - previous.cacheWritten : 0);
    summary.usage = toUsage({
      input: toCount(uncached) + toCount(cached) + toCount(cacheWritten),
      cached,
      cacheWritten,
      cacheWrittenForHour: creation.ephemeral_1h_input_tokens ?? previous?.cacheWrittenForHour,
      output: usage.output_tokens ?? previous?.output,
    });
  },

  gemini(event, summary) {
    setModel(event.modelVersion, summary);
    setError(event.error, summary);
    for (const { content, finishReason } of list(event.candidates).map(object)) {
      summary.chars += charsIn(content);
      if (finishReason) summary.isComplete = true;
    }
    if (object(event.promptFeedback).blockReason) summary.isComplete = true;
    if (!event.usageMetadata) return;
    const usage = object(event.usageMetadata);
    summary.usage = toUsage({
      input: toCount(usage.promptTokenCount) + toCount(usage.toolUsePromptTokenCount),
      cached: usage.cachedContentTokenCount,
      output: toCount(usage.candidatesTokenCount) + toCount(usage.thoughtsTokenCount),
      reasoning: usage.thoughtsTokenCount,
    });
  },
};

/** Usage of a chat completion. Compatible servers report input from their cache in different places. */
function toChatUsage(usage: Fields): Usage | null {
  const details = object(usage.prompt_tokens_details);
  const reasoning = object(usage.completion_tokens_details).reasoning_tokens;
  const [input, output] = [toCount(usage.prompt_tokens), toCount(usage.completion_tokens)];
  // xAI and others count reasoning in the total, but not in the output.
  const isApart = toCount(reasoning) > 0 && toCount(usage.total_tokens) === input + output + toCount(reasoning);
  return toUsage({
    input,
    // OpenAI and most others, Moonshot, DeepSeek, and gateways in front of Anthropic.
    cached: largest(
      details.cached_tokens,
      usage.cached_tokens,
      usage.prompt_cache_hit_tokens,
      usage.cache_read_input_tokens,
    ),
    cacheWritten: largest(details.cache_write_tokens, usage.cache_creation_input_tokens),
    output: isApart ? output + toCount(reasoning) : output,
    reasoning,
  });
}

const largest = (...counts: unknown[]): number => Math.max(...counts.map(toCount));

/** Number of characters in all texts of a value, down to a depth that no answer of a model reaches. */
function charsIn(value: unknown, levels = 32): number {
  if (typeof value === "string") return value.length;
  if (value === null || typeof value !== "object" || levels === 0) return 0;
  return Object.values(value).reduce((sum: number, each) => sum + charsIn(each, levels - 1), 0);
}

function setModel(value: unknown, summary: ResponseSummary): void {
  if (typeof value === "string" && value !== "") summary.model ??= value.slice(0, 200);
}

function setError(value: unknown, summary: ResponseSummary): void {
  if (!value) return;
  const { message, type } = object(value);
  summary.error ??= String(message ?? type ?? (typeof value === "string" ? value : "unknown error"));
}

/** null if a count isn't a non-negative integer. If more input was cached than there was input, the provider counts cached input separately. */
function toUsage(counts: Partial<Record<keyof Usage, unknown>>): Usage | null {
  const [input, cached, cacheWritten] = [toCount(counts.input), toCount(counts.cached), toCount(counts.cacheWritten)];
  const usage = {
    input: cached + cacheWritten > input ? input + cached + cacheWritten : input,
    cached,
    cacheWritten,
    cacheWrittenForHour: toCount(counts.cacheWrittenForHour),
    output: toCount(counts.output),
    reasoning: toCount(counts.reasoning),
  };
  return Object.values(usage).every(Number.isFinite) ? usage : null;
}

/** A missing count is 0. An invalid count is NaN. */
function toCount(value: unknown): number {
  if (value == null) return 0;
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : Number.NaN;
}

/** A refusal of a request with an invalid field, as the provider itself words it. */
export function toInvalidRequest(format: Format, field: string, message: string): object {
  if (format === "gemini") return { error: { code: 400, message, status: "INVALID_ARGUMENT" } };
  if (format === "messages") return { type: "error", error: { type: "invalid_request_error", message } };
  return { error: { message, type: "invalid_request_error", param: field, code: "invalid_value" } };
}

/** The response header that names a limit of the run that is near. */
export const nearLimitHeader = "x-evald-near-limit";
