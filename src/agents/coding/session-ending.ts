import type { Limits } from "../../config/limits.ts";
import { type AgentFailure, type FailingEnding, toAgentFailure } from "../agent.ts";
import { asksForLogin, asksQuestion, codeOfCall, type EndingName, endingOfCall, endings } from "../endings.ts";
import type { FailedCode } from "../failure.ts";
import type { Ending } from "../goal-checks.ts";
import { messageIn } from "../model-errors.ts";
import type { LimitHit } from "../sandbox/bounds.ts";
import type { ProgramResult } from "./agent-output.ts";
import { type Printed, textsOf } from "./printed.ts";
import { type ModelRecord, wasCut } from "./record.ts";
import type { SessionReporter } from "./session-reporter.ts";

/** Why an agent was stopped before its end: it waited for a login or an answer, or it tried in vain to shorten its conversation. */
export type Wait = "login_needed" | "question" | "context_overflow";

/**
 * What is known about the end of a session. `reason`: what the provider or the agent says about it; null: nothing. `code`: the code of the failed
 * call that ended it.
 */
type SessionEnd = { ending: EndingName; reason: string | null; answer: string | null; code?: FailedCode };

/** What is known about a session when its agent has ended. */
type EndedSession = { reporter: SessionReporter; record: ModelRecord; result: ProgramResult; wait: Wait | null };

/** Endings for which the last answer of the model belongs to the end. */
const endingsWithAnswer = new Set<EndingName>(["refused", "output_limit", "turn_limit"]);
const maxReasonChars = 500;
const maxAnswerChars = 2000;

/** How a session is graded. Throws an AgentFailure if it is not graded. */
export function toEnding(session: EndedSession): Ending {
  const end = withLogin(findEnd(session), session);
  const { ending, answer } = end;
  const { outcome, failure } = endings[ending];
  const { preset, callCount } = session.reporter;
  const isGraded = outcome !== null && (failure === null || callCount > 0);
  if (!isGraded) throw toFailure(end, session);
  const description = describe(preset.name, end, session.result);
  const shownAnswer = endingsWithAnswer.has(ending) ? answer : null;
  const reason = ending === "finished" ? (answer ?? "") : [description, shownAnswer].filter(Boolean).join(" ");
  return {
    outcome: outcome === "claimed" ? "not_judged" : outcome,
    reason: reason.slice(0, maxAnswerChars),
    ending,
  };
}

/** How a session ended. What its model calls show outranks what the agent says, which is often less precise. */
function findEnd({ reporter, record, result, wait }: EndedSession): SessionEnd {
  const { hasReportedEnd, text, error, exitCode, limit } = result;
  const { lastFailure } = record;
  const stop = record.answers.at(-1)?.stop ?? null;
  const answer = text?.trim() || record.lastAnswer;
  const toEnd = (ending: EndingName, reason: string | null = error?.message ?? null): SessionEnd => ({
    ending,
    reason,
    answer,
  });
  if (record.isOverBudget) return toEnd("run_limit", lastFailure?.message ?? null);
  if (limit && !hasReportedEnd) return toEnd(limit.limit === "memory" ? "out_of_memory" : "resource_limit");
  if (wait) return toEnd(wait, wait === "context_overflow" ? record.overflow : null);
  if (!hasReportedEnd && isSignal(exitCode)) return toEnd("killed", null);
  // The agent knows an ordinary end best.
  if (hasReportedEnd && endings[result.ending].failure === null && result.ending !== "finished")
    return toEnd(result.ending);
  const hasFailed = error !== null || !(hasReportedEnd || exitCode === 0);
  // The failed call for a title, for example, doesn't end a session that goes on.
  if (lastFailure && (lastFailure.isMain || hasFailed)) {
    const ending = endingOfCall(lastFailure.status, lastFailure.message);
    if (ending === "context_overflow") return toEnd(ending, lastFailure.message);
    if (ending !== null) return { ...toEnd(ending, lastFailure.message), code: codeOfCall(lastFailure.status) };
  }
  if (wasCut(record)) return toEnd("cut_answer");
  if (stop !== null) return toEnd(stop);
  // An agent that fails to shorten its conversation reports an error of its own.
  if (error && result.ending === "agent_error" && record.overflow !== null)
    return toEnd("context_overflow", record.overflow);
  if (error) return toEnd(result.ending);
  return toEnd(!hasFailed && answer !== null ? "finished" : findExit(result, reporter));
}

/** An agent with a login has no key. If something is rejected, it is its login. */
const withLogin = (end: SessionEnd, { reporter: { preset } }: EndedSession): SessionEnd =>
  end.ending === "key_rejected" && preset.login !== null ? { ...end, ending: "login_needed" } : end;

/** Whether an exit code says that a signal ended the process. */
const isSignal = (exitCode: number) => exitCode > 128 && exitCode <= 128 + 64;

/** How a session without an answer ended. */
function findExit({ hasReportedEnd }: ProgramResult, { printed, callCount }: SessionReporter): EndingName {
  if (hasReportedEnd) return "no_answer";
  const { stdout, stderr } = textsOf(printed);
  if (asksQuestion(stdout) || asksQuestion(stderr)) return "question";
  return callCount === 0 && asksForLogin(`${stdout}\n${stderr}`) ? "login_needed" : "exited";
}

function toFailure(end: SessionEnd, { reporter, result }: EndedSession): AgentFailure {
  const { ending } = end;
  const { failure } = endings[ending];
  const detail = `${describe(reporter.preset.name, end, result)}${describePrinted(reporter.printed)}`;
  if (failure === null) throw new Error(`A session with the ending ${ending} is always graded.`);
  return toAgentFailure(ending as FailingEnding, detail, { code: end.code, ...reachedLimitOf(end, result) });
}

/** The limit of the sandbox that ended a session; null: no limit did. */
function reachedLimitOf({ ending }: SessionEnd, { limit }: ProgramResult): { code?: FailedCode; subject?: string } {
  if (limit === null || (ending !== "out_of_memory" && ending !== "resource_limit")) return {};
  switch (limit.limit) {
    case "memory":
      return { subject: "memoryBytes" satisfies keyof Limits };
    case "workspace_bytes":
      return { subject: "workspaceBytes" satisfies keyof Limits };
    case "processes":
      return { code: "process_limit", subject: String(limit.value) };
  }
}

/** The end as text: a sentence with a period if such a session may be graded, and without a period if it is the detail of a failure. */
function describe(name: string, { ending, reason }: SessionEnd, { exitCode, limit, hasReportedEnd }: ProgramResult) {
  const about = reason === null ? "" : `: ${messageIn(reason).replace(/\.$/, "").slice(0, maxReasonChars)}`;
  const exit = hasReportedEnd ? "ended" : `exited with code ${exitCode}`;
  switch (ending) {
    case "run_limit":
      return `The run reached a limit${about}.`;
    case "out_of_memory":
    case "resource_limit":
      return `${name} reached its limit${limit === null ? "" : ` of ${inWords(limit)}`} and was stopped`;
    case "refused":
      return `The model refused to answer${about}.`;
    case "output_limit":
      return `The last answer of the model reached its maximum length${about}.`;
    case "turn_limit":
      return `${name} reached its limit of turns${about}.`;
    case "context_overflow":
      return `The conversation became too long for the model${about}.`;
    case "login_needed":
      return `${name} needs a login${about}`;
    case "question":
      return `${name} asked something that nobody answers${about}`;
    case "cut_answer":
      return `the last answer of the model of ${name} was cut or broken${about}`;
    case "no_answer":
      return `${name} ${exit} without an answer`;
    case "exited":
      return exitCode === 0 ? `${name} ${exit} without an answer` : `${name} ${exit} in mid-session`;
    case "killed":
      return `${name} was killed by signal ${exitCode - 128} in mid-session`;
    default:
      return `${name} stopped with an error${about}`;
  }
}

function inWords({ limit, value }: LimitHit): string {
  if (limit === "processes") return `${value} processes`;
  return `${Math.floor(value / 1024 ** 2)} MiB ${limit === "memory" ? "of memory" : "in its workspace"}`;
}

/** The end of what the agent printed besides its stream. */
function describePrinted(printed: Printed): string {
  const { stdout, stderr } = textsOf(printed);
  const parts = Object.entries({ stdout, stderr }).filter(([, text]) => text !== "");
  return parts.map(([name, text]) => `; ${name}: ${text.slice(-maxReasonChars)}`).join("");
}
