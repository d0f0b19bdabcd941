import type { AgentEvent, AgentFailure } from "../agents/agent.ts";
import { toFailure } from "../agents/failure.ts";
import type { ModelAccess } from "../agents/gateway/prices.ts";
import type { Context, OrgId } from "../context.ts";
import { diskFault } from "../db/fault.ts";
import { Answer } from "../grading/judge/rubric.ts";
import { turnOfOrg } from "../http/turns.ts";
import { JobFailure } from "../jobs/handler.ts";
import { isLeaseHeld, type Lease } from "../jobs/queue.ts";
import { generate, type ModelMessage, plainSchema, readFailure } from "../models/generation.ts";
import { gatewayOf, listModelSecrets } from "../models/models.ts";
import { createRedaction } from "../redaction/redaction.ts";
import { checkJudgeAnswer, judgePromptFor } from "../reports/grader.ts";
import type { SessionId } from "../reports/session-events.ts";
import { sharedBudgetsOf } from "./month-budget.ts";

/** Maximum calls and tokens. The second call is a retry that states the error. */
const limits = { calls: 2, tokens: 400_000 };
/** After this many infrastructure faults, a run is no longer judged. A job fails at five. */
const maxFaults = 3;
/** How long an abandoned response is still read, to learn its cost. */
const drainMs = 3_000;

export type JudgeCall = {
  access: ModelAccess;
  session: SessionId;
  /** `usd`: the spending limit; null: there is none. */
  task: { org: OrgId; promptId: string; text: string; goal: string; usd: number | null; mustHavePrice: boolean };
  /** Called with the usage and the errors of each call. */
  onEvent: (event: AgentEvent) => void;
  lease: Lease;
  stop: AbortSignal;
};

/** The judge's answer, or why there is none. */
type JudgeResult = { answer: Answer } | { reason: string };

const schema = plainSchema(Answer);
/** Longest part of an unusable response that the retry repeats. */
const maxResponseChars = 20_000;

/** Asks a judge about a session. Throws a JobFailure if a retry may help. */
export async function callJudge(ctx: Context, call: JudgeCall): Promise<JudgeResult> {
  const { access, session, task, onEvent, lease, stop } = call;
  const judgePrompt = await resultOrReason(judgePromptFor(ctx, session, task.text, task.goal));
  if ("reason" in judgePrompt) return judgePrompt;
  const failures: AgentFailure[] = [];
  const gatewaySession = gatewayOf(ctx).openSession({
    silenceMs: ctx.config.idleTimeoutMs,
    drainMs,
    model: access,
    limits: { ...limits, costUsd: task.usd },
    shared: sharedBudgetsOf(ctx, task.org, task.promptId),
    mustHavePrice: task.mustHavePrice,
    waitForTurn: () => turnOfOrg(ctx, task.org),
    onEvent: (event) => {
      if (event.type === "usage" || event.type === "error") onEvent(event);
    },
    onFailure: (failure) => failures.push(failure),
  });
  const { clean } = createRedaction(listModelSecrets(ctx, task.org));
  const messages: ModelMessage[] = [{ role: "user", content: clean(judgePrompt.prompt) }];
  // The answer of the first call counts if the retry has none.
  let answer: Answer | null = null;
  let reason = "the judge was not called";
  try {
    for (let calls = 0; calls < limits.calls; calls++) {
      const response = await generate(ctx, { access, gatewaySession, schema, messages, stop, ...judgePrompt });
      if ("error" in response) {
        if (answer === null) reason = toReason(ctx, response.error, failures, lease, clean);
        break;
      }
      const check = await resultOrReason(checkJudgeAnswer(ctx, session, response.output, task.goal));
      if ("reason" in check) {
        reason = check.reason;
        break;
      }
      answer = check.answer ?? answer;
      const { objection } = check;
      if (objection === null) break;
      reason = `its response could not be used: ${objection}`;
      const complaint = `Your response is invalid: ${objection}. Respond again with one complete JSON object that matches the schema.`;
      messages.push({ role: "assistant", content: response.text.slice(0, maxResponseChars) || "(nothing)" });
      messages.push({ role: "user", content: complaint });
    }
    return answer === null ? { reason } : { answer };
  } finally {
    const closed = gatewaySession.close();
    // A cancelled job ends immediately. The cost of its last call is counted once it is known.
    if (!stop.aborted || isLeaseHeld(ctx, lease)) await closed;
  }
}

/** Why a call gave no usable answer. Throws if a retry may help. */
function toReason(
  ctx: Context,
  error: unknown,
  failures: AgentFailure[],
  lease: Lease,
  clean: (text: string) => string,
): string {
  const [failure] = failures;
  if (failure && !failure.options.retryable) return clean(failure.detail);
  const { mayPass, retryAfterMs, message: rawMessage } = readFailure(error, ctx.now());
  const message = clean(rawMessage);
  if (!mayPass || lease.faults >= maxFaults) return message;
  const detail = `the judge could not be reached: ${message}`;
  throw new JobFailure(toFailure("judge_unreachable", detail), "fault", retryAfterMs);
}

/** The result of work on a session, or why it can't be done. Throws errors of the disk. */
const resultOrReason = <T>(work: Promise<T>): Promise<T | { reason: string }> =>
  work.catch((error: unknown) => {
    if (diskFault(error) !== null) throw error;
    return { reason: `the session could not be prepared for a judge, or its response not checked: ${String(error)}` };
  });
