import {
  APICallError,
  type LanguageModelV4,
  type LanguageModelV4Message,
  type LanguageModelV4StreamPart,
  type LanguageModelV4ToolCall,
} from "@ai-sdk/provider";
import { reasonOf } from "../../errors.ts";
import type { AgentEvent, FailureCause } from "../agent.ts";
import type { Toolbox } from "./tool.ts";

/** Result of one model call and its tool calls. `final`: retrying would not help. */
export type StepEnd =
  | { kind: "done"; messages: LanguageModelV4Message[]; calls: number }
  | { kind: "over_budget"; message: string }
  | {
      kind: "failed";
      cause: FailureCause;
      message: string;
      isFinal: boolean;
      retryAfterMs: number | null;
      isBusy: boolean;
      /** The conversation is too long for the model. */
      isTooLong: boolean;
    };

type StepOptions = { toolbox: Toolbox; report: (event: AgentEvent) => void; signal: AbortSignal; maxTextChars: number };

type PartOf<Role> = Extract<LanguageModelV4Message, { role: Role }>["content"][number];
/** A part of a response, as it stays in the conversation. Its calls have not been run. */
type Part = Exclude<PartOf<"assistant">, { type: "tool-call" }> | LanguageModelV4ToolCall;
type TextPart = Extract<Part, { type: "text" | "reasoning" }>;

/**
 * Calls the model once, and if its response is complete, runs the tools that it calls, one after the other. Reports its thoughts and
 * messages. Throws what a tool throws, and the signal's reason.
 */
export async function takeStep(
  model: LanguageModelV4,
  prompt: LanguageModelV4Message[],
  { toolbox, report, signal, maxTextChars }: StepOptions,
): Promise<StepEnd> {
  let parts: Part[];
  try {
    const { stream } = await model.doStream({
      prompt,
      tools: toolbox.definitions,
      toolChoice: { type: "auto" },
      abortSignal: signal,
    });
    parts = await readResponse(stream, (type, fullText) => {
      const text = fullText.trim().slice(0, maxTextChars);
      if (text !== "")
        report(type === "reasoning" ? { type: "thought", text, by: "model" } : { type: "message", text });
    });
    signal.throwIfAborted();
  } catch (error) {
    signal.throwIfAborted();
    return toFailure(error);
  }
  const content: PartOf<"assistant">[] = [];
  const results: PartOf<"tool">[] = [];
  for (const part of parts) {
    if (part.type !== "tool-call") {
      content.push(part);
      continue;
    }
    const { call, result } = await toolbox.run(part).finally(() => signal.throwIfAborted());
    content.push(call);
    results.push(result);
  }
  const messages: LanguageModelV4Message[] = [];
  if (content.length > 0) messages.push({ role: "assistant", content });
  if (results.length > 0) messages.push({ role: "tool", content: results });
  return { kind: "done", messages, calls: results.length };
}

/** The parts of a response in the order of their starts. `onText` gets each text when it ends. Throws if the response is incomplete. */
async function readResponse(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  onText: (type: "text" | "reasoning", text: string) => void,
): Promise<Part[]> {
  const parts: Part[] = [];
  const openTexts = new Map<string, TextPart>();
  let streamError: unknown;
  let reason: string | null = null;
  for await (const part of stream) {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end": {
        const type = part.type.startsWith("text") ? "text" : "reasoning";
        const key = `${type} ${part.id}`;
        const text: TextPart = openTexts.get(key) ?? { type, text: "" };
        if (!openTexts.has(key)) parts.push(text);
        openTexts.set(key, text);
        if ("delta" in part) text.text += part.delta;
        // Signatures of thoughts, which the provider wants back.
        if (part.providerMetadata) text.providerOptions = part.providerMetadata;
        if (!part.type.endsWith("-end")) break;
        openTexts.delete(key);
        onText(type, text.text);
        break;
      }
      case "tool-call":
        parts.push(part);
        break;
      case "custom":
      case "file":
      case "reasoning-file": {
        const { providerMetadata: providerOptions, ...rest } = part;
        parts.push({ ...rest, ...(providerOptions && { providerOptions }) });
        break;
      }
      case "error":
        streamError = part.error;
        break;
      case "finish":
        reason = part.finishReason.unified;
    }
  }
  for (const { type, text } of openTexts.values()) onText(type, text);
  const hasCalls = parts.some(({ type }) => type === "tool-call");
  if (streamError !== undefined) throw streamError;
  if (!hasCalls && (reason === null || incompleteReasons.has(reason))) throw new Error("the response is incomplete");
  return parts.filter((part) => !("text" in part) || part.text !== "" || part.providerOptions);
}

const incompleteReasons = new Set(["error", "interrupted", "other"]);

/** Wordings of Anthropic, OpenAI, Google, vLLM, llama.cpp and OpenRouter. */
const tooLongMessage =
  /context (length|window|size)|prompt is too long|too many tokens|input token count|maximum number of tokens/i;

function toFailure(error: unknown): StepEnd {
  const message = reasonOf(error).slice(0, 500);
  const apiError = APICallError.isInstance(error) ? error : null;
  const status = apiError?.statusCode;
  if (status === 402) return { kind: "over_budget", message };
  const ms = Number(
    apiError?.responseHeaders?.["retry-after-ms"] ?? Number(apiError?.responseHeaders?.["retry-after"]) * 1000,
  );
  const retryAfterMs = Number.isFinite(ms) ? ms : null;
  const cause = status === 401 || status === 403 ? "credentials" : "infrastructure";
  const isFinal = status !== undefined && status >= 400 && status < 500 && ![408, 409, 429].includes(status);
  const isBusy = status !== undefined && status >= 400;
  const isTooLong = status === 413 || (status === 400 && tooLongMessage.test(message));
  return {
    kind: "failed",
    cause,
    message: `the model call failed: ${message}`,
    isFinal,
    retryAfterMs,
    isBusy,
    isTooLong,
  };
}

const pauseMs = 200;
const busyPauseMs = 1_000;
const longestPauseMs = 30_000;

/**
 * Waits before the next try: as long as the provider says, or else with exponential backoff; shorter after an
 * incomplete response.
 */
export async function pauseAfter(
  failures: number,
  { retryAfterMs, isBusy }: Extract<StepEnd, { kind: "failed" }>,
  signal: AbortSignal,
): Promise<void> {
  const ms = Math.min(retryAfterMs ?? (isBusy ? busyPauseMs : pauseMs) * 2 ** (failures - 1), longestPauseMs);
  const pauseEnd = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => pauseEnd.resolve(), { once: true });
  const timer = setTimeout(pauseEnd.resolve, ms);
  await pauseEnd.promise;
  clearTimeout(timer);
  signal.throwIfAborted();
}
