import type { FailedCode } from "./failure.ts";

/** How often a run is retried after a failure. `fault`: as often as after other infrastructure faults; `attempt`: until it has used its attempts. */
export type Retry = "never" | "fault" | "attempt";

type EndingRule = {
  /** What happened. The table in docs/agents.md shows it. */
  meaning: string;
  /** The outcome of the session if it is graded and success checks don't decide. `claimed`: what the agent itself says. null: it is never graded. */
  outcome: "claimed" | "goal_not_met" | null;
  /**
   * The failure of the run if the session is not graded. Its code is used unless a more precise one is known. null: the session is always graded. If
   * there is an `outcome` too, the session is graded only after a tool call.
   */
  failure: { code: FailedCode; retry: Retry } | null;
};

const failure = <Code extends FailedCode, R extends Retry>(code: Code, retry: R) => ({ code, retry });
/** An ending after which a session is never graded. */
const ungraded = <Code extends FailedCode, R extends Retry>(meaning: string, code: Code, retry: R) =>
  ({ meaning, outcome: null, failure: failure(code, retry) }) as const;

/** Every way in which a session of an agent with a model can end, and what becomes of its run. */
export const endings = {
  finished: { meaning: "The agent gave its answer.", outcome: "claimed", failure: null },
  no_answer: {
    meaning: "The agent ended without an answer.",
    outcome: "claimed",
    failure: failure("agent_failed", "attempt"),
  },
  stopped: { meaning: "The model stopped calling tools without a result.", outcome: "goal_not_met", failure: null },
  refused: {
    meaning: "The model refused to answer, or a content filter of its provider stopped it.",
    outcome: "goal_not_met",
    failure: null,
  },
  output_limit: {
    meaning: "The last answer of the model reached its maximum length.",
    outcome: "goal_not_met",
    failure: null,
  },
  turn_limit: { meaning: "The agent reached its own limit of turns.", outcome: "goal_not_met", failure: null },
  run_limit: {
    meaning: "The run reached a limit on its tool calls, requests, model calls, tokens, cost or time.",
    outcome: "goal_not_met",
    failure: failure("server_limit", "never"),
  },
  context_overflow: {
    meaning: "The conversation became too long for the model, and the agent could not shorten it.",
    outcome: "goal_not_met",
    failure: failure("conversation_too_long", "never"),
  },
  login_needed: ungraded("The agent needs a login, as from a browser.", "agent_login_needed", "never"),
  key_rejected: ungraded("The provider rejects the key, or requires payment.", "model_key_refused", "never"),
  question: ungraded(
    "The agent asked something on its terminal, which nobody answers.",
    "agent_asked_question",
    "never",
  ),
  provider_fault: ungraded("The provider was overloaded, failed or did not respond.", "model_server_error", "fault"),
  provider_rejected: ungraded(
    "The provider rejects the request, as for a model that it does not have.",
    "model_request_rejected",
    "never",
  ),
  cut_answer: ungraded(
    "The last answer of the model ended early, or was no answer.",
    "model_answer_incomplete",
    "fault",
  ),
  not_started: ungraded("The program of the agent could not be started.", "agent_not_started", "fault"),
  unusable: ungraded(
    "The agent is not installed, there is no sandbox, or it cannot use the model or the workspace.",
    "agent_unsuitable",
    "never",
  ),
  disk_full: ungraded("The disk of the machine had no room for the workspace.", "disk_full", "fault"),
  replaced: ungraded("The program of the agent was upgraded or removed during the session.", "agent_replaced", "fault"),
  out_of_memory: ungraded("The agent used more memory than the run allows.", "server_limit", "never"),
  resource_limit: ungraded("The agent used more disk or more processes than the run allows.", "server_limit", "never"),
  agent_error: ungraded("The agent reported an error of its own.", "agent_failed", "attempt"),
  exited: ungraded("The agent exited in the middle of its session.", "agent_crashed", "attempt"),
  killed: ungraded("A signal that evald did not send ended the agent.", "agent_crashed", "attempt"),
  idle: ungraded(
    "The agent did nothing for longer than the idle limit, or did not begin to work.",
    "server_idle_limit",
    "never",
  ),
} as const satisfies Record<string, EndingRule>;

export type EndingName = keyof typeof endings;

/** The wordings of Anthropic, OpenAI, Google, vLLM, llama.cpp and OpenRouter for a conversation that is too long. */
const tooLongMessage =
  /context[ _](length|window|size)|prompt is too long|too many tokens|input token count|maximum number of tokens/i;

/** Whether a provider rejected a conversation because it is too long. `status`: null if unknown. */
const isTooLong = (status: number | null, message: string): boolean =>
  status === 413 || ((status === 400 || status === null) && tooLongMessage.test(message));

const loginRequests = [
  /\b(log ?in|sign ?in|authenticate|authentication (is )?required|not (logged|signed) in|device code)\b/i,
  /\bapi key (is )?(missing|required|not (set|found))\b/i,
];

/** Whether a text asks for a login. */
export const asksForLogin = (text: string): boolean => loginRequests.some((request) => request.test(text));

/** `[y/N]`, `Continue?` and `Press Enter`. */
const questions = [/[[(](y(es)?\/n(o)?)[\])]/i, /\?\s*[>:›❯]?\s*$/, /\bpress (enter|any key|return)\b/i];

/** Whether a text ends with a question that waits for an answer. */
export function asksQuestion(text: string): boolean {
  const end = text.trimEnd().slice(-500);
  return questions.some((question) => question.test(end));
}

/** The ending that a failed model call causes, by the status of its response (null: unknown) and its message. */
export function endingOfCall(status: number | null, message: string): EndingName | null {
  if (isTooLong(status, message)) return "context_overflow";
  if (status === null) return null;
  // A response with a good status whose body could not be read.
  if (status < 400) return "cut_answer";
  if ([401, 402, 403].includes(status)) return "key_rejected";
  return [408, 409, 429].includes(status) || status >= 500 ? "provider_fault" : "provider_rejected";
}

/** The code of a failed model call, by the status of its response; null: there was none. */
export function codeOfCall(status: number | null): FailedCode {
  if (status === null) return "model_unreachable";
  if (status === 402) return "model_payment_required";
  if (status === 401 || status === 403) return "model_key_refused";
  if (status === 404) return "model_not_found";
  if (status === 429) return "model_rate_limited";
  if (status < 400) return "model_answer_incomplete";
  return status === 408 || status === 409 || status >= 500 ? "model_server_error" : "model_request_rejected";
}

/** The ending that an agent's own error describes. `status`: the status of the model's response, if the agent reports it. */
export function endingOfError(status: number | null, message: string): EndingName {
  const ending = endingOfCall(status, message);
  if (ending !== null) return ending;
  if (/\bmax(imum)?\b.{0,20}\bturns?\b|\bturn limit\b/i.test(message)) return "turn_limit";
  return asksForLogin(message) ? "login_needed" : "agent_error";
}
