import { type AgentEvent, AgentFailure, type EventSource } from "../agents/agent.ts";
import type { Task } from "../agents/task.ts";

type Limit = { limit: string; value: number; unit: string };
type Timers = ReturnType<typeof setTimeout>[];

type Hooks = {
  /** Stores an event of the runner itself. */
  tell: (event: AgentEvent) => void;
  /** Warns the agent that a limit is near. */
  warn: (limit: string) => void;
  /** Fails the run. */
  fail: (failure: AgentFailure) => void;
};

/** Part of the wall clock reserved for a clean end, at most 5 s. */
const reserve = (wallClockMs: number) => Math.min(5000, wallClockMs * 0.2);
const nearShare = 0.8;
/** Commands stopped for the same limit: each one is reported to the agent, and the last one ends the run. */
const maxStopped = 3;

/**
 * Enforces the limits of a run outside its agent. Near a limit the agent is warned to wrap up; when one is reached `over` aborts and
 * the session so far is the result. For rule-based agents only the time limits apply here.
 */
export type Bounds = ReturnType<typeof openBounds>;

/** Sets the limits of a run. Its clocks start with `startClocks`. */
export const openBounds = (kind: "rules" | "model", limits: Task["limits"], hooks: Hooks) => ({
  ...hooks,
  ...{ kind, limits },
  over: new AbortController(),
  /** The limit that was reached first. */
  reached: null as Limit | null,
  used: { tool_calls: 0, requests: 0, bytes_out: 0 },
  /** Limits that the agent was warned of. */
  warned: new Set<string>(),
  /** Commands stopped for the same limit. */
  stopped: new Map<string, number>(),
  /** Tool calls in progress: a command may run silently for longer than the idle limit. */
  busy: 0,
  isRunning: false,
  isEnded: false,
  clocks: [] as Timers,
  idleTimers: [] as Timers,
});

/** Starts the clocks. */
export function startClocks(bounds: Bounds): void {
  const { kind, limits, fail } = bounds;
  const { wallClockMs } = limits;
  const time = { limit: "wall_clock", value: wallClockMs, unit: "ms" };
  const tooLong = `the run took longer than ${inWords(time)} and was stopped`;
  const workMs = wallClockMs - reserve(wallClockMs);
  bounds.isRunning = true;
  bounds.clocks = [
    setTimeout(() => fail(new AgentFailure("timeout", tooLong)), wallClockMs),
    ...(kind === "model"
      ? [setTimeout(reach, workMs, bounds, time), setTimeout(approach, nearShare * workMs, bounds, time)]
      : []),
  ];
  restartIdleTime(bounds);
}

/** Stops the clocks. */
export function stopClocks(bounds: Bounds): void {
  bounds.isRunning = false;
  for (const timer of [...bounds.clocks, ...bounds.idleTimers]) clearTimeout(timer);
}

/** Counts an event of the run. */
export function countEvent(bounds: Bounds, event: AgentEvent, source: EventSource): void {
  const { kind, stopped, warn } = bounds;
  if (event.type === "tool_call") bounds.busy++;
  if (event.type === "tool_result") bounds.busy--;
  // Requests made by a page are not activity of the agent, and have their own limit.
  const isOfPage = event.type === "http" && event.purpose === "page";
  if (!isOfPage) restartIdleTime(bounds);
  if (event.type === "end") {
    bounds.isEnded = true;
    stopClocks(bounds);
  } else if (event.type === "tool_call") use(bounds, "tool_calls", 1);
  else if (event.type === "http") {
    if (!isOfPage) use(bounds, "requests", 1);
    use(bounds, "bytes_out", event.bytesOut ?? 0);
  } else if (event.type === "limit" && source === "agent" && kind === "model") {
    const { limit, value, unit } = event;
    const times = (stopped.get(limit) ?? 0) + (event.near ? 0 : 1);
    stopped.set(limit, times);
    warn(limit);
    if (times >= maxStopped) reach(bounds, { limit, value, unit });
  }
}

/** The final events if a limit ended the session. Throws an AgentFailure if the agent did nothing before. */
export function finalEventsOf({ reached, isEnded, used }: Bounds): AgentEvent[] {
  if (!reached || isEnded) return [];
  const amount = inWords(reached);
  if (used.tool_calls === 0)
    throw new AgentFailure(
      reached.limit === "wall_clock" ? "timeout" : "budget",
      `the model made no tool call before the run reached its limit of ${amount}`,
    );
  return [
    { type: "limit", ...reached },
    { type: "end", outcome: "goal_not_met", reason: `The run reached its limit: ${amount} (${reached.limit}).` },
  ];
}

function use(bounds: Bounds, name: keyof Bounds["used"], amount: number): void {
  const { used, limits, kind } = bounds;
  used[name] += amount;
  if (kind !== "model") return;
  const { value, unit } = {
    tool_calls: { value: limits.maxToolCalls, unit: "calls" },
    requests: { value: limits.maxRequests, unit: "requests" },
    bytes_out: { value: limits.maxBytesOut, unit: "bytes" },
  }[name];
  if (used[name] > value) reach(bounds, { limit: name, value, unit });
  else if (used[name] >= nearShare * value) approach(bounds, { limit: name, value, unit });
}

function reach(bounds: Bounds, limit: Limit): void {
  if (bounds.isEnded) return;
  bounds.reached ??= limit;
  bounds.over.abort(new Error(`the limit ${limit.limit} was reached`));
}

function approach({ isEnded, reached, warned, tell, warn }: Bounds, limit: Limit): void {
  if (isEnded || reached || warned.has(limit.limit)) return;
  warned.add(limit.limit);
  tell({ type: "limit", ...limit, near: true });
  warn(limit.limit);
}

function restartIdleTime(bounds: Bounds): void {
  const { isRunning, idleTimers, busy, kind, fail, tell } = bounds;
  const { idleMs } = bounds.limits;
  if (!isRunning) return;
  for (const timer of idleTimers) clearTimeout(timer);
  const idle = { limit: "idle", value: idleMs, unit: "ms" };
  const tooQuiet = `the agent was idle for ${inWords(idle)} and was stopped`;
  bounds.idleTimers =
    busy > 0 && kind === "model"
      ? []
      : [
          setTimeout(() => fail(new AgentFailure("timeout", tooQuiet)), idleMs),
          // The agent is not warned, since a warning would reset the idle time.
          setTimeout(() => tell({ type: "limit", ...idle, near: true }), nearShare * idleMs),
        ];
}

const inWords = ({ value, unit }: Limit) =>
  unit === "ms" ? (value === 1000 ? "1 second" : `${value / 1000} seconds`) : `${value} ${unit}`;
