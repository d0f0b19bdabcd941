import { dollars, duration } from "../grading/words.ts";
import type { Attempt, EvalRequest, Run } from "../runs/schema.ts";
import type { Used } from "../runs/usage.ts";

export const statusWords: Record<Run["status"], string> = {
  pending: "Waiting",
  running: "Running",
  completed: "Completed",
  failed: "Failed",
  superseded: "Superseded",
};

export const triggerWords: Record<EvalRequest["trigger"], string> = {
  schedule: "Schedule",
  api: "API",
  mcp: "MCP",
  web: "Web",
  cli: "Command line",
};

export const endWords: Record<NonNullable<Attempt["ended"]>, string> = {
  done: "made the report",
  failed: "failed",
  retried: "to be tried again",
  released: "given back when the service stopped",
  lost: "lost with its process",
  cancelled: "called off",
};

/** The cause of a failure, and what a person can do about it. */
const causes: Record<string, { title: string; remedy: string }> = {
  timeout: {
    title: "It took too long",
    remedy: "Ask for less in the task, or give runs more time: EVALD_RUN_TIMEOUT_SECONDS, EVALD_IDLE_TIMEOUT_SECONDS.",
  },
  budget: {
    title: "It reached a limit",
    remedy: "Ask for less in the task, or raise the limit that is named.",
  },
  credentials: {
    title: "Credentials are missing or not accepted",
    remedy: "Look at the model key of the organisation (evald model test MODEL), and at what the product asks for.",
  },
  infrastructure: {
    title: "Something around the agent failed",
    remedy: "Look whether its addresses can be reached from this machine, then run it again.",
  },
  agent_crashed: {
    title: "The agent crashed",
    remedy: "Run it again. If it crashes again, the log of the service has the details.",
  },
  cancelled: { title: "It was cancelled", remedy: "Run it again when you want its report." },
};

/** What kept an evaluation from being made: title, sentence, remedy. */
export function failureWords(failureReason: string): { title: string; detail: string; remedy: string } {
  const [, cause = "", rest = failureReason] = /^([a-z_]+): ?([\s\S]*)$/.exec(failureReason) ?? [];
  const known = Object.hasOwn(causes, cause) ? causes[cause] : undefined;
  const detail = known ? rest : failureReason;
  return {
    title: known?.title ?? "No evaluation was made",
    // An address is no word that begins a sentence.
    detail: /^\S*:\/\//.test(detail) ? detail : detail.charAt(0).toUpperCase() + detail.slice(1),
    remedy: known?.remedy ?? "Run it again.",
  };
}

const amount = (value: number, unit: Used["unit"]): string =>
  unit === "seconds" ? duration(value) : unit === "usd" ? dollars(value) : value.toLocaleString("en");

/** "12 of 400", "0.8s of 10m 0s". */
export const usedWords = ({ used, most, unit }: Used): string =>
  `${amount(used, unit)} of ${most === null ? "any" : amount(most, unit)}`;

/** How long a run has taken, or takes so far; a dash before it begins. */
export function tookWords({ startedAt, completedAt }: Pick<Run, "startedAt" | "completedAt">, now: number): string {
  if (startedAt === null) return "–";
  const end = completedAt === null ? now : Date.parse(completedAt);
  return duration(Math.max(0, end - Date.parse(startedAt)) / 1000);
}
