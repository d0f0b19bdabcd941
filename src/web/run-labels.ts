import type { EndCause } from "../agents/failure.ts";
import { dollars, duration, sentence } from "../grading/text.ts";
import type { Attempt, EvalRequest, Run } from "../runs/schema.ts";
import type { LimitUsage } from "../runs/usage.ts";

type WaitingFor = NonNullable<Run["waitingFor"]>;

export const statusLabels: Record<Run["status"], string> = {
  pending: "Pending",
  running: "Running",
  completed: "Completed",
  failed: "Failed",
  superseded: "Superseded",
};

export const waitingLabels: Record<WaitingFor["what"], string> = {
  worker: "Waiting for a worker",
  slot: "Waiting for a slot",
};

/** What a run waits for, in sentences. */
export function waitingText({ what, agent, sandbox, labels }: WaitingFor): string {
  const parts = [
    `the agent ${agent}`,
    ...(sandbox ? ["a sandbox"] : []),
    ...(labels.length > 0 ? [`the ${labels.length === 1 ? "label" : "labels"} ${labels.join(", ")}`] : []),
  ];
  const needs = new Intl.ListFormat("en").format(parts);
  return what === "worker" ? `No connected worker has ${needs}.` : `Every worker with ${needs} is busy.`;
}

export const triggerLabels: Record<EvalRequest["trigger"], string> = {
  schedule: "Schedule",
  api: "API",
  mcp: "MCP",
  web: "Web",
  cli: "CLI",
};

export const attemptLabels: Record<NonNullable<Attempt["outcome"]>, string> = {
  done: "completed",
  failed: "failed",
  retried: "will retry",
  released: "interrupted by a restart",
  lost: "process died",
  cancelled: "cancelled",
};

/** Title and remedy for each cause. */
const causes: Record<EndCause, { title: string; remedy: string }> = {
  timeout: {
    title: "Timed out",
    remedy: "Simplify the task, or raise EVALD_RUN_TIMEOUT_SECONDS or EVALD_IDLE_TIMEOUT_SECONDS.",
  },
  budget: {
    title: "Limit reached",
    remedy: "Simplify the task, or raise this limit.",
  },
  credentials: {
    title: "Missing or invalid credentials",
    remedy:
      "Check the organization’s model API key (evald model test MODEL) and the credentials that the product requires.",
  },
  infrastructure: {
    title: "Environment error",
    remedy: "Check that the URLs are reachable from this server, then run it again.",
  },
  agent_crashed: {
    title: "Agent crashed",
    remedy: "Run it again. If it crashes again, check the server log.",
  },
  cancelled: { title: "Cancelled", remedy: "Run it again to get a report." },
  superseded: { title: "Superseded", remedy: "See the newer run." },
};

/** A failure as title, detail and remedy. */
export function failureText(cause: EndCause, detail: string | null): { title: string; detail: string; remedy: string } {
  const text = detail ?? "";
  // A URL keeps its lower case.
  const capitalized = /^\S*:\/\//.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return { ...causes[cause], detail: sentence(capitalized) };
}

const formatUsage = (value: number, unit: LimitUsage["unit"]): string =>
  unit === "seconds" ? duration(value) : unit === "usd" ? dollars(value) : value.toLocaleString("en");

/** "12 of 400", "0.8s of 10m 0s". */
export const usageText = ({ used, limit, unit }: LimitUsage): string =>
  limit === null
    ? `${formatUsage(used, unit)} (no limit)`
    : `${formatUsage(used, unit)} of ${formatUsage(limit, unit)}`;

type RunTimes = { startedAt: string | null; completedAt: string | null };

/** Duration of a run so far or in total; a dash before it starts. */
export function runDuration({ startedAt, completedAt }: RunTimes, now: number): string {
  if (startedAt === null) return "–";
  const end = completedAt === null ? now : Date.parse(completedAt);
  return duration(Math.max(0, end - Date.parse(startedAt)) / 1000);
}
