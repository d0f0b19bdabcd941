import { dollars, duration } from "../grading/text.ts";
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
  budget: "Waiting for a budget",
  paused_organization: "Paused",
  paused_agent: "Paused",
};

/** Explains in sentences what a run waits for. */
export function waitingText({ what, agent, sandbox, labels }: WaitingFor): string {
  if (what === "budget")
    return "Active runs have reserved the rest of a monthly budget. The run starts when they leave enough of it.";
  if (what === "paused_organization")
    return "An operator of this server has paused new runs of the organization. The run starts when they are resumed.";
  if (what === "paused_agent")
    return `An operator of this server has paused new runs with the agent ${agent}. The run starts when they are resumed.`;
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
  ci: "CI",
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

function formatUsage(value: number, unit: LimitUsage["unit"]): string {
  if (unit === "seconds") return duration(value);
  return unit === "usd" ? dollars(value) : value.toLocaleString("en");
}

/** "12 of 400", "0.8s of 10m 0s". */
export const usageText = ({ used, limit, unit }: LimitUsage): string =>
  limit === null
    ? `${formatUsage(used, unit)} (no limit)`
    : `${formatUsage(used, unit)} of ${formatUsage(limit, unit)}`;

type RunTimes = { startedAt: string | null; completedAt: string | null };

/** How long a run has taken so far, or took in total. Before it starts, the result is a dash. */
export function runDuration({ startedAt, completedAt }: RunTimes, now: number): string {
  if (startedAt === null) return "–";
  const end = completedAt === null ? now : Date.parse(completedAt);
  return duration(Math.max(0, end - Date.parse(startedAt)) / 1000);
}
