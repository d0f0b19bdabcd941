import { type AgentEvent, AgentFailure, type EventSource } from "../agents/agent.ts";
import type { Task } from "../agents/task.ts";

type Hit = { limit: string; value: number; unit: string };

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

const inWords = ({ value, unit }: Hit) =>
  unit === "ms" ? (value === 1000 ? "1 second" : `${value / 1000} seconds`) : `${value} ${unit}`;

/**
 * Enforces the limits of a run outside its agent. Near a limit the agent is warned to wrap up; when one is reached `signal` aborts and
 * the session so far is the result. For rule-based agents only the time limits apply here.
 */
export function createBounds(kind: "rules" | "model", limits: Task["limits"], { tell, warn, fail }: Hooks) {
  const { wallClockMs, idleMs } = limits;
  const over = new AbortController();
  const used = { tool_calls: 0, requests: 0, bytes_out: 0 };
  const most = {
    tool_calls: { value: limits.maxToolCalls, unit: "calls" },
    requests: { value: limits.maxRequests, unit: "requests" },
    bytes_out: { value: limits.maxBytesOut, unit: "bytes" },
  };
  const warned = new Set<string>();
  const stopped = new Map<string, number>();
  let hit: Hit | null = null;
  let isEnded = false;
  /** Tool calls in progress: a command may run silently for longer than the idle limit. */
  let busy = 0;

  function reach(what: Hit): void {
    if (isEnded) return;
    hit ??= what;
    over.abort(new Error(`the limit ${what.limit} was reached`));
  }

  function near(what: Hit): void {
    if (isEnded || hit || warned.has(what.limit)) return;
    warned.add(what.limit);
    tell({ type: "limit", ...what, near: true });
    warn(what.limit);
  }

  function use(limit: keyof typeof used, amount: number): void {
    used[limit] += amount;
    if (kind !== "model") return;
    const what = { limit, ...most[limit] };
    if (used[limit] > what.value) reach(what);
    else if (used[limit] >= nearShare * what.value) near(what);
  }

  const time = { limit: "wall_clock", value: wallClockMs, unit: "ms" };
  const idle = { limit: "idle", value: idleMs, unit: "ms" };
  const tooLong = `the run took longer than ${inWords(time)} and was stopped`;
  const tooQuiet = `the agent was idle for ${inWords(idle)} and was stopped`;
  const worked = wallClockMs - reserve(wallClockMs);
  let clocks: ReturnType<typeof setTimeout>[] = [];
  let quiet: ReturnType<typeof setTimeout>[] = [];
  let isRunning = false;
  function listen(): void {
    if (!isRunning) return;
    for (const timer of quiet) clearTimeout(timer);
    quiet =
      busy > 0 && kind === "model"
        ? []
        : [
            setTimeout(() => fail(new AgentFailure("timeout", tooQuiet)), idleMs),
            // The agent is not warned, since a warning would reset the idle time.
            setTimeout(() => tell({ type: "limit", ...idle, near: true }), nearShare * idleMs),
          ];
  }

  return {
    signal: over.signal,
    get hit(): boolean {
      return hit !== null;
    },
    /** Starts the clocks. */
    start(): void {
      isRunning = true;
      clocks = [
        setTimeout(() => fail(new AgentFailure("timeout", tooLong)), wallClockMs),
        ...(kind === "model" ? [setTimeout(reach, worked, time), setTimeout(near, nearShare * worked, time)] : []),
      ];
      listen();
    },
    /** Counts an event of the run. */
    count(event: AgentEvent, source: EventSource): void {
      if (event.type === "tool_call") busy++;
      if (event.type === "tool_result") busy--;
      // Requests made by a page are not activity of the agent, and have their own limit.
      const isOfPage = event.type === "http" && event.purpose === "page";
      if (!isOfPage) listen();
      if (event.type === "end") {
        isEnded = true;
        this.stop();
      } else if (event.type === "tool_call") use("tool_calls", 1);
      else if (event.type === "http") {
        if (!isOfPage) use("requests", 1);
        use("bytes_out", event.bytesOut ?? 0);
      } else if (event.type === "limit" && source === "agent" && kind === "model") {
        const { limit, value, unit } = event;
        const times = (stopped.get(limit) ?? 0) + (event.near ? 0 : 1);
        stopped.set(limit, times);
        warn(limit);
        if (times >= maxStopped) reach({ limit, value, unit });
      }
    },
    /** Stops the clocks. */
    stop(): void {
      isRunning = false;
      for (const timer of [...clocks, ...quiet]) clearTimeout(timer);
    },
    /** The final events if a limit ended the session. Throws an AgentFailure if the agent did nothing before. */
    ending(): AgentEvent[] {
      if (!hit || isEnded) return [];
      const amount = inWords(hit);
      if (used.tool_calls === 0)
        throw new AgentFailure(
          hit.limit === "wall_clock" ? "timeout" : "budget",
          `the model made no tool call before the run reached its limit of ${amount}`,
        );
      const reason = `The run reached its limit: ${amount} (${hit.limit}).`;
      return [
        { type: "limit", ...hit },
        { type: "end", outcome: "goal_not_met", reason },
      ];
    },
  };
}
