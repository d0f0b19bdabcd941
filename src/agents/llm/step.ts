import { APICallError, type ModelMessage, type streamText } from "ai";
import type { AgentEvent, FailureCause } from "../agent.ts";
import { bounded } from "./tool.ts";

/** Result of one model call and its tool calls. `final`: retrying would not help. */
export type StepEnd =
  | { kind: "done"; messages: ModelMessage[]; calls: number }
  | { kind: "over_budget"; message: string }
  | {
      kind: "failed";
      cause: FailureCause;
      message: string;
      final: boolean;
      retryAfterMs: number | null;
      isBusy: boolean;
      /** The conversation is too long for the model. */
      isTooLong: boolean;
    };

type Terms = { nextId: () => string; tell: (event: AgentEvent) => void; signal: AbortSignal; maxTextChars: number };

/** Reads one AI SDK step to its end and reports the model's thoughts and messages. Throws the signal's reason. */
export async function takeStep(
  result: Pick<ReturnType<typeof streamText>, "stream" | "responseMessages">,
  { nextId, tell, signal, maxTextChars }: Terms,
): Promise<StepEnd> {
  const texts = new Map<string, { type: "thought" | "message"; text: string }>();
  const say = (id: string) => {
    const { type, text } = texts.get(id) ?? { type: "message", text: "" };
    texts.delete(id);
    const short = text.trim().slice(0, maxTextChars);
    if (short === "") return;
    tell(type === "thought" ? { type, text: short, by: "model" } : { type, text: short });
  };
  let calls = 0;
  let failed: unknown;
  let reason: string | null = null;
  try {
    for await (const part of result.stream) {
      if (part.type === "reasoning-delta" || part.type === "text-delta") {
        const type = part.type === "text-delta" ? "message" : "thought";
        const key = `${type} ${part.id}`;
        texts.set(key, { type, text: (texts.get(key)?.text ?? "") + part.text });
      } else if (part.type === "reasoning-end") say(`thought ${part.id}`);
      else if (part.type === "text-end") say(`message ${part.id}`);
      else if (part.type === "tool-call") {
        calls++;
        // The SDK itself rejects calls of unknown tools and invalid input.
        if (part.invalid) {
          const id = nextId();
          const input =
            part.input !== null && typeof part.input === "object" ? { ...part.input } : { input: part.input };
          const tool = part.toolName.slice(0, 200);
          tell({ type: "tool_call", id, tool, input: bounded(input) });
          const message = part.error instanceof Error ? part.error.message : String(part.error);
          tell({
            type: "tool_result",
            id,
            tool,
            ok: false,
            output: { message: message.slice(0, 1000) },
          });
        }
      } else if (part.type === "error") failed = part.error;
      else if (part.type === "finish-step") reason = part.finishReason;
    }
    for (const id of texts.keys()) say(id);
    signal.throwIfAborted();
    if (failed === undefined && (calls > 0 || !isCut(reason)))
      return { kind: "done", messages: await result.responseMessages, calls };
  } catch (error) {
    signal.throwIfAborted();
    failed ??= error;
  }
  return toFailure(failed ?? new Error("the response is incomplete"));
}

const isCut = (reason: string | null) => reason === null || reason === "error" || reason === "other";

/** Wordings of Anthropic, OpenAI, Google, vLLM, llama.cpp and OpenRouter. */
const tooLong =
  /context (length|window|size)|prompt is too long|too many tokens|input token count|maximum number of tokens/i;

function toFailure(error: unknown): StepEnd {
  const message = (error instanceof Error ? error.message : String(error)).slice(0, 500);
  const call = APICallError.isInstance(error) ? error : null;
  const status = call?.statusCode;
  if (status === 402) return { kind: "over_budget", message };
  const ms = Number(call?.responseHeaders?.["retry-after-ms"] ?? Number(call?.responseHeaders?.["retry-after"]) * 1000);
  const retryAfterMs = Number.isFinite(ms) ? ms : null;
  const cause = status === 401 || status === 403 ? "credentials" : "infrastructure";
  const final = status !== undefined && status >= 400 && status < 500 && ![408, 409, 429].includes(status);
  const isBusy = status !== undefined && status >= 400;
  const isTooLong = status === 413 || (status === 400 && tooLong.test(message));
  return {
    kind: "failed",
    cause,
    message: `the model call failed: ${message}`,
    final,
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
  const aborted = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => aborted.resolve(), { once: true });
  const timer = setTimeout(aborted.resolve, ms);
  await aborted.promise;
  clearTimeout(timer);
  signal.throwIfAborted();
}
