import type { TSchema } from "@sinclair/typebox";
import type { GatewaySession } from "../agents/gateway/gateway.ts";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import type { Context } from "../context.ts";
import { reasonOf } from "../errors.ts";
import { parseJsonObject } from "../grading/judge/judge.ts";
import { readRetryAfter } from "../net/retry-after.ts";

const maxOutputTokens = 16_000;

export type ModelMessage = { role: "user" | "assistant"; content: string };

type Generation = {
  access: ModelAccess;
  gatewaySession: GatewaySession;
  /** What `plainSchema` returns. */
  schema: object;
  instructions: string;
  messages: ModelMessage[];
  stop: AbortSignal;
};

/** A schema as plain JSON, without TypeBox's own symbols. */
export const plainSchema = (schema: TSchema): object => JSON.parse(JSON.stringify(schema));

/**
 * Asks a model without tools for one JSON object. Returns the object, undefined if the text has none, or the error of the call. Not every model
 * follows the schema. Throws the reason with which `stop` was aborted.
 */
export async function generate(
  ctx: Context,
  { access, gatewaySession, schema, instructions, messages, stop }: Generation,
): Promise<{ output: unknown; text: string } | { error: unknown }> {
  const [{ generateText, jsonSchema, NoObjectGeneratedError, NoOutputGeneratedError, Output }, { toModel }] =
    await Promise.all([import("ai"), import("../agents/llm/providers.ts")]);
  // The SDK would log warnings to stdout.
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });
  try {
    const { output } = await generateText({
      model: await toModel({ ...access, ...gatewaySession }),
      output: Output.object({ schema: jsonSchema<unknown>(schema) }),
      instructions,
      messages,
      maxOutputTokens,
      maxRetries: 0,
      abortSignal: AbortSignal.any([stop, AbortSignal.timeout(ctx.config.runTimeoutMs)]),
    });
    return { output, text: JSON.stringify(output) };
  } catch (error) {
    stop.throwIfAborted();
    if (NoOutputGeneratedError.isInstance(error)) return { output: undefined, text: "" };
    if (!NoObjectGeneratedError.isInstance(error)) return { error };
    const text = error.text ?? "";
    return { output: parseJsonObject(text), text };
  }
}

/** Details of a failed call. `status` null: no response. `mayPass`: whether the same call may succeed later. */
export function readFailure(
  error: unknown,
  nowMs: number,
): { status: number | null; message: string; retryAfterMs: number; mayPass: boolean } {
  const { statusCode = null, responseHeaders } = (error ?? {}) as {
    statusCode?: number | null;
    responseHeaders?: Record<string, string>;
  };
  return {
    status: statusCode,
    message: reasonOf(error),
    retryAfterMs: readRetryAfter(responseHeaders?.["retry-after"] ?? null, nowMs) ?? 0,
    mayPass: statusCode === null || statusCode < 400 || [408, 429].includes(statusCode) || statusCode >= 500,
  };
}
