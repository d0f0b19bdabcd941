import type { AgentFailure } from "../agents/agent.ts";
import { type FailedCode, type Failure, toFailure } from "../agents/failure.ts";
import { isSetByPrompt, type Limits, limitNames, settingOf } from "../config/limits.ts";
import type { Context } from "../context.ts";
import type { RunLimits } from "./run-limits.ts";
import type { RunRow } from "./run-row.ts";
import { findCostLimit } from "./spending.ts";

/** The limits by the name that they have in events. */
const limitsByEventName: Record<string, keyof Limits> = {
  wall_clock: "wallClockSeconds",
  tool_calls: "toolCalls",
  requests: "requests",
  bytes_out: "bytesOut",
  model_calls: "modelCalls",
  model_tokens: "tokens",
  model_cost: "costUsd",
};

/** Adds to the failure of a run who set the limit that it reached: its prompt, its organization or the operator. */
export function withLimitOwner(
  ctx: Context,
  run: RunRow,
  { reachedLimit, modelLimit, limits }: RunLimits,
  { failure }: AgentFailure,
): Failure {
  const { code, detail, subject } = failure;
  const toTimeFailure = (name: keyof Limits, codeOfPrompt: FailedCode, ms: number) =>
    toFailure(isSetByPrompt(run.task.limits, ctx.config, name) ? codeOfPrompt : code, detail, String(ms / 1000));
  if (code === "server_time_limit") return toTimeFailure("wallClockSeconds", "prompt_time_limit", limits.wallClockMs);
  if (code === "server_idle_limit") return toTimeFailure("idleSeconds", "prompt_idle_limit", limits.idleMs);
  if (code !== "server_limit") return failure;
  // The failure itself names a limit of memory.
  const namedLimit = limitNames.find((name) => name === subject);
  const name = namedLimit ?? limitsByEventName[reachedLimit?.limit ?? modelLimit ?? ""];
  if (name === undefined) return failure;
  if (name === "costUsd") {
    const limit = findCostLimit(ctx, run);
    return toFailure(limit.code, detail, limit.usd === null ? null : String(limit.usd));
  }
  return isSetByPrompt(run.task.limits, ctx.config, name)
    ? toFailure("prompt_limit", detail, name)
    : toFailure("server_limit", detail, settingOf(name));
}
