import type { AgentEvent, AgentFailure } from "../agents/agent.ts";
import type { GatewayOpener } from "../agents/gateway/opener.ts";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import type { Context, OrgId } from "../context.ts";
import { diskFault } from "../db/fault.ts";
import { objectIn } from "../grading/judge/judge.ts";
import { Answer } from "../grading/judge/rubric.ts";
import { JobFailure } from "../jobs/handler.ts";
import { isLeaseHeld, type Lease } from "../jobs/queue.ts";
import { listModelSecrets } from "../models/models.ts";
import { readRetryAfter } from "../net/retry-after.ts";
import type { Grader } from "../reports/grader.ts";
import type { SessionId } from "../reports/session-events.ts";
import { createRedaction } from "./redaction.ts";

/** One call, and one retry that states the error. */
const limits = { calls: 2, tokens: 400_000 };
const maxOutputTokens = 16_000;
/** Infrastructure faults after which a run is no longer judged; a job fails at five. */
const maxFaults = 3;
/** How long an abandoned response is still read, to learn its cost. */
const drainMs = 3_000;

export type JudgeCallParts = {
  gateway: GatewayOpener;
  grader: Pick<Grader, "promptJudge" | "checkAnswer">;
};
/** `usd`: spending limit; null: none. */
export type JudgeTask = { org: OrgId; text: string; goal: string; usd: number | null; mustHavePrice: boolean };
export type Tell = (event: AgentEvent) => void;

/** The schema as plain JSON, without TypeBox's own symbols. */
const plainSchema = JSON.parse(JSON.stringify(Answer));

/** Calls the judge model about one session, through the gateway. */
export function createJudgeCall(ctx: Context, { gateway, grader }: JudgeCallParts) {
  const { config, now } = ctx;

  /** Why a call gave no usable answer. Throws if a retry may help. */
  function toReason(error: unknown, [failure]: AgentFailure[], lease: Lease, clean: (text: string) => string): string {
    if (failure && !failure.options.retryable) return clean(failure.detail);
    const { status, retryAfterMs, ...said } = readFailure(error, now());
    const message = clean(said.message);
    const isFault = status === null || status < 400 || status === 408 || status === 429 || status >= 500;
    if (!isFault || lease.faults >= maxFaults) return message;
    const detail = `the judge could not be reached: ${message}`;
    throw new JobFailure({ cause: "infrastructure", detail }, "fault", retryAfterMs);
  }

  /** The judge's answer, or the reason for none. */
  return async function ask(
    access: ModelAccess,
    session: SessionId,
    task: JudgeTask,
    tell: Tell,
    lease: Lease,
    stop: AbortSignal,
  ) {
    const [{ generateText, jsonSchema, NoObjectGeneratedError, NoOutputGeneratedError, Output }, { toModel }] =
      await Promise.all([import("ai"), import("../agents/llm/providers.ts")]);
    // The SDK would log warnings to stdout.
    Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });
    const asked = await unlessImpossible(grader.promptJudge({ session, text: task.text, goal: task.goal }));
    if ("reason" in asked) return asked;
    const { instructions, prompt } = asked;
    const failures: AgentFailure[] = [];
    const gatewaySession = (await gateway.open()).openSession({
      silenceMs: config.idleTimeoutMs,
      drainMs,
      model: access,
      limits: { ...limits, costUsd: task.usd },
      mustHavePrice: task.mustHavePrice,
      onEvent: (event) => {
        if (event.type === "usage" || event.type === "error") tell(event);
      },
      onFailure: (failure) => failures.push(failure),
    });
    const redaction = createRedaction(listModelSecrets(ctx, task.org));
    const messages: { role: "user" | "assistant"; content: string }[] = [
      { role: "user", content: redaction.clean(prompt) },
    ];
    let usable: Answer | null = null;
    try {
      for (let left = limits.calls; left > 0; left--) {
        let text: string;
        let output: unknown;
        try {
          const answered = await generateText({
            model: await toModel({ ...access, ...gatewaySession }),
            output: Output.object({ schema: jsonSchema<unknown>(plainSchema) }),
            instructions,
            messages,
            maxOutputTokens,
            maxRetries: 0,
            abortSignal: AbortSignal.any([stop, AbortSignal.timeout(config.runTimeoutMs)]),
          });
          output = answered.output;
          text = JSON.stringify(output);
        } catch (error) {
          stop.throwIfAborted();
          const isUnread = NoObjectGeneratedError.isInstance(error) || NoOutputGeneratedError.isInstance(error);
          if (!isUnread)
            return usable
              ? { answer: usable }
              : { reason: toReason(error, failures, lease, (words) => redaction.clean(words)) };
          text = NoObjectGeneratedError.isInstance(error) ? (error.text ?? "") : "";
          output = objectIn(text);
        }
        const checked = await unlessImpossible(grader.checkAnswer({ session, output, goal: task.goal }));
        if ("reason" in checked) return usable ? { answer: usable } : checked;
        const { answer, objection } = checked;
        usable = answer ?? usable;
        const isLast = left === 1 || objection === null;
        if (isLast) return usable ? { answer: usable } : { reason: `its response could not be used: ${objection}` };
        const complaint = `Your response is invalid: ${objection}. Respond again with one complete JSON object that matches the schema.`;
        messages.push({ role: "assistant", content: text.slice(0, 20_000) || "(nothing)" });
        messages.push({ role: "user", content: complaint });
      }
      return { reason: "the judge was not called" };
    } finally {
      const closed = gatewaySession.close();
      // A cancelled job ends at once; the cost of its last call is counted when known.
      if (!stop.aborted || isLeaseHeld(ctx, lease)) await closed;
    }
  };
}

/** The result of work on a session, or why it can't be done. Throws if the disk fails. */
const unlessImpossible = <T>(work: Promise<T>): Promise<T | { reason: string }> =>
  work.catch((error: unknown) => {
    if (diskFault(error) !== null) throw error;
    return { reason: `the session could not be prepared for a judge, or its response not checked: ${String(error)}` };
  });

/** Details of a failed call. `status` null: no response. */
function readFailure(error: unknown, nowMs: number): { status: number | null; message: string; retryAfterMs: number } {
  const { statusCode, responseHeaders } = (error ?? {}) as {
    statusCode?: number;
    responseHeaders?: Record<string, string>;
  };
  return {
    status: statusCode ?? null,
    message: error instanceof Error ? error.message : String(error),
    retryAfterMs: readRetryAfter(responseHeaders?.["retry-after"] ?? null, nowMs) ?? 0,
  };
}
