import { type AgentEvent, AgentFailure, type EventSource, toAgentFailure } from "../agents/agent.ts";
import type { Task } from "../agents/task.ts";
import { successCheckTool } from "../grading/events.ts";

/** A limit as events state it. `limit`: its name, such as `wall_clock`. */
type Limit = { limit: string; value: number; unit: string };
type Timers = ReturnType<typeof setTimeout>[];

type LimitHooks = {
  /** Stores an event of the runner itself. */
  storeEvent: (event: AgentEvent) => void;
  /** Warns the agent that a limit is near. */
  warnAgent: (limit: string) => void;
  /** Fails the run. */
  failRun: (failure: AgentFailure) => void;
};

/** Part of the wall clock reserved for a clean end, at most 5 s. */
const endReserveMs = (wallClockMs: number) => Math.min(5000, wallClockMs * 0.2);
/** A limit is near when at least this share of it is used. */
const nearShare = 0.8;
/** A busy machine or a long setup may delay an agent's first model call by up to this many times its idle limit. */
const startFactor = 2;
const maxPrintedChars = 500;
/** How many commands may be stopped at one limit. The agent is told each time. The last stop ends the run. */
const maxStops = 3;

export type RunLimits = ReturnType<typeof createRunLimits>;

/**
 * Enforces the limits of a run outside its agent. Near a limit, the agent is warned so that it finishes. When a limit is reached, `stopper` aborts,
 * and the session so far is the result. For rule-based agents, only the time limits apply here. The clocks start with `startClocks`.
 */
export const createRunLimits = (kind: "rules" | "model", limits: Task["limits"], hooks: LimitHooks) => ({
  ...hooks,
  kind,
  limits,
  stopper: new AbortController(),
  /** The limit that was reached first. */
  reachedLimit: null as Limit | null,
  /** The model limit that was reached last. */
  modelLimit: null as string | null,
  used: { tool_calls: 0, requests: 0, bytes_out: 0 },
  /** Limits that the agent was warned of. */
  warnedLimits: new Set<string>(),
  /** Number of commands stopped, by limit. */
  stopsByLimit: new Map<string, number>(),
  /** What the agent has printed since its last activity; null: nothing. */
  printed: null as string | null,
  /** The number of tool calls in progress. A command may run silently for longer than the idle limit. */
  callsInProgress: 0,
  isRunning: false,
  /** Whether the agent has begun to work. */
  isWorking: false,
  isEnded: false,
  clocks: [] as Timers,
  idleTimers: [] as Timers,
});

/** Starts the clocks. The clocks of an agent with a model start only when it begins to work, because before that it also waits for the machine. */
export function startClocks(runLimits: RunLimits): void {
  runLimits.isRunning = true;
  if (runLimits.kind === "rules") beginWork(runLimits);
  else restartIdleTime(runLimits);
}

/** Starts the clocks of an agent's work. */
function beginWork(runLimits: RunLimits): void {
  const { kind, limits, failRun } = runLimits;
  const { wallClockMs } = limits;
  const time = { limit: "wall_clock", value: wallClockMs, unit: "ms" };
  const tooLong = `the run took longer than ${inWords(time)} and was stopped`;
  const workMs = wallClockMs - endReserveMs(wallClockMs);
  runLimits.isWorking = true;
  runLimits.clocks = [setTimeout(() => failRun(new AgentFailure("server_time_limit", tooLong)), wallClockMs)];
  if (kind === "model") {
    const toEnd = setTimeout(endAtLimit, workMs, runLimits, time);
    const toWarn = setTimeout(warnNearLimit, nearShare * workMs, runLimits, time);
    runLimits.clocks.push(toEnd, toWarn);
  }
  restartIdleTime(runLimits);
}

/** Stops the clocks. */
export function stopClocks(runLimits: RunLimits): void {
  runLimits.isRunning = false;
  for (const timer of [...runLimits.clocks, ...runLimits.idleTimers]) clearTimeout(timer);
}

/** Counts an event of the run. */
export function countEvent(runLimits: RunLimits, event: AgentEvent, source: EventSource): void {
  if (event.type === "tool_call") runLimits.callsInProgress++;
  if (event.type === "tool_result") runLimits.callsInProgress--;
  if (runLimits.isRunning && !runLimits.isWorking && isWork(event)) beginWork(runLimits);
  // Requests made by a page are not activity of the agent, and have their own limit. A text that the agent prints is no activity either.
  const isPageRequest = event.type === "http" && event.purpose === "page";
  runLimits.printed = event.type === "milestone" && event.name === "agent_printed" ? event.detail.text : null;
  if (!isPageRequest && runLimits.printed === null) restartIdleTime(runLimits);
  switch (event.type) {
    case "end":
      runLimits.isEnded = true;
      stopClocks(runLimits);
      break;
    case "tool_call":
      countUse(runLimits, "tool_calls", 1);
      break;
    case "http":
      if (!isPageRequest) countUse(runLimits, "requests", 1);
      countUse(runLimits, "bytes_out", event.bytesOut ?? 0);
      break;
    case "limit":
      countLimit(runLimits, event, source);
  }
}

/** Notes a model limit that was reached. For any other limit, counts the commands of an agent that were stopped. */
function countLimit(runLimits: RunLimits, event: Extract<AgentEvent, { type: "limit" }>, source: EventSource): void {
  const { kind, stopsByLimit, warnAgent } = runLimits;
  const { limit, value, unit, near } = event;
  if (source === "gateway" && !near) runLimits.modelLimit = limit;
  if (source !== "agent" || kind !== "model") return;
  // The agent either stopped a command at a limit of the sandbox or warns of such a limit.
  const stops = (stopsByLimit.get(limit) ?? 0) + (near ? 0 : 1);
  stopsByLimit.set(limit, stops);
  warnAgent(limit);
  if (stops >= maxStops) endAtLimit(runLimits, { limit, value, unit });
}

/** Whether an event shows that an agent with a model is working. Before that, its workspace is set up and its success checks run. */
function isWork(event: AgentEvent): boolean {
  if (event.type === "milestone") return event.name === "work_began";
  if (event.type === "tool_call") return event.tool !== successCheckTool;
  return ["usage", "thought", "message", "end"].includes(event.type);
}

/** The final events if a limit ended the session. Throws an AgentFailure if the agent had not done anything. */
export function finalEventsOf({ reachedLimit, isEnded, used }: RunLimits): AgentEvent[] {
  if (!reachedLimit || isEnded) return [];
  const amount = inWords(reachedLimit);
  if (used.tool_calls === 0)
    throw new AgentFailure(
      reachedLimit.limit === "wall_clock" ? "server_time_limit" : "server_limit",
      `the model made no tool call before the run reached its limit of ${amount}`,
    );
  return [
    { type: "limit", ...reachedLimit },
    {
      type: "end",
      outcome: "goal_not_met",
      reason: `The run reached its limit: ${amount} (${reachedLimit.limit}).`,
      ending: "run_limit",
    },
  ];
}

function countUse(runLimits: RunLimits, name: keyof RunLimits["used"], amount: number): void {
  const { used, limits, kind } = runLimits;
  used[name] += amount;
  if (kind !== "model") return;
  const { value, unit } = {
    tool_calls: { value: limits.maxToolCalls, unit: "calls" },
    requests: { value: limits.maxRequests, unit: "requests" },
    bytes_out: { value: limits.maxBytesOut, unit: "bytes" },
  }[name];
  if (used[name] > value) endAtLimit(runLimits, { limit: name, value, unit });
  else if (used[name] >= nearShare * value) warnNearLimit(runLimits, { limit: name, value, unit });
}

function endAtLimit(runLimits: RunLimits, limit: Limit): void {
  if (runLimits.isEnded) return;
  runLimits.reachedLimit ??= limit;
  runLimits.stopper.abort(new Error(`the limit ${limit.limit} was reached`));
}

function warnNearLimit({ isEnded, reachedLimit, warnedLimits, storeEvent, warnAgent }: RunLimits, limit: Limit): void {
  if (isEnded || reachedLimit || warnedLimits.has(limit.limit)) return;
  warnedLimits.add(limit.limit);
  storeEvent({ type: "limit", ...limit, near: true });
  warnAgent(limit.limit);
}

function restartIdleTime(runLimits: RunLimits): void {
  const { isRunning, isWorking, idleTimers, callsInProgress, kind, failRun, storeEvent } = runLimits;
  const { idleMs } = runLimits.limits;
  if (!isRunning) return;
  for (const timer of idleTimers) clearTimeout(timer);
  if (!isWorking) {
    const startMs = startFactor * idleMs;
    const notStarted = `the agent did not call its model within ${inWords({ value: startMs, unit: "ms" })}`;
    runLimits.idleTimers = [setTimeout(() => failRun(toIdleFailure(runLimits, notStarted)), startMs)];
    return;
  }
  runLimits.idleTimers = [];
  if (callsInProgress > 0 && kind === "model") return;
  const idle = { limit: "idle", value: idleMs, unit: "ms" };
  const tooQuiet = `the agent was idle for ${inWords(idle)} and was stopped`;
  runLimits.idleTimers = [
    setTimeout(() => failRun(toIdleFailure(runLimits, tooQuiet)), idleMs),
    // The agent gets no warning, because a warning would reset the idle time.
    setTimeout(() => storeEvent({ type: "limit", ...idle, near: true }), nearShare * idleMs),
  ];
}

const toIdleFailure = ({ printed }: RunLimits, problem: string): AgentFailure =>
  toAgentFailure("idle", printed === null ? problem : `${problem}; it had printed: ${printed.slice(-maxPrintedChars)}`);

function inWords({ value, unit }: Omit<Limit, "limit">): string {
  if (unit !== "ms") return `${value} ${unit}`;
  return value === 1000 ? "1 second" : `${value / 1000} seconds`;
}
