import {
  APICallError,
  type LanguageModelV4,
  type LanguageModelV4Message,
  type LanguageModelV4StreamPart,
  type LanguageModelV4ToolCall,
} from "@ai-sdk/provider";
import { pause } from "../../deadline.ts";
import { reasonOf } from "../../errors.ts";
import { ownMember } from "../../schema.ts";
import type { AgentEvent } from "../agent.ts";
import { codeOfCall, endingOfCall } from "../endings.ts";
import type { FailedCode } from "../failure.ts";
import { messageIn } from "../model-errors.ts";
import type { Toolbox } from "./tool.ts";

/** Result of one model call and its tool calls. */
export type StepEnd =
  | { kind: "done"; messages: LanguageModelV4Message[]; calls: number }
  /** The model stopped before its answer was complete, and called no tool. */
  | { kind: "stopped"; ending: "refused" | "output_limit"; text: string }
  | { kind: "over_budget"; message: string }
  | {
      kind: "failed";
      /** The ending of the session if it cannot go on because of this. */
      ending: CallEnding;
      /** Undefined: the code of the ending applies. */
      code: FailedCode | undefined;
      message: string;
      retryAfterMs: number | null;
      isBusy: boolean;
    };

type CallEnding = "context_overflow" | "key_rejected" | "provider_rejected" | "provider_fault" | "cut_answer";

type PartOf<Role> = Extract<LanguageModelV4Message, { role: Role }>["content"][number];
/** A part of a response, as it stays in the conversation. Its calls have not been run. */
type ResponsePart = Exclude<PartOf<"assistant">, { type: "tool-call" }> | LanguageModelV4ToolCall;
type TextPart = Extract<ResponsePart, { type: "text" | "reasoning" }>;

type StepOptions = {
  toolbox: Toolbox;
  report: (event: AgentEvent) => void;
  signal: AbortSignal;
  maxTextChars: number;
};

/**
 * Calls the model once. If its response is complete, runs the tools that it calls, one after the other. Reports its thoughts and messages. Throws
 * what a tool throws, and the signal's reason.
 */
export async function takeStep(
  model: LanguageModelV4,
  prompt: LanguageModelV4Message[],
  options: StepOptions,
): Promise<StepEnd> {
  const { toolbox, signal, maxTextChars } = options;
  const response = await callModel(model, prompt, options).catch((error) => {
    signal.throwIfAborted();
    return toFailure(error);
  });
  if ("kind" in response) return response;
  const { parts, stop } = response;
  if (stop !== null) {
    const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
    return { kind: "stopped", ending: stop, text: texts.join("").trim().slice(0, maxTextChars) };
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

/** Throws what the provider's client throws. Also throws if the response is incomplete. */
async function callModel(
  model: LanguageModelV4,
  prompt: LanguageModelV4Message[],
  { toolbox, report, signal, maxTextChars }: StepOptions,
): Promise<ModelResponse> {
  const { stream } = await model.doStream({
    prompt,
    tools: toolbox.definitions,
    toolChoice: { type: "auto" },
    abortSignal: signal,
  });
  const response = await readResponse(stream, (type, fullText) => {
    const text = fullText.trim().slice(0, maxTextChars);
    if (text !== "") report(type === "reasoning" ? { type: "thought", text, by: "model" } : { type: "message", text });
  });
  signal.throwIfAborted();
  return response;
}

type Stop = "refused" | "output_limit";
const stops: Record<string, Stop> = { "content-filter": "refused", length: "output_limit" };
const incompleteReasons = new Set(["error", "interrupted", "other"]);

/** The parts of a response in the order in which they start. `stop`: why it stopped early without calling a tool; null: it did not. */
type ModelResponse = { parts: ResponsePart[]; stop: Stop | null };

/** Reads a response. `onText` gets each text when it ends. Throws if the response is incomplete. */
async function readResponse(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  onText: (type: "text" | "reasoning", text: string) => void,
): Promise<ModelResponse> {
  const parts: ResponsePart[] = [];
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
  const keptParts = parts.filter((part) => !("text" in part) || part.text !== "" || part.providerOptions);
  return { parts: keptParts, stop: hasCalls ? null : (ownMember(stops, reason ?? "") ?? null) };
}

function toFailure(error: unknown): StepEnd {
  const apiError = APICallError.isInstance(error) ? error : null;
  const status = apiError?.statusCode ?? null;
  // If the SDK cannot read the body of an error, it says only "Bad Request".
  const body = status !== null && status >= 400 ? messageIn(apiError?.responseBody ?? "") : "";
  const message = (body || reasonOf(error)).slice(0, 500);
  if (status === 402) return { kind: "over_budget", message };
  const { "retry-after-ms": retryMs, "retry-after": retrySeconds } = apiError?.responseHeaders ?? {};
  const ms = Number(retryMs ?? Number(retrySeconds) * 1000);
  // The response has neither header, or the header is a date.
  const retryAfterMs = Number.isFinite(ms) ? ms : null;
  const ending = (status === null ? "cut_answer" : endingOfCall(status, message)) as CallEnding;
  const isBusy = status !== null && status >= 400;
  const code = ending === "context_overflow" || status === null ? undefined : codeOfCall(status);
  return { kind: "failed", ending, code, message: `the model call failed: ${message}`, retryAfterMs, isBusy };
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
  const firstPauseMs = isBusy ? busyPauseMs : pauseMs;
  await pause(Math.min(retryAfterMs ?? firstPauseMs * 2 ** (failures - 1), longestPauseMs), signal);
  signal.throwIfAborted();
}
